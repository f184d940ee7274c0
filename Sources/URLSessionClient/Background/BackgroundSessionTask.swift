public import Foundation
import Synchronization
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A task of a ``BackgroundSession``: a download or an upload that the service performs.
///
/// As with Apple, it is suspended until ``resume()``, which hands it over to the service. It then no longer needs this
/// process. The handover is retried until it succeeds; ``number`` waits for it.
///
/// The compiler cannot check a class with subclasses to be `Sendable`. This one has only constants and a lock.
public class BackgroundSessionTask: @unchecked Sendable {
    /// The state of a task, as in `URLSessionTask.State`.
    public enum State: Int, Sendable, Hashable {
        /// Runs or is queued.
        case running
        /// Waits for ``BackgroundSessionTask/resume()``.
        case suspended
        case canceling
        /// Succeeded, failed or was cancelled.
        case completed
    }

    /// The ``priority`` of tasks that can wait.
    public static let lowPriority: Float = 0.25
    /// The default ``priority``.
    public static let defaultPriority: Float = 0.5
    /// The ``priority`` of urgent tasks.
    public static let highPriority: Float = 0.75

    /// The number of the task, unique in its session and the same after a relaunch.
    ///
    /// It is chosen here and sent as the task's `clientTaskId`, so that it is known at once. The service has its own
    /// ``number``. The identifier of a task from the resume data of a failed one is derived from the failed task's
    /// number.
    public let taskIdentifier: Int

    /// The progress of the task. Cancelling, pausing or resuming it does the same to the task.
    public let progress = Progress(totalUnitCount: -1)

    let session: BackgroundSession
    let facts: Mutex<Facts>

    struct Facts {
        var state = State.suspended
        var key = ""
        /// The number of the task that this one repeats.
        var retryOf: Int64?
        /// The service's number, once it has the task.
        var number: Int64?
        /// The draft to hand over; `nil` when the service has the task or is receiving it.
        var draft: Draft?
        var terms = TaskTerms()
        var originalRequest: URLRequest?
        var currentRequest: URLRequest?
        var response: URLResponse?
        var suggestedFilename: String?
        var error: (any Error)?
        var received: Int64 = 0
        var expectedToReceive: Int64?
        var sent: Int64 = 0
        var expectedToSend: Int64?
        /// The reason why the content could not be fetched from the service.
        var loss: (any Error)?
        /// Whether the app cancelled the task for its resume data, and the data.
        var producesResumeData = false
        var resumeData: Data?
        /// The readers of ``BackgroundSessionTask/progressUpdates``.
        var watchers: [UUID: AsyncStream<ProgressUpdate>.Continuation] = [:]
        /// Whether no further progress is known, since the task or the session has ended.
        var isProgressOver = false
        /// The last step, for which the next call of the service waits.
        var lastStep: Task<Void, Never>?
    }

    init(_ session: BackgroundSession, _ facts: Facts) {
        taskIdentifier = Self.identifier(
            clientTaskId: facts.terms.clientTaskId, retryOf: facts.retryOf, number: facts.number)
        self.session = session
        self.facts = Mutex(facts)
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak self] in self?.cancel() }
        // The handlers may run later, when the state has changed again.
        progress.pausingHandler = { [weak self] in if let self, progress.isPaused { suspend() } }
        progress.resumingHandler = { [weak self] in if let self, !progress.isPaused { resume() } }
    }

    // MARK: Commands

    /// Starts or resumes the task.
    public func resume() {
        let isChange = facts.withLock { facts in
            guard facts.state == .suspended else { return false }
            facts.state = .running
            return true
        }
        guard isChange else { return }
        if progress.isPaused { progress.resume() }
        then { task in
            if await task.handOver(as: .running) { return }
            await task.tell { try await $0.command(.resume, task: $1, in: $2) }
        }
    }

    /// Stops the task. Received bytes are kept, and timeouts are paused.
    public func suspend() {
        let isChange = facts.withLock { facts in
            guard facts.state == .running else { return false }
            facts.state = .suspended
            return true
        }
        guard isChange else { return }
        if !progress.isPaused { progress.pause() }
        then { task in await task.tell { try await $0.command(.suspend, task: $1, in: $2) } }
    }

    /// Ends the task. The method returns at once; the task then completes with `URLError.cancelled`.
    public func cancel() {
        guard beginCancelling() else { return }
        then { task in await task.tell { try await $0.command(.cancel, task: $1, in: $2) } }
    }

    /// - Returns: Whether there is a task to cancel at the service.
    func beginCancelling() -> Bool {
        let (isChange, isLocal) = facts.withLock { facts in
            guard facts.state == .running || facts.state == .suspended else { return (false, false) }
            facts.state = .canceling
            return (true, facts.draft != nil)
        }
        if isChange, isLocal { then { task in await task.fail(URLError(.cancelled)) } }
        return isChange && !isLocal
    }

    // MARK: State

    /// The state of the task.
    public var state: State { facts.withLock { $0.state } }

    /// The service's number of the task, which other clients use. Waits until the service has the task.
    ///
    /// A task that was not resumed is handed over suspended.
    ///
    /// - Throws: A `URLError` if the service refused the task, or its file could not be read.
    public var number: Int64 {
        get async throws {
            then { task in _ = await task.handOver(as: .suspended) }
            await facts.withLock { $0.lastStep }?.value
            return try facts.withLock { facts throws in
                if let number = facts.number { return number }
                throw facts.error ?? URLError(.cancelled)
            }
        }
    }

    /// The app's name of the task, unique in its session.
    public var clientTaskId: String? { facts.withLock { $0.terms.clientTaskId } }

    /// The request at creation. Secret header fields of a task from before a relaunch are hidden.
    public var originalRequest: URLRequest? { facts.withLock { $0.originalRequest } }

    /// The request after redirects and changes.
    public var currentRequest: URLRequest? { facts.withLock { $0.currentRequest ?? $0.originalRequest } }

    /// The server's response after completion: an `HTTPURLResponse`.
    public var response: URLResponse? { facts.withLock { $0.response } }

    /// The error of a failed task; `nil` before, and for every response of a server.
    public var error: (any Error)? { facts.withLock { $0.error } }

    /// Bytes of content that were received.
    public var countOfBytesReceived: Int64 { facts.withLock { $0.received } }

    /// The length of the content in bytes, -1 if it is unknown.
    public var countOfBytesExpectedToReceive: Int64 { facts.withLock { $0.expectedToReceive ?? -1 } }

    /// Bytes of the body that were sent.
    public var countOfBytesSent: Int64 { facts.withLock { $0.sent } }

    /// The length of the body in bytes, -1 if it is unknown.
    public var countOfBytesExpectedToSend: Int64 { facts.withLock { $0.expectedToSend ?? -1 } }

    // MARK: Terms

    /// The features of the service beyond Apple's: digests, segments, mirrors, destinations, groups, metadata.
    ///
    /// Set them before the handover; later changes reach the service only through the properties below. The
    /// ``clientTaskId`` is fixed at creation.
    public var terms: TaskTerms {
        get { facts.withLock { $0.terms } }
        set {
            facts.withLock { facts in
                let name = facts.terms.clientTaskId
                facts.terms = newValue
                facts.terms.clientTaskId = name
            }
        }
    }

    /// The priority among other tasks, 0 to 1.
    public var priority: Float {
        get { Float(terms.priority) }
        set { set({ $0.priority = Double(newValue) }, TaskChange { $0.priority = Double(newValue) }) }
    }

    /// The app's description of the task, stored with it.
    public var taskDescription: String? {
        get { terms.taskDescription }
        set {
            let change = newValue.map { Change.set($0) } ?? .clear
            set({ $0.taskDescription = newValue }, TaskChange { $0.taskDescription = change })
        }
    }

    /// The earliest begin of the task.
    public var earliestBeginDate: Date? {
        get { terms.earliestBeginDate.flatMap { Date(rfc3339: $0) } }
        set {
            let text = newValue?.rfc3339
            let change = text.map { Change.set($0) } ?? .clear
            set({ $0.earliestBeginDate = text }, TaskChange { $0.earliestBeginDate = change })
        }
    }

    /// The app's estimate of the bytes to send, -1 for none. Set it before the handover.
    public var countOfBytesClientExpectsToSend: Int64 {
        get { terms.countOfBytesClientExpectsToSend ?? -1 }
        set { set({ $0.countOfBytesClientExpectsToSend = newValue < 0 ? nil : newValue }, nil) }
    }

    /// The app's estimate of the bytes to receive, -1 for none. Set it before the handover.
    public var countOfBytesClientExpectsToReceive: Int64 {
        get { terms.countOfBytesClientExpectsToReceive ?? -1 }
        set { set({ $0.countOfBytesClientExpectsToReceive = newValue < 0 ? nil : newValue }, nil) }
    }

    private func set(_ apply: (inout TaskTerms) -> Void, _ change: TaskChange?) {
        let isHandedOver = facts.withLock { facts in
            apply(&facts.terms)
            return facts.draft == nil
        }
        guard isHandedOver, let change else { return }
        then { task in await task.tell { try await $0.change(change, ofTask: $1, in: $2) } }
    }
}

extension BackgroundSessionTask: Hashable, CustomStringConvertible {
    public static func == (left: BackgroundSessionTask, right: BackgroundSessionTask) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    public var description: String {
        let (state, url) = facts.withLock { ($0.state, $0.originalRequest?.url) }
        return "\(type(of: self)) \(taskIdentifier) (\(state)) \(url?.absoluteString ?? "")"
    }
}

/// A task whose response is delivered to the delegate as data: an upload.
public class BackgroundSessionDataTask: BackgroundSessionTask, @unchecked Sendable {}

/// A task that sends a file.
///
/// The file is read during the handover, and is not needed afterwards.
public final class BackgroundSessionUploadTask: BackgroundSessionDataTask, @unchecked Sendable {}

/// A task whose content is delivered as a file.
public final class BackgroundSessionDownloadTask: BackgroundSessionTask, @unchecked Sendable {
    /// The file name that the server suggests, without a path, once the content has arrived; `nil` if it suggests none.
    public var suggestedFilename: String? { facts.withLock { $0.suggestedFilename } }

    /// Ends the task so that another one can resume it: ``BackgroundSession/downloadTask(withResumeData:)``.
    ///
    /// - Parameter completionHandler: Receives `nil` if the download cannot be resumed.
    public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        guard beginCancelling() else { return completionHandler(nil) }
        facts.withLock { $0.producesResumeData = true }
        then { task in
            let answer = await task.tell { try await $0.cancelByProducingResumeData($1, in: $2) }
            let data = (answer?.resumeData).map { Data($0.utf8) }
            task.facts.withLock { $0.resumeData = data }
            completionHandler(data)
        }
    }

    /// Ends the task so that another one can resume it.
    ///
    /// - Returns: `nil` if the download cannot be resumed.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel(byProducingResumeData: { continuation.resume(returning: $0) })
        }
    }
}
