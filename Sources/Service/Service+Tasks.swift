import Base
package import Core
import Store
import TransferEngine

extension Service {
    /// Creates all tasks or none, in one commit; bodies that lie in files are copied before.
    package func createTasks(
        _ orders: [TaskOrder], in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> [CreatedTask] {
        try requireRoom()
        let limits = try await store.app(session.app).limits
        var tasks: [NewTask] = []
        tasks.reserveCapacity(orders.count)
        for (index, order) in orders.enumerated() {
            var order = order
            guard let resumeData = order.resumeData else {
                tasks.append(try await prepare(order, index: index, in: session))
                continue
            }
            let redeemed = try await redeem(resumeData, app: session.app, index: index)
            order.specification.request = redeemed.request
            var task = try await prepare(order, index: index, in: session)
            task.progress = redeemed.progress
            task.resumeNonce = redeemed.nonce
            task.fingerprint += redeemed.nonce
            tasks.append(task)
        }
        let (created, aftermath) = try await store.createTasks(
            tasks, in: session.id, limit: limits.maximumUnfinishedTasks, storedLimit: limits.maximumStoredBytes,
            at: clock.now, recording: recording)
        outlet.handle(aftermath)
        publishCreation(of: created, in: session.id)
        return created
    }

    private func publishCreation(of created: [CreatedTask], in session: SessionID) {
        guard hub.hasStreams(session) else { return }
        for item in created where !item.isExisting && item.task.state != .completed {
            let specification = item.task.specification
            hub.publish(
                LiveEvent(
                    payload: .didCreate(kind: specification.kind, url: specification.request.url), task: item.task.id,
                    taskIdentifier: item.task.number, clientTaskId: specification.clientTaskId,
                    group: specification.group, occurredAt: clock.now), to: session)
        }
    }

    /// Fetches what an order's body names, so that the task keeps its bytes whatever happens to their source.
    private func prepare(_ order: TaskOrder, index: Int, in session: SessionRecord) async throws -> NewTask {
        let url: ParsedURL
        do {
            url = try URLParts.parse(order.specification.request.url)
        } catch {
            throw ServiceError.invalidURL(index: index, detail: error.explanation)
        }
        if let root = order.specification.destination?.root, settings.filesRoots[root] == nil {
            throw ServiceError.unknownRoot(index: index, name: root)
        }
        var task = NewTask(
            specification: order.specification, origin: url.origin, isSuspended: order.isSuspended)
        switch order.body {
        case nil: break
        case .stored(let publicId):
            task.body = .stored(publicId)
            task.fingerprint = Array(publicId.utf8)
        case .bytes(let bytes, let mediaType):
            task.body = .bytes(bytes, mediaType: mediaType, publicId: Identifier.make(prefix: "body_"))
            task.fingerprint = Digest.of(bytes)
        case .file(let root, let path):
            (task.body, task.fingerprint) = try await copy(root: root, path: path, index: index)
        case .content(let number):
            (task.body, task.fingerprint) = try await copyContent(of: number, in: session, index: index)
        }
        return task
    }

    private func copy(root name: String, path: String, index: Int) async throws -> (NewTask.Body, [UInt8]) {
        guard let root = settings.filesRoots[name] else {
            throw ServiceError.fileUnavailable(index: index, detail: "There is no root named \(name).")
        }
        let publicId = Identifier.make(prefix: "body_")
        let target = folder.body(publicId)
        do {
            let length = try await snapshot(root: root, path: path, to: target)
            let digest = try await engine.disk.digest(folder.absolute(target)).digests[.sha256] ?? []
            return (
                .file(target, length: length, digest: digest.hexadecimal, publicId: publicId),
                Array("\(name)/\(path)/".utf8) + digest
            )
        } catch let error as DiskError {
            if error.isFull { throw ServiceError.insufficientStorage }
            throw ServiceError.fileUnavailable(
                index: index, detail: "The file cannot be read below its root: \(error.description).")
        }
    }

    /// Copies a file as it is now; reflinked where the filesystem can.
    private func snapshot(root: String, path: String, to target: String) async throws -> Int64 {
        let source = try await engine.disk.openBeneath(root: root, path: path)
        try await engine.disk.copy(source, to: folder.absolute(target))
        return try source.size()
    }

    private func copyContent(
        of number: Int64, in session: SessionRecord, index: Int
    ) async throws -> (NewTask.Body, [UInt8]) {
        guard let task = try? await store.task(number, in: session.id), task.specification.kind == .download,
            let content = try? await store.content(of: task.id), let place = content.place
        else { throw ServiceError.contentUnavailable(index: index) }
        let publicId = Identifier.make(prefix: "body_")
        let fingerprint = Array("task/\(number)".utf8)
        switch place {
        case .bytes(let bytes):
            return (.bytes(bytes, mediaType: task.result?.response?.mimeType, publicId: publicId), fingerprint)
        case .file(let path):
            let target = folder.body(publicId)
            try await engine.disk.copy(folder.absolute(path), to: folder.absolute(target))
            return (
                .file(
                    target, length: content.record.length, digest: content.record.digest.value, publicId: publicId),
                fingerprint
            )
        }
    }

    // MARK: Reading

    package func task(_ number: Int64, in session: SessionID) async throws -> TaskRecord {
        try await store.task(number, in: session)
    }

    package func tasks(
        in session: SessionID, _ filter: TaskFilter, after number: Int64, limit: Int
    ) async throws -> [TaskRecord] {
        try await store.tasks(in: session, filter, after: number, limit: limit)
    }

    /// A task once it completes or, with a revision, once it is newer; at the latest at the monotonic `deadline` (ms).
    package func waitForTask(
        _ number: Int64, in session: SessionID, newerThan revision: Int64?, until deadline: Int64,
        isGone: @escaping @Sendable () -> Bool
    ) async throws -> TaskRecord {
        var task = try await store.task(number, in: session)
        let watch = hub.tasks.watch(task.id)
        while true {
            task = try await store.task(number, in: session)
            let isNewer = revision.map { task.revision > $0 } ?? false
            if task.state == .completed || isNewer || clock.monotonic() >= deadline || isGone() || isDraining {
                return task
            }
            _ = await watch.wait(until: deadline)
        }
    }

    /// Why a task that is running does not move, most basic first.
    package func waitingReasons(of task: TaskRecord, in session: SessionRecord) -> [WaitingReason] {
        switch task.stage {
        case nil, .suspended, .active: return []
        case .delayed:
            return [
                WaitingReason(
                    kind: .earliestBeginDate, detail: "The task begins at its earliestBeginDate.", until: task.dueAt)
            ]
        case .awaitingAnswer:
            return [WaitingReason(kind: .answer, detail: "The app has a question to answer.", until: nil)]
        case .retryWait:
            return [WaitingReason(kind: .retry, detail: "The last attempt failed; another follows.", until: task.dueAt)]
        case .waitingForConnectivity:
            return [
                WaitingReason(
                    kind: .connectivity, detail: "The network or the host's name could not be reached.",
                    until: task.dueAt)
            ]
        case .queued:
            if !gauge.hasRoom {
                return [WaitingReason(kind: .diskSpace, detail: "The disk has too few free bytes for new content.")]
            }
            if case .wait(let reasons) = conditionVerdict(of: task, in: session) { return reasons }
            return [WaitingReason(kind: .capacity, detail: "Other transfers come first.")]
        }
    }

    /// Whether the declared conditions let the task run.
    func conditionVerdict(of task: TaskRecord, in session: SessionRecord) -> Conditions.Verdict {
        let patience = task.resourceDeadline.map { deadline in
            let timeout = Duration.milliseconds(Int64(session.configuration.timeoutIntervalForResource * 1000))
            return Conditions.Patience(began: deadline - timeout, resourceTimeout: timeout)
        }
        return conditions.snapshot.verdict(LaneConditions(session.configuration), patience: patience)
    }

    // MARK: Changing

    package func changeTask(
        _ id: TaskID, _ changes: TaskChanges, ifRevision revision: Int64?
    ) async throws -> TaskRecord {
        var changes = changes
        if let request = changes.request { changes.origin = try URLParts.parse(request.url).origin }
        let (task, aftermath) = try await store.changeTask(id, changes, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        hub.tasks.signal(id)
        return task
    }

    package func command(_ command: TaskCommand, task id: TaskID) async throws -> TaskRecord {
        let (task, aftermath) = try await store.command(command, task: id, at: clock.now)
        outlet.handle(aftermath)
        hub.tasks.signal(id)
        return task
    }

    /// Tasks commanded in one commit of a session-wide form, so that others get their turn between.
    private static let commandGroup = 1000

    /// Commands all matching tasks of a session, some at a time.
    package func command(
        _ command: TaskCommand, _ filter: TaskFilter, in session: SessionID
    ) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var after: Int64 = 0
        while true {
            let step = try await store.command(
                command, filter, in: session, after: after, limit: Self.commandGroup, at: clock.now)
            outlet.handle(step.aftermath)
            matched += step.matched
            changed += step.changed
            guard let last = step.last else { return (matched, changed) }
            after = last
        }
    }

    /// Makes a new task of a completed one.
    package func retry(
        _ task: TaskRecord, in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> CreatedTask {
        guard task.state == .completed else { throw Refused(state: task.state.name, event: "retry") }
        var specification = task.specification
        specification.retryOf = task.number
        specification.clientTaskId = nil
        specification.earliestBeginDate = nil
        let body = specification.body.map(TaskOrder.Body.stored)
        specification.body = nil
        let created = try await createTasks(
            [TaskOrder(specification: specification, isSuspended: false, body: body)], in: session,
            recording: recording)
        guard let first = created.first else { throw DomainError.notFound }
        return first
    }

    /// Makes new tasks of all matching completed ones.
    package func retryAll(
        _ filter: TaskFilter, in session: SessionRecord
    ) async throws -> (matched: Int, changed: Int) {
        var filter = filter
        filter.state = .completed
        let last = session.lastTaskNumber
        var (matched, changed) = (0, 0)
        var after: Int64 = 0
        while true {
            let tasks = try await store.tasks(in: session.id, filter, after: after, limit: 500)
                .filter { $0.number <= last }
            matched += tasks.count
            for task in tasks {
                _ = try await retry(task, in: session, recording: nil)
                changed += 1
            }
            guard tasks.count == 500, let end = tasks.last else { return (matched, changed) }
            after = end.number
        }
    }

    // MARK: Questions

    package func question(_ questionId: String, app: AppID) async throws -> QuestionRecord {
        try await store.question(questionId, app: app)
    }

    package func questions(
        of app: AppID, session: SessionID?, state: QuestionRecord.State?, after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, question: QuestionRecord)] {
        try await store.questions(of: app, session: session, state: state, after: cursor, limit: limit)
    }

    /// Answers a question; a credential to be kept is kept for its protection space.
    package func answer(_ questionId: String, app: AppID, with answer: Answer) async throws -> QuestionRecord {
        var answer = answer
        let question = try await store.question(questionId, app: app)
        if question.question.protectionSpace?.authenticationMethod == .digest { answer.credential?.usesDigest = true }
        let origin = try answer.request.map { try URLParts.parse($0.url).origin }
        let (record, aftermath) = try await store.answer(
            questionId, app: app, with: answer, origin: origin, at: clock.now)
        if let credential = answer.credential, credential.persistence != .none,
            let space = record.question.protectionSpace
        {
            try await store.keep(
                credential, for: space, app: app,
                session: credential.persistence == .forSession ? record.session : nil,
                credentialId: Identifier.make(prefix: "cred_"), at: clock.now)
            inbox.tell(.appChanged(app))
        }
        outlet.handle(aftermath)
        hub.tasks.signal(record.task)
        return record
    }

    // MARK: Credentials

    package func keepCredential(
        _ credential: Credential, for space: ProtectionSpace, app: AppID
    ) async throws -> String {
        let credentialId = Identifier.make(prefix: "cred_")
        var credential = credential
        credential.usesDigest = space.authenticationMethod == .digest
        try await store.keep(
            credential, for: space, app: app, session: nil, credentialId: credentialId, at: clock.now)
        inbox.tell(.appChanged(app))
        return credentialId
    }

    package func credentials(
        of app: AppID, after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, credential: CredentialRecord)] {
        try await store.credentials(of: app, after: cursor, limit: limit)
    }

    package func credential(_ credentialId: String, app: AppID) async throws -> CredentialRecord {
        try await store.credential(credentialId, app: app)
    }

    package func deleteCredential(_ credentialId: String, app: AppID) async throws {
        try await store.deleteCredential(credentialId, app: app)
    }
}
