import Base
import Core
import HTTPServer
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// Single tasks, their lists, and the session-wide forms.
    var taskRoutes: [Route] {
        let all = "/v1/sessions/{identifier}/tasks"
        let one = all + "/{taskIdentifier}"
        let filters = ["state", "outcome", "group", "clientTaskId", "search"]
        return [
            route("GET", "/v1/tasks", .read, query: filters + Call.listing) { try await $0.listTasksOfApp() },
            route("GET", all, .read, query: filters + Call.listing) { try await $0.listTasks() },
            route("POST", all, .write, body: .task, produces: [MediaTypes.json, MediaTypes.lines]) {
                try await $0.createTask()
            },
            route("POST", all + "/suspend", .write, body: .optionalJSON) { try await $0.commandAll(.suspend) },
            route("POST", all + "/resume", .write, body: .optionalJSON) { try await $0.commandAll(.resume) },
            route("POST", all + "/cancel", .write, body: .optionalJSON) {
                try await $0.commandAll(.cancel(reason: nil))
            },
            route("POST", all + "/retry", .write, body: .optionalJSON) { try await $0.retryAll() },
            route("POST", all + "/claim", .write, body: .optionalJSON) { try await $0.claimAll() },
            route("GET", one, .read, query: ["wait", "revision"]) { try await $0.readTask() },
            route("PATCH", one, .write, body: .json) { try await $0.changeTask() },
            route("POST", one + "/suspend", .write, body: .empty) { try await $0.command(.suspend) },
            route("POST", one + "/resume", .write, body: .empty) { try await $0.command(.resume) },
            route("POST", one + "/cancel", .write, body: .optionalJSON) { try await $0.cancelTask() },
            route("POST", one + "/retry", .write, body: .empty) { try await $0.retryTask() },
        ]
    }
}

extension Call {
    // MARK: Creating

    fileprivate func createTask() async throws -> HTTPResponse {
        let session = try await session()
        if hasLines { return try await TaskLines(call: self, session: session).answer() }
        guard accepted == MediaTypes.json else {
            throw Problem(.notAcceptable, "The response to one task is application/json.")
        }
        let creation = try hasMetalink ? Metalink.creation(bodyBytes) : read(TaskCreation.self)
        let order = try TaskOrder(checking: creation, traceparent: traceparent)
        do {
            return try await creating { recording in
                try await service.createTasks([order], in: session, recording: recording)
            } answer: {
                createdTask($0, in: session)
            }
        } catch {
            throw server.problem(for: error, of: request, OrderPlaces(body: { _ in creation.bodyPointer }))
        }
    }

    fileprivate func retryTask() async throws -> HTTPResponse {
        let (session, task, _) = try await taskAsExpected()
        return try await creating { recording in
            [try await service.retry(task, in: session, traceparent: traceparent, recording: recording)]
        } answer: {
            createdTask($0, in: session)
        }
    }

    /// 201 for a new task, 200 for an existing one.
    private func createdTask(_ created: [CreatedTask], in session: SessionRecord) -> HTTPResponse {
        guard let item = created.first else { return .nothing }
        return resource(
            service.wireTask(item.task, in: session, isExisting: item.isExisting), version: Version(item.task),
            status: item.isExisting ? 200 : 201,
            location: item.isExisting ? nil : "/v1/sessions/\(session.identifier)/tasks/\(item.task.number)")
    }

    // MARK: Reading

    fileprivate func listTasks() async throws -> HTTPResponse {
        let (filter, span, search) = (try taskFilter(), try span(), try taskSearch())
        let session = try await session()
        return try await page(
            searching: search.map { _ in server.settings.searchedTasks },
            fetch: {
                try await service.tasks(
                    in: session.id, filter, span, matching: search, after: $0, limit: $1,
                    known: server.shownTasks.task)
            },
            position: \.position, write: { $0.task.map { text(of: $0, in: session) } })
    }

    /// Tasks of all sessions. Running tasks need their session, each of which is read once.
    fileprivate func listTasksOfApp() async throws -> HTTPResponse {
        let (app, filter, span, search) = (try app, try taskFilter(), try span(), try taskSearch())
        var sessions: [String: SessionRecord] = [:]
        func shown(_ found: FoundTask<ShownTask>) async -> JSONText {
            guard case .read(let task) = found else { return text(of: found, in: nil) }
            let name = task.sessionIdentifier
            if task.state == .running, sessions[name] == nil {
                sessions[name] = try? await service.session(name, app: app)
            }
            return text(of: found, in: sessions[name])
        }
        return try await page(
            searching: search.map { _ in server.settings.searchedTasks },
            fetch: {
                try await service.tasks(
                    of: app, filter, span, matching: search, after: $0, limit: $1, known: server.shownTasks.task)
            },
            position: \.position, write: { if let task = $0.task { await shown(task) } else { nil } })
    }

    private func taskSearch() throws -> TaskSearch? { try queryText("search").map(TaskSearch.init) }

    private func taskFilter() throws -> TaskFilter {
        TaskFilter(
            states: try queryWords("state", Core.TaskState.allCases.map { ($0.rawValue, $0) }),
            outcomes: try queryWords("outcome", Core.Outcome.allCases.map { ($0.rawValue, $0) }),
            group: try queryText("group"), clientTaskId: try queryText("clientTaskId"))
    }

    fileprivate func readTask() async throws -> HTTPResponse {
        let number = try number("taskIdentifier")
        let revision = try queryInteger("revision", in: 0 ... .max)
        guard let deadline = try waitDeadline() else {
            switch try await service.task(number, in: parameter("identifier"), of: app, known: server.shownTasks.task)
            {
            case .known(let shown): return resource(shown.text, version: Version(shown.stamp))
            // Only the waiting reasons of a running task depend on its session.
            case .read(let task): return showTask(task, in: task.state == .running ? try await session() : nil)
            }
        }
        let session = try await session()
        let id = try await service.task(number, in: session.id).id
        let task = try await holding { [hub = service.hub] in
            hub.tasks.signal(id)
        } _: {
            try await service.waitForTask(number, in: session.id, newerThan: revision, until: deadline, isGone: $0)
        }
        return showTask(task, in: session)
    }

    // MARK: Changing

    fileprivate func changeTask() async throws -> HTTPResponse {
        let change = try read(TaskChange.self)
        let session = try await session()
        let changed = try await untilUndisturbed {
            let task = try await service.task(number("taskIdentifier"), in: session.id)
            // A request changes in part: the rest must still be as it was read here.
            let revision = try expectedRevision(of: Version(task)) ?? (change.request == nil ? nil : task.revision)
            return try await service.changeTask(task.id, TaskChanges(checking: change, of: task), ifRevision: revision)
        }
        return showTask(changed, in: session)
    }

    fileprivate func command(_ command: TaskCommand, status: Int = 200) async throws -> HTTPResponse {
        let (session, task, revision) = try await taskAsExpected()
        let changed = try await service.command(command, task: task.id, ifRevision: revision)
        return showTask(changed, in: session, status: status)
    }

    fileprivate func cancelTask() async throws -> HTTPResponse {
        guard try readIfPresent(TaskCancellation.self).byProducingResumeData else {
            return try await command(.cancel(reason: nil), status: 202)
        }
        let (_, task, revision) = try await taskAsExpected()
        return switch try await service.cancelProducingResumeData(task, ifRevision: revision) {
        case .data(let text): .json(ResumeDataAnswer { $0.resumeData = text })
        case .notResumable(let reason): .json(ResumeDataAnswer { $0.notResumableReason = reason })
        }
    }

    /// Session and task of the path, if the task matches `If-Match`, and the revision that a change requires.
    private func taskAsExpected() async throws -> (SessionRecord, TaskRecord, revision: Int64?) {
        let session = try await session()
        let task = try await service.task(number("taskIdentifier"), in: session.id)
        return (session, task, try expectedRevision(of: Version(task)))
    }

    private func showTask(_ task: TaskRecord, in session: SessionRecord?, status: Int = 200) -> HTTPResponse {
        resource(
            text(of: task, in: session), version: Version(task), status: status,
            isLive: task.state == .running || task.state == .canceling)
    }

    /// The client's view of a task, cached for later readers once the task is completed.
    private func text(of task: TaskRecord, in session: SessionRecord?) -> JSONText {
        let text = JSONText(service.wireTask(task, in: session))
        if let stamp = task.stamp { server.shownTasks.keep(ShownTask(stamp: stamp, text: text)) }
        return text
    }

    private func text(of found: FoundTask<ShownTask>, in session: SessionRecord?) -> JSONText {
        switch found {
        case .known(let shown): shown.text
        case .read(let task): text(of: task, in: session)
        }
    }

    // MARK: Session-wide forms

    fileprivate func commandAll(_ command: TaskCommand) async throws -> HTTPResponse {
        let filter = TaskFilter(try readIfPresent(TaskSelection.self))
        let (session, revision) = try await sessionAsExpected()
        return selected(try await service.command(command, filter, in: session.id, ifRevision: revision))
    }

    fileprivate func claimAll() async throws -> HTTPResponse {
        let filter = TaskFilter(try readIfPresent(TaskSelection.self))
        let (session, revision) = try await sessionAsExpected()
        return selected(try await service.claimContents(filter, in: session.id, ifRevision: revision))
    }

    func selected(_ count: (matched: Int, changed: Int)) -> HTTPResponse {
        .json(
            SelectionAnswer {
                $0.matched = Int64(count.matched)
                $0.changed = Int64(count.changed)
            })
    }

    fileprivate func retryAll() async throws -> HTTPResponse {
        let filter = TaskFilter(try readIfPresent(TaskSelection.self))
        let (session, revision) = try await sessionAsExpected()
        let summary = try await service.retryAll(filter, in: session, traceparent: traceparent, ifRevision: revision)
        let errors = summary.refused.map { number, error in
            var problem = server.problem(for: error, of: request)
            problem.instance = "/v1/sessions/\(session.identifier)/tasks/\(number)"
            problem.errors = []
            return SelectionAnswer.Refusal {
                $0.taskIdentifier = number
                $0.problem = problem
            }
        }
        return .json(
            SelectionAnswer {
                $0.matched = Int64(summary.matched)
                $0.changed = Int64(summary.changed)
                $0.errors = errors
            })
    }
}

// MARK: - Shared by single tasks, batches and lines

extension Call {
    /// The trace context for the tasks that this request creates; nil if the field is not valid (W3C Trace Context).
    var traceparent: String? {
        guard let text = request.headers["traceparent"] else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isHexadecimal = parts.joined().utf8.allSatisfy { Bytes.isDigit($0) || (0x61...0x66).contains($0) }
        return parts.map(\.utf8.count) == [2, 32, 16, 2] && isHexadecimal ? text : nil
    }
}

extension TaskCreation {
    /// The position of the body: an upload's is beside the request, a download's inside it.
    var bodyPointer: String { kind == .upload ? "/body" : "/request/body" }
}

extension Service {
    /// The client's view of a task.
    func wireTask(_ task: TaskRecord, in session: SessionRecord?, isExisting: Bool = false) -> SessionTask {
        var shown = SessionTask(task, liveState(of: task, in: session))
        shown.existing = isExisting
        return shown
    }

    /// The transfer state of a running task, or its waiting reasons.
    private func liveState(of task: TaskRecord, in session: SessionRecord?) -> LiveState {
        guard task.state == .running, let session else { return LiveState() }
        let attempt = live.attempt(task.id)
        return LiveState(
            sample: attempt?.sample, response: attempt?.response, segments: live.segments(task.id),
            throughput: live.throughput(task.id), waiting: waitingReasons(of: task, in: session))
    }
}
