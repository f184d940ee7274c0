import Foundation
import Synchronization
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The parts of a task until the service has it.
enum Draft: Sendable {
    case download(URLRequest)
    case upload(URLRequest, file: URL)
    case resumed(Data)
    /// A failed download that the service repeats, with the key that makes the call safe to repeat.
    case repeated(FailedDownload, original: Data, idempotencyKey: String)
}

extension BackgroundSessionTask {
    /// The task's identifier: its name if that is a number of this library, a digest of another name, else a number
    /// from the task that it repeats, else the service's number.
    ///
    /// Identifiers from names or repeated tasks are above 2³², the service's numbers below.
    static func identifier(clientTaskId: String?, retryOf: Int64?, number: Int64?) -> Int {
        guard let clientTaskId else { return retryOf.map { 1 << 49 | Int($0) } ?? Int(number ?? 0) }
        if let chosen = Int(clientTaskId), chosen >= 1 << 32 { return chosen }
        let digest = SHA256.digest(Array(clientTaskId.utf8)).prefix(6).reduce(0) { $0 << 8 | Int($1) }
        return 1 << 48 | digest
    }

    static func freshName() -> String { String(Int.random(in: 1 << 32..<1 << 48)) }

    /// Runs a step after all earlier steps.
    func then(_ step: @escaping @Sendable (BackgroundSessionTask) async -> Void) {
        facts.withLock { facts in
            let last = facts.lastStep
            facts.lastStep = Task {
                await last?.value
                await step(self)
            }
        }
    }

    /// Creates the task at the service, once.
    ///
    /// - Returns: Whether this call created it.
    func handOver(as state: TaskState) async -> Bool {
        let (draft, terms) = facts.withLock { facts in
            guard facts.state != .canceling, facts.state != .completed else { return (Draft?.none, facts.terms) }
            defer { facts.draft = nil }
            return (facts.draft, facts.terms)
        }
        guard let draft else { return false }
        do {
            if case .repeated(let failed, _, let key) = draft, failed.incarnation == (try await session.incarnation) {
                try await handOver(failed, key, as: state, terms)
                return true
            }
            var creation = try await self.creation(of: draft)
            creation.state = state
            creation.terms = terms
            if terms.earliestBeginDate != nil, session.asksBeforeDelayedRequests { creation.confirmBeforeStart = true }
            let order = creation
            let task = try await session.insist { try await $0.createTask(order, in: $1) }
            adopt(task, isOwn: true)
            if task.existing, task.state == .completed { try await session.tellAgain(self, as: task) }
        } catch {
            await fail(error)
        }
        return true
    }

    /// Lets the service repeat a failed download.
    ///
    /// The new task runs at once with the terms of the failed one. Terms that the app has set since are sent as a
    /// change.
    private func handOver(_ failed: FailedDownload, _ key: String, as state: TaskState, _ terms: TaskTerms) async throws
    {
        let task = try await session.insist { try await $0.retry(failed.number, in: $1, idempotencyKey: key) }
        let standard = TaskTerms()
        var (change, adopted) = (TaskChange(), task.terms)
        if terms.priority != standard.priority {
            (change.priority, adopted.priority) = (terms.priority, terms.priority)
        }
        if let text = terms.taskDescription { (change.taskDescription, adopted.taskDescription) = (.set(text), text) }
        if let date = terms.earliestBeginDate {
            (change.earliestBeginDate, adopted.earliestBeginDate) = (.set(date), date)
        }
        let (wanted, shown) = (change, adopted)
        facts.withLock { $0.terms = shown }
        adopt(task, isOwn: true)
        session.knowsNumber(of: self, task.taskIdentifier)
        if state == .suspended { await tell { try await $0.command(.suspend, task: $1, in: $2) } }
        if wanted != TaskChange() { await tell { try await $0.change(wanted, ofTask: $1, in: $2) } }
    }

    /// Calls the service about the task, unless the service does not have it.
    @discardableResult
    func tell<Answer: Sendable>(
        _ call: @escaping @Sendable (Client, _ number: Int64, _ session: String) async throws -> Answer
    ) async -> Answer? {
        guard let number = facts.withLock({ $0.number }) else { return nil }
        // The service refuses a call that is too late, for a completed task.
        return try? await session.insist { try await call($0, number, $1) }
    }

    private func creation(of draft: Draft) async throws -> TaskCreation {
        switch draft {
        case .download(let request):
            var transfer = TransferRequest(request, for: .download)
            if let body = request.httpBody {
                transfer.body =
                    body.count <= BodySource.maximumInlineLength
                    ? .bytes(Array(body))
                    : .id(try await session.insist { client, _ in try await client.storeBody(Array(body)) }.id)
            }
            return .download(transfer)
        case .upload(let request, let file):
            let type = request.value(forHTTPHeaderField: "Content-Type") ?? "application/octet-stream"
            let body = try await session.insist { client, _ in
                try await client.storeBody(fileAt: file.path, mediaType: type)
            }
            return .upload(TransferRequest(request, for: .upload), body: .id(body.id))
        case .resumed(let data):
            return .download(resumeData: String(decoding: data, as: UTF8.self))
        case .repeated(_, let data, _):
            // Data of another session or incarnation. The service refuses it.
            return .download(resumeData: String(decoding: data, as: UTF8.self))
        }
    }

    /// Updates the task from the service's.
    ///
    /// - Parameter isOwn: Whether the task was created here, so that this object has more than the service.
    func adopt(_ task: SessionTask, isOwn: Bool) {
        facts.withLock { facts in
            facts.number = task.taskIdentifier
            if facts.originalRequest == nil { facts.originalRequest = URLRequest(task.originalRequest) }
            facts.expectedToSend = task.countOfBytesExpectedToSend
            guard !isOwn else { return }
            facts.terms = task.terms
            facts.currentRequest = task.currentRequest.flatMap { URLRequest($0) }
            facts.state = State(task.state)
            facts.response = task.response.flatMap { HTTPURLResponse($0) }
            facts.suggestedFilename = task.response?.suggestedFilename
            facts.error = task.error.map { URLError($0) }
            facts.expectedToReceive = task.countOfBytesExpectedToReceive
        }
        if !isOwn { moved(received: task.countOfBytesReceived, sent: task.countOfBytesSent) }
    }

    /// Updates the progress of the task.
    func moved(
        received: Int64? = nil, ofReceived expectedToReceive: Int64? = nil, sent: Int64? = nil,
        ofSent expectedToSend: Int64? = nil
    ) {
        let (done, all) = facts.withLock { facts in
            facts.received = received ?? facts.received
            facts.expectedToReceive = expectedToReceive ?? facts.expectedToReceive
            facts.sent = sent ?? facts.sent
            facts.expectedToSend = expectedToSend ?? facts.expectedToSend
            let update = self.update(facts)
            for watcher in facts.watchers.values { watcher.yield(update) }
            return (update.completedUnitCount, update.totalUnitCount)
        }
        progress.totalUnitCount = all ?? -1
        progress.completedUnitCount = done
    }

    /// Completes the task without the service, because the handover failed.
    func fail(_ error: any Error) async {
        complete(with: URLError(notHandedOver: error, originalRequest?.url), response: nil)
        await session.didComplete(self)
    }

    func complete(with error: (any Error)?, response: URLResponse?) {
        facts.withLock { facts in
            facts.state = .completed
            facts.draft = nil
            facts.error = error
            facts.response = response
        }
        endProgressUpdates()
    }
}
