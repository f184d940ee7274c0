import Base
package import Core
import Files
import Glibc
import Store
import TransferEngine

/// A task whose body is at hand. The copy that was made for it goes with it, unless the task is created.
package final class PreparedTask {
    let task: NewTask
    private var file: StagedFile?

    fileprivate init(_ task: NewTask, _ file: consuming StagedFile?) {
        self.task = task
        self.file = file
    }

    fileprivate func adoptFile() { file.take()?.adopt() }
}

extension Service {
    /// Creates all tasks or none, in one commit; bodies that lie in files are copied before.
    package func createTasks(
        _ orders: [TaskOrder], in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> [CreatedTask] {
        try requireRoom()
        var tasks: [PreparedTask] = []
        tasks.reserveCapacity(orders.count)
        for (index, order) in orders.enumerated() {
            tasks.append(try await prepare(order, index: index, in: session))
        }
        return try await createTasks(tasks, in: session, recording: recording)
    }

    /// Creates all tasks or none, in one commit. What is refused can be given again, without another copy of its body.
    package func createTasks(
        _ tasks: [PreparedTask], in session: SessionRecord, recording: Recording<[CreatedTask]>?
    ) async throws -> [CreatedTask] {
        try requireRoom()
        let app = try await store.app(session.app)
        let (created, aftermath) = try await store.createTasks(
            tasks.map(\.task), in: session.id, limit: app.limits.maximumUnfinishedTasks,
            storedLimit: app.limits.maximumStoredBytes, at: clock.now, recording: recording)
        for (item, task) in zip(created, tasks) where !item.isExisting { task.adoptFile() }
        outlet.handle(aftermath)
        tell(of: created, in: session, of: app)
        return created
    }

    /// Tells the log and the streams of new tasks.
    func tell(of created: [CreatedTask], in session: SessionRecord, of app: AppRecord) {
        for item in created where !item.isExisting {
            let specification = item.task.specification
            log.created(
                TaskName(
                    app: app.identifier, session: session.identifier, number: item.task.number,
                    clientTaskId: specification.clientTaskId), specification.kind)
        }
        publishCreation(of: created, in: session.id)
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

    /// Makes a task of an order: redeems its resume data and fetches what its body names, so that the task keeps its
    /// bytes whatever happens to their source.
    package func prepare(_ order: TaskOrder, index: Int, in session: SessionRecord) async throws -> PreparedTask {
        guard let resumeData = order.resumeData else {
            return try await fetchBody(of: order, index: index, in: session)
        }
        let redeemed = try await redeem(resumeData, app: session.app, index: index)
        var order = order
        order.specification.request = redeemed.request
        return try await fetchBody(of: order, index: index, in: session) { task in
            task.progress = redeemed.progress
            task.resumeNonce = redeemed.nonce
            task.fingerprint += redeemed.nonce
        }
    }

    private func fetchBody(
        of order: TaskOrder, index: Int, in session: SessionRecord, change: (inout NewTask) -> Void = { _ in }
    ) async throws -> PreparedTask {
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
        var file: StagedFile?
        switch order.body {
        case nil: break
        case .stored(let publicId):
            task.body = .stored(publicId)
            task.fingerprint = Array(publicId.utf8)
        case .bytes(let bytes, let mediaType):
            task.body = .bytes(bytes, mediaType: mediaType, publicId: Identifier.make(prefix: "body_"))
            task.fingerprint = Digest.of(bytes)
        case .file(let root, let path):
            file = try await copy(root: root, path: path, index: index, app: session.app, for: &task)
        case .content(let number):
            file = try await copyContent(of: number, in: session, index: index, for: &task)
        }
        change(&task)
        return PreparedTask(task, file)
    }

    private func copy(
        root name: String, path: String, index: Int, app: AppID, for task: inout NewTask
    ) async throws -> StagedFile {
        guard let root = settings.filesRoots[name] else {
            throw ServiceError.fileUnavailable(index: index, detail: "There is no root named \(name).")
        }
        let publicId = Identifier.make(prefix: "body_")
        let folder = folder.of(app.rawValue)
        let file = folder.stage(folder.body(publicId))
        do {
            let source = try await folder.disk.openBeneath(root: root, path: path)
            // As it is now; reflinked where the filesystem can.
            try await file.copy(source, within: room)
            let (length, digest) = try await file.digest()
            task.body = .file(file.path, length: length, digest: digest.hexadecimal, publicId: publicId)
            task.fingerprint = Array("\(name)/\(path)/".utf8) + digest
        } catch {
            if error.isFull { throw ServiceError.insufficientStorage }
            throw ServiceError.fileUnavailable(
                index: index, detail: "The file cannot be read below its root: \(error.description).")
        }
        return file
    }

    /// - Returns: The copy, where the content is not in the database.
    private func copyContent(
        of number: Int64, in session: SessionRecord, index: Int, for task: inout NewTask
    ) async throws -> StagedFile? {
        guard let source = try? await store.task(number, in: session.id), source.specification.kind == .download,
            let content = try? await store.content(of: source.id), let place = content.place
        else { throw ServiceError.contentUnavailable(index: index) }
        let publicId = Identifier.make(prefix: "body_")
        task.fingerprint = Array("task/\(number)".utf8)
        switch place {
        case .bytes(let bytes):
            task.body = .bytes(bytes, mediaType: source.result?.response?.mimeType, publicId: publicId)
            return nil
        case .file(let path):
            let folder = folder.of(session.app.rawValue)
            let file = folder.stage(folder.body(publicId))
            do {
                try await file.copy(folder.open(path), within: room)
            } catch {
                if error.isFull { throw ServiceError.insufficientStorage }
                // Claimed or expired meanwhile.
                if error.errno == ENOENT { throw ServiceError.contentUnavailable(index: index) }
                throw error
            }
            task.body = .file(
                file.path, length: content.record.length, digest: content.record.digest.value, publicId: publicId)
            return file
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
            return [
                WaitingReason(
                    kind: .answer, detail: "The app has a question to answer.", questionId: task.questionId)
            ]
        case .waitingForDisk:
            return [WaitingReason(kind: .disk, detail: "The disk has too few free bytes for the rest of the content.")]
        case .retryWait:
            let detail =
                task.crashes > 1
                ? "The service crashed twice while the task was under way; it will run alone."
                : "The last attempt failed; another follows."
            return [WaitingReason(kind: .retry, detail: detail, until: task.dueAt)]
        case .waitingForConnectivity:
            return [
                WaitingReason(
                    kind: .connectivity, detail: "The network or the host's name could not be reached.",
                    until: task.dueAt)
            ]
        case .queued, .quarantined:
            if room.left <= 0 {
                return [WaitingReason(kind: .disk, detail: "The disk has too few free bytes for new content.")]
            }
            if case .wait(let reasons) = conditionVerdict(of: task, in: session) { return reasons }
            return whoComesFirst(before: task, in: session).map { [$0] } ?? []
        }
    }

    /// What keeps a queued task from starting at once, nil where nothing does.
    private func whoComesFirst(before task: TaskRecord, in session: SessionRecord) -> WaitingReason? {
        let now = clock.now
        if task.stage == .quarantined {
            return WaitingReason(
                kind: .capacity,
                detail: "The service crashed twice while the task was under way; it runs when nothing else does.")
        }
        if let until = scheduler.agenda.withLock({ $0.soloEnd }) {
            return WaitingReason(
                kind: .capacity, detail: "A task that may have crashed the service runs alone.", until: until)
        }
        guard let origin = try? URLParts.parse(task.specification.request.url).origin else { return nil }
        if let until = scheduler.agenda.withLock({ $0.pauseEnd(of: origin, app: task.app, at: now) }) {
            return WaitingReason(
                kind: .originPause, detail: "The host answered 429 or 503 and is left alone for a while.", until: until)
        }
        let running = live.count(at: origin, of: session.id)
        let others: String? =
            if live.count >= settings.maximumTransfers {
                "as many are under way as the service allows"
            } else if running.all >= settings.maximumTransfersPerHost {
                "as many to this host are under way as the service allows"
            } else if running.session >= session.configuration.httpMaximumConnectionsPerHost {
                "as many to this host are under way as the session allows"
            } else {
                nil
            }
        return others.map { WaitingReason(kind: .capacity, detail: "Other transfers come first: \($0).") }
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

    /// Commands all matching tasks of a session, some at a time.
    package func command(
        _ command: TaskCommand, _ filter: TaskFilter, in session: SessionID
    ) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var after: Int64 = 0
        while true {
            let step = try await store.command(
                command, filter, in: session, after: after, limit: Store.commandGroup, at: clock.now)
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
        let created = try await createTasks([TaskOrder(retrying: task)], in: session, recording: recording)
        guard let first = created.first else { throw DomainError.notFound }
        return first
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
            questionId, app: app, with: answer, origin: origin, credentialId: Identifier.make(prefix: "cred_"),
            at: clock.now)
        if answer.credential != nil { inbox.tell(.appChanged(app)) }
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
