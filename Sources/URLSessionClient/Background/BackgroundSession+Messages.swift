import Foundation
import Synchronization
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Translates the session's events to the delegate's messages.
extension BackgroundSession {
    /// Reads the session's events until the session ends, and delivers each.
    func read(_ opening: Task<Session, any Error>) async {
        do {
            let session = try await opening.value
            facts.withLock { facts in
                facts.told = session.acknowledgedSeq
                facts.acknowledged = session.acknowledgedSeq
                facts.description = facts.description ?? session.sessionDescription
                if session.lastEventSeq > session.acknowledgedSeq {
                    facts.lastMissed = max(facts.lastMissed ?? 0, session.lastEventSeq)
                }
            }
            try await askAgain()
            await finishIfCaughtUp()
            for try await event in client.stream(of: identifier) {
                try await tell(event)
                guard event.type != .sessionDidBecomeInvalid else { return }
            }
        } catch  where error is CancellationError || Task.isCancelled {
        } catch {
            await invalidate(error)
        }
    }

    /// Sends the last message, after those of tasks whose handover ends with the session.
    func invalidate(_ error: (any Error)?) async {
        let tasks = facts.withLock { facts in
            facts.isOver = true
            return Array(facts.tasks.values)
        }
        for task in tasks { await task.facts.withLock { $0.lastStep }?.value }
        await call { $0.urlSession(self, didBecomeInvalidWithError: error) }
        forget()
    }

    /// Calls the delegate on its queue, and waits until it returns, or until the app cancels the queue's operations.
    func call(_ message: @escaping @Sendable (any BackgroundSessionDelegate) -> Void) async {
        guard let delegate else { return }
        await withCheckedContinuation { continuation in
            let operation = BlockOperation { message(delegate) }
            // The block of a cancelled operation does not run, but this one does.
            operation.completionBlock = { continuation.resume() }
            delegateQueue.addOperation(operation)
        }
    }

    func callTaskDelegate(_ message: @escaping @Sendable (any BackgroundSessionTaskDelegate) -> Void) async {
        await call { if let delegate = $0 as? any BackgroundSessionTaskDelegate { message(delegate) } }
    }

    // MARK: Events

    private func tell(_ event: Event) async throws {
        if event.type == .sessionDidBecomeInvalid {
            let data: EventData.DidBecomeInvalid = try event.data.read()
            if let seq = event.seq { try await acknowledge(upTo: seq) }
            return await invalidate(data.error.map { URLError($0) })
        }
        if let task = try await task(of: event) { try await tell(event, of: task) }
        if let seq = event.seq { await told(through: seq) }
    }

    private func tell(_ event: Event, of task: BackgroundSessionTask) async throws {
        switch event.type {
        case .taskIsWaitingForConnectivity:
            await callTaskDelegate { $0.urlSession(self, taskIsWaitingForConnectivity: task) }
        case .taskWillRetry:
            let retry: EventData.WillRetry = try event.data.read()
            await callTaskDelegate { $0.urlSession(self, task: task, willRetry: retry) }
        case .taskDidSendBodyData:
            let data: EventData.DidSendBodyData = try event.data.read()
            task.moved(sent: data.totalBytesSent, ofSent: data.totalBytesExpectedToSend)
            await callTaskDelegate {
                $0.urlSession(
                    self, task: task, didSendBodyData: data.bytesSent, totalBytesSent: data.totalBytesSent,
                    totalBytesExpectedToSend: data.totalBytesExpectedToSend ?? -1)
            }
        case .taskDidFinishCollectingMetrics:
            let data: TaskMetrics = try event.data.read()
            if data.transactionMetrics.last?.statusCode != nil { await learnResponse(to: task) }
            let metrics = BackgroundSessionTaskMetrics(data, of: task)
            await callTaskDelegate { $0.urlSession(self, task: task, didFinishCollecting: metrics) }
        case .taskWillBeginDelayedRequest: await ask(task, about: try event.data.read() as DelayedRequest)
        case .taskDidReceiveChallenge: await ask(task, about: try event.data.read() as AuthenticationChallenge)
        case .taskDidComplete: try await didComplete(task, try event.data.read())
        default:
            guard let download = task as? BackgroundSessionDownloadTask else { return }
            try await tell(event, ofDownload: download)
        }
    }

    private func tell(_ event: Event, ofDownload task: BackgroundSessionDownloadTask) async throws {
        switch event.type {
        case .taskDidWriteData:
            let data: EventData.DidWriteData = try event.data.read()
            task.moved(received: data.totalBytesWritten, ofReceived: data.totalBytesExpectedToWrite)
            await callDownloadDelegate {
                $0.urlSession(
                    self, downloadTask: task, didWriteData: data.bytesWritten,
                    totalBytesWritten: data.totalBytesWritten,
                    totalBytesExpectedToWrite: data.totalBytesExpectedToWrite ?? -1)
            }
        case .taskDidResumeAtOffset:
            let data: EventData.DidResumeAtOffset = try event.data.read()
            task.moved(received: data.fileOffset, ofReceived: data.expectedTotalBytes)
            await callDownloadDelegate {
                $0.urlSession(
                    self, downloadTask: task, didResumeAtOffset: data.fileOffset,
                    expectedTotalBytes: data.expectedTotalBytes ?? -1)
            }
        case .taskDidFinishDownloading:
            let data: EventData.DidFinishDownloading = try event.data.read()
            // Progress events are live and may end before the last byte. Apple's progress never does.
            let rest = data.length - task.countOfBytesReceived
            task.moved(received: data.length, ofReceived: data.length)
            if rest > 0 {
                await callDownloadDelegate {
                    $0.urlSession(
                        self, downloadTask: task, didWriteData: rest, totalBytesWritten: data.length,
                        totalBytesExpectedToWrite: data.length)
                }
            }
            task.facts.withLock { $0.suggestedFilename = data.suggestedFilename }
            try await didFinishDownloading(task)
        default: break
        }
    }

    private func callDownloadDelegate(
        _ message: @escaping @Sendable (any BackgroundSessionDownloadDelegate) -> Void
    ) async {
        await call { if let delegate = $0 as? any BackgroundSessionDownloadDelegate { message(delegate) } }
    }

    // MARK: Contents

    /// Fetches the content and passes it to the delegate in a file of its own.
    private func didFinishDownloading(_ task: BackgroundSessionDownloadTask) async throws {
        guard delegate is any BackgroundSessionDownloadDelegate, let number = task.facts.withLock({ $0.number }) else {
            return
        }
        // A content that the service moved to its destination is not fetched.
        guard task.terms.destination == nil else { return }
        // The file is in a folder of its own: an interrupted call leaves its bytes beside it under another name.
        let folder = temporaryDirectory.appending(path: "BackgroundSession-\(UUID().uuidString)")
        let file = folder.appending(path: "content.download")
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            _ = try await insist { try await $0.content(ofTask: number, in: $1, to: file.path) }
        } catch {
            try Task.checkCancellation()
            return task.facts.withLock { $0.loss = URLError(notHandedOver: error, $0.originalRequest?.url) }
        }
        // As with Apple, the delegate has the response by then.
        await learnResponse(to: task)
        await callDownloadDelegate { $0.urlSession(self, downloadTask: task, didFinishDownloadingTo: file) }
    }

    /// Reads the response of a task whose completion was not delivered yet, and the request after redirects.
    private func learnResponse(to task: BackgroundSessionTask) async {
        guard task.response == nil, let number = task.facts.withLock({ $0.number }),
            let shown = try? await insist({ try await $0.task(number, in: $1) })
        else { return }
        task.facts.withLock { facts in
            facts.response = shown.response.flatMap { HTTPURLResponse($0) }
            facts.currentRequest = shown.currentRequest.flatMap { URLRequest($0) } ?? facts.currentRequest
        }
    }

    /// Fetches the server's response to an upload and passes each piece to the delegate, once. The next piece is
    /// fetched when the delegate has handled the one before.
    private func fetchAnswer(to task: BackgroundSessionDataTask) async {
        guard delegate is any BackgroundSessionDataDelegate, let number = task.facts.withLock({ $0.number }) else {
            return
        }
        try? await client.bytes(at: Client.contentPath(number, identifier), patience: Patience()) { piece in
            await call {
                ($0 as? any BackgroundSessionDataDelegate)?.urlSession(self, dataTask: task, didReceive: piece.bytes)
            }
        }
    }

    private func didComplete(_ task: BackgroundSessionTask, _ data: EventData.DidComplete) async throws {
        if let upload = task as? BackgroundSessionDataTask { await fetchAnswer(to: upload) }
        try Task.checkCancellation()
        var error = task.facts.withLock { $0.loss }
        if let failure = data.error {
            error = URLError(failure, resumeData: await resumeData(of: task, after: failure))
        }
        let response = data.response.flatMap { HTTPURLResponse($0) }
        if error == nil, let response, response.statusCode < 400 { await tellLastProgress(ofUpload: task) }
        task.complete(with: error, response: response)
        await didComplete(task)
    }

    /// Progress events are live and may end before the last byte. Apple's progress never does.
    private func tellLastProgress(ofUpload task: BackgroundSessionTask) async {
        guard let length = task.facts.withLock({ $0.expectedToSend }) else { return }
        let rest = length - task.countOfBytesSent
        task.moved(sent: length)
        guard rest > 0 else { return }
        await callTaskDelegate {
            $0.urlSession(
                self, task: task, didSendBodyData: rest, totalBytesSent: length, totalBytesExpectedToSend: length)
        }
    }

    /// Delivers the messages of a completed task that was created again under its name: at once, or after all earlier
    /// events, one of which may be its completion.
    func tellAgain(_ task: BackgroundSessionTask, as shown: SessionTask) async throws {
        let last = try await insist { try await $0.session($1) }.lastEventSeq
        facts.withLock { $0.completedBefore.append(CompletedBefore(task: task, shown: shown, lastSeq: last)) }
        await tellAgainWhatIsDue()
    }

    private func tellAgainWhatIsDue() async {
        let due = facts.withLock { facts in
            let told = facts.told
            defer { facts.completedBefore.removeAll { $0.lastSeq <= told } }
            return facts.completedBefore.filter { $0.lastSeq <= told }
        }
        for case let before in due where before.task.state != .completed {
            let (task, shown) = (before.task, before.shown)
            task.facts.withLock { $0.suggestedFilename = shown.response?.suggestedFilename }
            // The file is delivered again while the service has the content.
            if let download = task as? BackgroundSessionDownloadTask, shown.content != nil {
                try? await didFinishDownloading(download)
            }
            task.complete(
                with: shown.error.map { URLError($0) }, response: shown.response.flatMap { HTTPURLResponse($0) })
            await didComplete(task)
        }
    }

    func didComplete(_ task: BackgroundSessionTask) async {
        let error = task.error
        await callTaskDelegate { $0.urlSession(self, task: task, didCompleteWithError: error) }
        let key = task.facts.withLock { $0.key }
        facts.withLock { facts in
            facts.tasks[key] = nil
            facts.repeating.removeAll { $0 === task }
            facts.asked = facts.asked.filter { $0.value !== task }
        }
    }

    // MARK: Acknowledging

    /// Acknowledges an event whose message the delegate has handled.
    private func told(through seq: Int64) async {
        facts.withLock { facts in
            facts.told = max(facts.told, seq)
            guard facts.acknowledging == nil else { return }
            facts.acknowledging = Task { await self.acknowledge() }
        }
        await tellAgainWhatIsDue()
        await finishIfCaughtUp()
    }

    /// Acknowledges until all handled events are acknowledged. Events that are handled meanwhile go with the next call.
    private func acknowledge() async {
        while let seq = nextToAcknowledge() {
            do {
                try await acknowledge(upTo: seq)
                facts.withLock { $0.acknowledged = seq }
            } catch {
                return facts.withLock { $0.acknowledging = nil }
            }
        }
    }

    private func nextToAcknowledge() -> Int64? {
        facts.withLock { facts in
            if facts.told > facts.acknowledged { return facts.told }
            facts.acknowledging = nil
            return nil
        }
    }

    private func acknowledge(upTo seq: Int64) async throws {
        try await insist { try await $0.acknowledge(through: seq, in: $1) }
    }

    // MARK: Launches

    /// Handles a launch that covers all events through this one.
    func wasLaunched(through seq: Int64) async {
        facts.withLock { $0.lastMissed = max($0.lastMissed ?? 0, seq) }
        await finishIfCaughtUp()
    }

    private func finishIfCaughtUp() async {
        let isCaughtUp = facts.withLock { facts in
            guard let last = facts.lastMissed, facts.told >= last else { return false }
            facts.lastMissed = nil
            return true
        }
        if isCaughtUp { await call { $0.urlSessionDidFinishEvents(forBackgroundURLSession: self) } }
    }

    // MARK: Tasks

    static func key(clientTaskId: String?, number: Int64?) -> String { clientTaskId ?? "#\(number ?? 0)" }

    /// The task of an event: the existing object, or a new one from the service's task.
    private func task(of event: Event) async throws -> BackgroundSessionTask? {
        guard let number = event.taskIdentifier else { return nil }
        let key = Self.key(clientTaskId: event.clientTaskId, number: number)
        if let task = facts.withLock({ $0.tasks[key] }) {
            task.facts.withLock { $0.number = number }
            return task
        }
        do {
            return await task(as: try await insist { try await $0.task(number, in: $1) })
        } catch let problem as Problem where problem.code == .notFound {
            // A task that the service has deleted has no messages.
            return nil
        }
    }

    func task(as shown: SessionTask) async -> BackgroundSessionTask {
        if shown.retryOf != nil { await waitForRepeatingTasks() }
        let key = Self.key(clientTaskId: shown.terms.clientTaskId, number: shown.taskIdentifier)
        let (task, isNew) = facts.withLock { facts in
            if let task = facts.tasks[key] { return (task, false) }
            var known = BackgroundSessionTask.Facts()
            known.key = key
            known.retryOf = shown.retryOf
            known.number = shown.taskIdentifier
            known.terms = shown.terms
            let task =
                shown.kind == .upload
                ? BackgroundSessionUploadTask(self, known) : BackgroundSessionDownloadTask(self, known)
            facts.tasks[key] = task
            return (task, true)
        }
        if isNew { task.adopt(shown, isOwn: false) }
        return task
    }
}
