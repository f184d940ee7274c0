import Base
import Core
import HTTPServer
import Mapping
import Service
import Wire

/// Tasks one by one, their list, and the session-wide forms.
struct TaskRoutes {
    let server: APIServer

    private static let list = "/v1/sessions/{identifier}/tasks"
    private static let one = list + "/{taskIdentifier}"

    var routes: [Route] {
        let (list, one) = (Self.list, Self.one)
        return [
            server.route(
                "GET", list, .read, query: ["state", "outcome", "group", "clientTaskId", "limit", "cursor"], page),
            server.route(
                "POST", list, .write, body: .jsonOrLines, produces: [MediaTypes.json, MediaTypes.lines], create),
            server.route("POST", list + "/suspend", .write, body: .optionalJSON) { try await commandAll($0, .suspend) },
            server.route("POST", list + "/resume", .write, body: .optionalJSON) { try await commandAll($0, .resume) },
            server.route("POST", list + "/cancel", .write, body: .optionalJSON) {
                try await commandAll($0, .cancel(reason: nil))
            },
            server.route("POST", list + "/retry", .write, body: .optionalJSON, retryAll),
            server.route("GET", one, .read, query: ["wait", "revision"], read),
            server.route("PATCH", one, .write, body: .json, change),
            server.route("POST", one + "/suspend", .write, body: .empty) { try await command($0, .suspend) },
            server.route("POST", one + "/resume", .write, body: .empty) { try await command($0, .resume) },
            server.route("POST", one + "/cancel", .write, body: .optionalJSON, cancel),
            server.route("POST", one + "/retry", .write, body: .empty, retry),
        ]
    }

    // MARK: Creating

    @Sendable private func create(_ call: Call) async throws -> HTTPResponse {
        let session = try await call.session()
        if call.hasLines { return try await TaskLines(call: call, session: session).answer() }
        guard call.accepted == MediaTypes.json else {
            throw Problem(.notAcceptable, "The answer to one task is application/json.")
        }
        let creation = try call.read(TaskCreation.self)
        let order = try TaskOrder(checking: creation, traceparent: call.traceparent)
        let service = call.service
        let render: @Sendable ([CreatedTask]) -> HTTPResponse = { created in
            guard let item = created.first else { return .nothing }
            return call.createdTask(item, in: session, service)
        }
        let places = OrderPlaces(body: { _ in creation.bodyPointer })
        do {
            return render(
                try await service.createTasks([order], in: session, recording: call.recording(render)))
        } catch {
            throw server.problem(for: error, of: call.request, places)
        }
    }

    @Sendable private func retry(_ call: Call) async throws -> HTTPResponse {
        let (session, task) = try await call.taskAsExpected()
        let service = call.service
        let item = try await service.retry(
            task, in: session,
            recording: call.recording { created in
                created.first.map { call.createdTask($0, in: session, service) } ?? .nothing
            })
        return call.createdTask(item, in: session, service)
    }

    // MARK: Reading

    @Sendable private func page(_ call: Call) async throws -> HTTPResponse {
        let states = Core.TaskState.allCases.map { ($0.name, $0) }
        let outcomes = Core.Outcome.allCases.map { ($0.name, $0) }
        let filter = TaskFilter(
            state: try call.queryWord("state", states), outcome: try call.queryWord("outcome", outcomes),
            group: try call.queryText("group"), clientTaskId: try call.queryText("clientTaskId"))
        let session = try await call.session()
        return try await call.page(
            fetch: { try await call.service.tasks(in: session.id, filter, after: $0, limit: $1) },
            position: \.number, write: { call.service.wireTask($0, in: session) })
    }

    @Sendable private func read(_ call: Call) async throws -> HTTPResponse {
        let number = try call.number("taskIdentifier")
        let revision = try call.queryInteger("revision", in: 0 ... .max)
        let session = try await call.session()
        guard let deadline = try call.waitDeadline() else {
            return call.showTask(try await call.service.task(number, in: session.id), in: session)
        }
        let gone = call.request.clientGone
        let task = try await call.holding {
            let id = try await call.service.task(number, in: session.id).id
            gone.onGone { [hub = call.service.hub] in hub.tasks.signal(id) }
            return try await call.service.waitForTask(
                number, in: session.id, newerThan: revision, until: deadline, isGone: { gone.isGone })
        }
        return call.showTask(task, in: session)
    }

    // MARK: Changing

    @Sendable private func change(_ call: Call) async throws -> HTTPResponse {
        let change = try call.read(TaskChange.self)
        let session = try await call.session()
        let task = try await call.service.task(call.number("taskIdentifier"), in: session.id)
        // A request changes in part, so what the rest was read from must still be there.
        let revision = try call.expectedRevision(of: task.revision)
        let changed = try await call.service.changeTask(
            task.id, TaskChanges(checking: change, of: task),
            ifRevision: revision ?? (change.request == nil ? nil : task.revision))
        return call.showTask(changed, in: session)
    }

    private func command(_ call: Call, _ command: TaskCommand, status: Int = 200) async throws -> HTTPResponse {
        let (session, task) = try await call.taskAsExpected()
        let changed = try await call.service.command(command, task: task.id)
        return call.showTask(changed, in: session, status: status)
    }

    @Sendable private func cancel(_ call: Call) async throws -> HTTPResponse {
        guard try call.readIfPresent(TaskCancellation.self).byProducingResumeData else {
            return try await command(call, .cancel(reason: nil), status: 202)
        }
        let (_, task) = try await call.taskAsExpected()
        return switch try await call.service.cancelProducingResumeData(task) {
        case .data(let text): .json(ResumeDataAnswer { $0.resumeData = text })
        case .notResumable(let reason): .json(ResumeDataAnswer { $0.notResumableReason = reason })
        }
    }

    // MARK: Session-wide forms

    private func commandAll(_ call: Call, _ command: TaskCommand) async throws -> HTTPResponse {
        let filter = TaskFilter(try call.readIfPresent(TaskSelection.self))
        let session = try await call.session()
        let (matched, changed) = try await call.service.command(command, filter, in: session.id)
        return .json(
            SelectionAnswer {
                $0.matched = Int64(matched)
                $0.changed = Int64(changed)
            })
    }

    @Sendable private func retryAll(_ call: Call) async throws -> HTTPResponse {
        let filter = TaskFilter(try call.readIfPresent(TaskSelection.self))
        let session = try await call.session()
        let summary = try await call.service.retryAll(filter, in: session)
        let errors = summary.refused.map { number, error in
            var problem = server.problem(for: error, of: call.request)
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

extension Call {
    /// The trace context that tasks made by this request carry on; one that is not as W3C has it is not kept.
    var traceparent: String? {
        guard let text = request.headers["traceparent"] else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isHexadecimal = parts.allSatisfy { part in
            part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        }
        return parts.map(\.utf8.count) == [2, 32, 16, 2] && isHexadecimal ? text : nil
    }

    /// Session and task that the path names, where `If-Match` agrees with the task.
    func taskAsExpected() async throws -> (SessionRecord, TaskRecord) {
        let session = try await session()
        let task = try await service.task(number("taskIdentifier"), in: session.id)
        _ = try expectedRevision(of: task.revision)
        return (session, task)
    }

    func showTask(_ task: TaskRecord, in session: SessionRecord, status: Int = 200) -> HTTPResponse {
        resource(
            service.wireTask(task, in: session), revision: task.revision, status: status,
            isLive: task.state == .running || task.state == .canceling)
    }

    /// 201 for a new task, 200 for one that was there.
    func createdTask(_ item: CreatedTask, in session: SessionRecord, _ service: Service) -> HTTPResponse {
        resource(
            service.wireTask(item.task, in: session, isExisting: item.isExisting), revision: item.task.revision,
            status: item.isExisting ? 200 : 201,
            location: item.isExisting ? nil : "/v1/sessions/\(session.identifier)/tasks/\(item.task.number)")
    }
}

extension TaskCreation {
    /// Where its body stands: an upload's beside the request, a download's in it.
    var bodyPointer: String { kind == .upload ? "/body" : "/request/body" }
}

extension Service {
    /// A task as it is shown.
    func wireTask(_ task: TaskRecord, in session: SessionRecord, isExisting: Bool = false) -> SessionTask {
        var shown = SessionTask(task, liveState(of: task, in: session))
        shown.existing = isExisting
        return shown
    }

    /// What a task is doing now, or waits for.
    private func liveState(of task: TaskRecord, in session: SessionRecord) -> LiveState {
        guard task.state == .running else { return LiveState() }
        return LiveState(
            sample: live.sample(task.id), throughput: live.throughput(task.id),
            waiting: waitingReasons(of: task, in: session))
    }
}
