public import Foundation
import Synchronization
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A background session in Apple's shape, performed by `urlsessiond`.
///
///     let session = BackgroundSession(identifier: "com.example.downloads", delegate: downloads)
///     session.downloadTask(with: URL(string: "https://example.com/film.mp4")!).resume()
///
/// Create it with the same identifier at each start of the program. Meanwhile the service continues the session's
/// tasks. The delegate first receives all missed messages in order, then the current ones. While the object exists the
/// app counts as attached and is not launched. Without the process, the service launches the app through
/// ``LaunchReceiver`` when there is something to handle.
///
/// As with Apple, a session retains its delegate until it is invalidated, and an identifier should have one object at a
/// time.
public final class BackgroundSession: Sendable {
    /// The name of the session.
    public let identifier: String

    /// The queue on which the delegate's methods are called, one at a time.
    public let delegateQueue: OperationQueue

    let client: Client
    let temporaryDirectory: URL
    let asksBeforeDelayedRequests: Bool
    let facts: Mutex<Facts>
    private let values: SessionConfiguration
    private let opening: Task<Session, any Error>

    struct Facts {
        /// Tasks that are not completed, or whose completion was not delivered yet.
        var tasks: [String: BackgroundSessionTask] = [:]
        /// Tasks that repeat others and have no number yet.
        var repeating: [BackgroundSessionTask] = []
        /// Questions that the delegate has received, with the waiting tasks.
        var asked: [String: BackgroundSessionTask] = [:]
        /// The delegate; `nil` after the end of the session.
        var delegate: (any BackgroundSessionDelegate)?
        /// The last event that the delegate has handled, and the last one that is acknowledged.
        var told: Int64 = 0
        var acknowledged: Int64 = 0
        var acknowledging: Task<Void, Never>?
        /// The last event that was stored before the app attached.
        var lastMissed: Int64?
        var description: String?
        /// The last change of the description, for which the next one waits.
        var describing: Task<Void, Never>?
        /// Tasks whose messages are delivered again after all earlier events.
        var completedBefore: [CompletedBefore] = []
        var reading: Task<Void, Never>?
        /// Whether the session has ended, so that no task runs.
        var isOver = false
        var warnings: Set<Warning> = []
    }

    /// A task that was completed before it was created again under its name.
    struct CompletedBefore {
        let task: BackgroundSessionTask
        /// The task as the service has it.
        let shown: SessionTask
        /// The session's last event when the task was created again.
        let lastSeq: Int64
    }

    /// Creates the session object of Apple's shape.
    ///
    /// - Parameters:
    ///   - configuration: The session and its service. It is copied.
    ///   - delegate: The receiver of the messages. It is retained until the session is invalidated.
    ///   - queue: The delegate's queue; if `nil`, a serial queue is created. Messages stay ordered on a concurrent
    ///     queue.
    public convenience init(
        configuration: BackgroundSessionConfiguration, delegate: (any BackgroundSessionDelegate)?,
        delegateQueue queue: OperationQueue? = nil
    ) {
        self.init(
            identifier: configuration.identifier ?? "", configuration: configuration.values,
            client: configuration.client, temporaryDirectory: configuration.temporaryDirectory, delegate: delegate,
            delegateQueue: queue)
    }

    /// Creates the session object, and the session at the service, or reconnects to it.
    ///
    /// - Parameters:
    ///   - identifier: The session's name, unique in the app.
    ///   - configuration: The configuration that the service freezes. The defaults match any existing session.
    ///   - client: The service and the app's key.
    ///   - temporaryDirectory: The folder of finished downloads until the delegate moves them.
    ///   - delegate: The receiver of the messages. It is retained until the session is invalidated.
    ///   - queue: The delegate's queue; if `nil`, a serial queue is created.
    public init(
        identifier: String, configuration: SessionConfiguration = SessionConfiguration(), client: Client = .shared,
        temporaryDirectory: URL = FileManager.default.temporaryDirectory, delegate: (any BackgroundSessionDelegate)?,
        delegateQueue queue: OperationQueue? = nil
    ) {
        self.identifier = identifier
        self.client = client
        self.temporaryDirectory = temporaryDirectory
        values = configuration
        asksBeforeDelayedRequests = Self.asksBeforeDelayedRequests(delegate)
        delegateQueue = queue ?? Self.serialQueue(named: identifier)
        opening = Task {
            var patience = Patience()
            let wanted = configuration == SessionConfiguration() ? nil : configuration
            while true {
                do {
                    return try await client.openSession(identifier, configuration: wanted)
                } catch {
                    if !patience.hasWaited { Self.warn(identifier, Self.obstacle(error, at: client)) }
                    try await patience.wait(after: error)
                }
            }
        }
        facts = Mutex(Facts(delegate: delegate))
        client.openSessions.add(self)
        let reading = Task { await self.read(opening) }
        facts.withLock { $0.reading = reading }
    }

    /// The reason why the session could not be opened, for the program's log. A delegate without methods reports
    /// nothing.
    private static func obstacle(_ error: any Error, at client: Client) -> String {
        let reason = error.localizedDescription
        let origin = "from the configuration's client or, with Client.shared, from"
        switch error {
        case ClientError.badURL: return "\(reason) The URL comes \(origin) URLSESSION_URL."
        case let problem as Problem where problem.status == 401:
            return "\(reason) The key comes \(origin) URLSESSION_KEY."
        case is Problem: return reason
        default: return "no service answers at \(client.base) (\(reason)); the URL comes \(origin) URLSESSION_URL"
        }
    }

    private static func serialQueue(named name: String) -> OperationQueue {
        let queue = OperationQueue()
        queue.name = name
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    // MARK: Properties

    /// A copy of the session's configuration.
    public var configuration: BackgroundSessionConfiguration {
        let copy = BackgroundSessionConfiguration.background(withIdentifier: identifier)
        (copy.values, copy.client, copy.temporaryDirectory) = (values, client, temporaryDirectory)
        return copy
    }

    /// The receiver of the messages; `nil` after the end of the session.
    public var delegate: (any BackgroundSessionDelegate)? { facts.withLock { $0.delegate } }

    /// The app's description of the session, stored with it.
    public var sessionDescription: String? {
        get { facts.withLock { $0.description } }
        set {
            let change = SessionChange { $0.sessionDescription = newValue.map { .set($0) } ?? .clear }
            facts.withLock { facts in
                facts.description = newValue
                let last = facts.describing
                facts.describing = Task {
                    await last?.value
                    _ = try? await insist { try await $0.change(change, ofSession: $1) }
                }
            }
        }
    }

    // MARK: Tasks

    /// Creates a download.
    ///
    /// - Parameter clientTaskId: See ``downloadTask(with:clientTaskId:)``.
    public func downloadTask(with url: URL, clientTaskId: String? = nil) -> BackgroundSessionDownloadTask {
        downloadTask(with: URLRequest(url: url), clientTaskId: clientTaskId)
    }

    /// Creates a download.
    ///
    /// - Parameters:
    ///   - request: URL, method, header fields, and the body of a POST. Timeouts and networks are the session's.
    ///   - clientTaskId: The app's name of the task. The task exists once, however often it is created, and the
    ///     ``BackgroundSessionTask/taskIdentifier`` is derived from the name. Without a name a fresh one is chosen. If
    ///     the task of that name is completed, the delegate receives its result again, with its file while the service
    ///     has it.
    public func downloadTask(with request: URLRequest, clientTaskId: String? = nil) -> BackgroundSessionDownloadTask {
        make(.download(request), request, clientTaskId) { BackgroundSessionDownloadTask(self, $0) }
    }

    /// Creates a download that resumes a cancelled or failed one. The data can be used once, within 24 hours.
    ///
    /// - Parameter resumeData: The data of ``BackgroundSessionDownloadTask/cancel(byProducingResumeData:)``, or
    ///   `downloadTaskResumeData` of the error of a task of this session. A task from the data of an error has the
    ///   terms of the failed one, and begins at the first byte if the service has kept none.
    public func downloadTask(withResumeData resumeData: Data) -> BackgroundSessionDownloadTask {
        guard let failed = FailedDownload(resumeData), failed.session == identifier else {
            return make(.resumed(resumeData), nil, nil) { BackgroundSessionDownloadTask(self, $0) }
        }
        let draft = Draft.repeated(failed, original: resumeData, idempotencyKey: UUID().uuidString)
        return make(draft, nil, nil) { BackgroundSessionDownloadTask(self, $0) }
    }

    /// Creates an upload of a file. The request's own body is ignored, and GET becomes PUT.
    ///
    /// The file has to exist until the service has the task, for which ``BackgroundSessionTask/number`` waits.
    ///
    /// - Parameter clientTaskId: See ``downloadTask(with:clientTaskId:)``.
    public func uploadTask(
        with request: URLRequest, fromFile file: URL, clientTaskId: String? = nil
    ) -> BackgroundSessionUploadTask {
        make(.upload(request, file: file), request, clientTaskId) { BackgroundSessionUploadTask(self, $0) }
    }

    private func make<Made: BackgroundSessionTask>(
        _ draft: Draft, _ request: URLRequest?, _ name: String?, _ create: (BackgroundSessionTask.Facts) -> Made
    ) -> Made {
        var known = BackgroundSessionTask.Facts()
        known.draft = draft
        known.originalRequest = request
        let name = name ?? BackgroundSessionTask.freshName()
        known.key = name
        if case .repeated(let failed, _, _) = draft {
            known.retryOf = failed.number
        } else {
            known.terms.clientTaskId = name
        }
        if facts.withLock({ $0.isOver }) {
            warn(.taskOfEndedSession, "a task was created in an invalidated session: it does not run")
        }
        let isRepeating = known.retryOf != nil
        let task = create(known)
        facts.withLock { facts in
            facts.tasks[name] = task
            if isRepeating { facts.repeating.append(task) }
        }
        (delegate as? any BackgroundSessionTaskDelegate)?.urlSession(self, didCreateTask: task)
        return task
    }

    /// The unfinished tasks, including those from before a relaunch.
    public var allTasks: [BackgroundSessionTask] {
        get async {
            try? await Client.each { cursor in
                try await insist {
                    try await $0.tasks(in: $1, states: [.suspended, .running, .canceling], cursor: cursor)
                }
            } use: {
                _ = await task(as: $0)
            }
            return facts.withLock { Array($0.tasks.values) }.filter { $0.state != .completed }
                .sorted { $0.taskIdentifier < $1.taskIdentifier }
        }
    }

    /// The unfinished tasks by type. There are no data tasks.
    public var tasks: ([BackgroundSessionDataTask], [BackgroundSessionUploadTask], [BackgroundSessionDownloadTask])
    {
        get async {
            let all = await allTasks
            return (
                [], all.compactMap { $0 as? BackgroundSessionUploadTask },
                all.compactMap { $0 as? BackgroundSessionDownloadTask }
            )
        }
    }

    /// Passes the unfinished tasks to the handler.
    public func getAllTasks(completionHandler: @escaping @Sendable ([BackgroundSessionTask]) -> Void) {
        Task { completionHandler(await allTasks) }
    }

    /// Passes the unfinished tasks to the handler by type.
    public func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [BackgroundSessionDataTask], [BackgroundSessionUploadTask], [BackgroundSessionDownloadTask]
            ) -> Void
    ) {
        Task {
            let (data, uploads, downloads) = await tasks
            completionHandler(data, uploads, downloads)
        }
    }

    // MARK: The end

    /// Accepts no more tasks, and ends when the existing ones have finished.
    public func finishTasksAndInvalidate() { end { try await $0.finishTasksAndInvalidate($1) } }

    /// Cancels all tasks and ends.
    public func invalidateAndCancel() { end { try await $0.invalidateAndCancel($1) } }

    private func end(_ call: @escaping @Sendable (Client, String) async throws -> Session) {
        let steps = facts.withLock { Array($0.tasks.values) }.compactMap { $0.facts.withLock { $0.lastStep } }
        Task {
            for step in steps { await step.value }
            do { _ = try await insist(call) } catch { await invalidate(error) }
        }
    }

    /// Deletes the session's cookies and credentials and closes its connections.
    public func reset(completionHandler: @escaping @Sendable () -> Void) {
        Task {
            await reset()
            completionHandler()
        }
    }

    /// Deletes the session's cookies and credentials and closes its connections.
    public func reset() async { _ = try? await insist { try await $0.resetSession($1) } }

    /// Detaches from the session as the end of the process would: its tasks continue, and the app is launched for them.
    ///
    /// Delivered messages are acknowledged first. The object cannot be used afterwards.
    public func detach() async {
        let reading = facts.withLock { $0.reading }
        reading?.cancel()
        await reading?.value
        await facts.withLock { $0.acknowledging }?.value
        forget()
    }

    func forget() {
        client.openSessions.remove(self)
        let tasks = facts.withLock { facts in
            defer {
                facts.isOver = true
                facts.delegate = nil
                facts.tasks.removeAll()
                facts.repeating.removeAll()
                facts.asked.removeAll()
            }
            return Array(facts.tasks.values)
        }
        for task in tasks { task.endProgressUpdates() }
    }

    // MARK: The service

    /// The incarnation of the session.
    var incarnation: Int64 { get async throws { try await opening.value.incarnation } }

    /// Calls the service once the session is open, with retries while the service is away.
    func insist<Answer: Sendable>(
        _ call: @escaping @Sendable (Client, _ session: String) async throws -> Answer
    ) async throws -> Answer {
        _ = try await opening.value
        return try await Patience.insist { try await call(client, identifier) }
    }
}
