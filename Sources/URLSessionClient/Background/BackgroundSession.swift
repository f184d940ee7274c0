public import Foundation
import Synchronization
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Apple's background `URLSession`, kept by `urlsessiond`.
///
///     let session = BackgroundSession(identifier: "com.example.downloads", delegate: downloads)
///     session.downloadTask(with: URL(string: "https://example.com/film.mp4")!).resume()
///
/// Make it under the same identifier each time the program starts. The service goes on with the session's tasks
/// meanwhile, and the delegate hears what happened: all that was not heard before, in order, then what happens now. While
/// the object lives the app counts as attached and is not launched. When the process is gone, the service launches the
/// app once there is something to handle, which ``LaunchReceiver`` takes.
///
/// As with Apple, a session holds its delegate until it is invalidated, and one object at a time should have an identifier.
public final class BackgroundSession: Sendable {
    /// The session's name.
    public let identifier: String

    /// Where the delegate's methods are called, one at a time.
    public let delegateQueue: OperationQueue

    let client: Client
    let temporaryDirectory: URL
    let asksBeforeDelayedRequests: Bool
    let facts: Mutex<Facts>
    private let values: SessionConfiguration
    private let opening: Task<Session, any Error>

    struct Facts {
        /// Those that are not completed, or whose completion is not told yet.
        var tasks: [String: BackgroundSessionTask] = [:]
        /// Those that repeat another and have no number yet.
        var repeating: [BackgroundSessionTask] = []
        /// Questions that the delegate was asked, with the tasks that wait.
        var asked: [String: BackgroundSessionTask] = [:]
        /// Until the session is over.
        var delegate: (any BackgroundSessionDelegate)?
        /// Through which event the delegate has been told, and through which the service knows.
        var told: Int64 = 0
        var acknowledged: Int64 = 0
        var acknowledging: Task<Void, Never>?
        /// The last event that was stored before the app attached.
        var lastMissed: Int64?
        var description: String?
        /// Tasks that are told again once all is told that happened before.
        var completedBefore: [CompletedBefore] = []
        var reading: Task<Void, Never>?
        /// No task of it is performed any more.
        var isOver = false
        var warnings: Set<Warning> = []
    }

    /// A task that was completed before it was made again under its name.
    struct CompletedBefore {
        let task: BackgroundSessionTask
        /// As the service has it.
        let shown: SessionTask
        /// The session's last event when it was made again.
        let lastSeq: Int64
    }

    /// Makes the session object of Apple's shape.
    ///
    /// - Parameters:
    ///   - configuration: Of which session of which service. It is copied.
    ///   - delegate: Who is told. It is held until the session is invalidated.
    ///   - queue: Where. Nil makes a serial queue. On one with more than one thread messages still come in order.
    public convenience init(
        configuration: BackgroundSessionConfiguration, delegate: (any BackgroundSessionDelegate)?,
        delegateQueue queue: OperationQueue? = nil
    ) {
        self.init(
            identifier: configuration.identifier ?? "", configuration: configuration.values,
            client: configuration.client, temporaryDirectory: configuration.temporaryDirectory, delegate: delegate,
            delegateQueue: queue)
    }

    /// Makes the session object: creates the session at the service, or reconnects to it.
    ///
    /// - Parameters:
    ///   - identifier: The session's name, unique among the app's.
    ///   - configuration: What the service freezes. Left at its defaults it fits whatever the session has.
    ///   - client: The service, and whose key is used.
    ///   - temporaryDirectory: Where finished downloads lie until the delegate moves them.
    ///   - delegate: Who is told. It is held until the session is invalidated.
    ///   - queue: Where. Nil makes a serial queue.
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

    /// Why the session could not be opened, for the program's log, where a program without its delegate's methods shows
    /// nothing.
    private static func obstacle(_ error: any Error, at client: Client) -> String {
        let reason = error.localizedDescription
        let origin = "of the configuration's client or, with Client.shared, of"
        switch error {
        case ClientError.badURL: return "\(reason) The URL is that \(origin) URLSESSION_URL."
        case let problem as Problem where problem.status == 401:
            return "\(reason) The key is that \(origin) URLSESSION_KEY."
        case is Problem: return reason
        default: return "no service answers at \(client.base) (\(reason)); the URL is that \(origin) URLSESSION_URL"
        }
    }

    private static func serialQueue(named name: String) -> OperationQueue {
        let queue = OperationQueue()
        queue.name = name
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    // MARK: Properties

    /// A copy of what the session was made with.
    public var configuration: BackgroundSessionConfiguration {
        let copy = BackgroundSessionConfiguration.background(withIdentifier: identifier)
        (copy.values, copy.client, copy.temporaryDirectory) = (values, client, temporaryDirectory)
        return copy
    }

    /// Who is told; nil when the session is over.
    public var delegate: (any BackgroundSessionDelegate)? { facts.withLock { $0.delegate } }

    /// The app's words about the session. They are kept with it.
    public var sessionDescription: String? {
        get { facts.withLock { $0.description } }
        set {
            facts.withLock { $0.description = newValue }
            let change = SessionChange { $0.sessionDescription = newValue.map { .set($0) } ?? .clear }
            Task { try? await insist { try await $0.change(change, ofSession: $1) } }
        }
    }

    // MARK: Tasks

    /// Makes a download.
    ///
    /// - Parameter clientTaskId: As of ``downloadTask(with:clientTaskId:)``.
    public func downloadTask(with url: URL, clientTaskId: String? = nil) -> BackgroundSessionDownloadTask {
        downloadTask(with: URLRequest(url: url), clientTaskId: clientTaskId)
    }

    /// Makes a download.
    ///
    /// - Parameters:
    ///   - request: URL, method, header fields, and what a POST sends. Timeouts and networks are the session's.
    ///   - clientTaskId: A name of the app's under which the task exists once, however often it is made: the
    ///     ``BackgroundSessionTask/taskIdentifier`` is made of it. Without one a fresh one is chosen. Where the task of
    ///     that name is completed already, the delegate is told again how, with its file while the service has it.
    public func downloadTask(with request: URLRequest, clientTaskId: String? = nil) -> BackgroundSessionDownloadTask {
        make(.download(request), request, clientTaskId) { BackgroundSessionDownloadTask(self, $0) }
    }

    /// Makes a download that continues another one, which was cancelled or failed. The data can be used once, for 24 hours.
    ///
    /// - Parameter resumeData: The data of ``BackgroundSessionDownloadTask/cancel(byProducingResumeData:)``, or
    ///   `downloadTaskResumeData` of the error of a task of this session. The task from the data of an error has the
    ///   terms of the failed one, and begins at the first byte where the service has kept none.
    public func downloadTask(withResumeData resumeData: Data) -> BackgroundSessionDownloadTask {
        guard let failed = FailedDownload(resumeData), failed.session == identifier else {
            return make(.resumed(resumeData), nil, nil) { BackgroundSessionDownloadTask(self, $0) }
        }
        let draft = Draft.repeated(failed, original: resumeData, idempotencyKey: UUID().uuidString)
        return make(draft, nil, nil) { BackgroundSessionDownloadTask(self, $0) }
    }

    /// Makes an upload of a file. The request's own body is ignored; one that says GET is sent by PUT.
    ///
    /// The file has to stay until the service has the task, for which ``BackgroundSessionTask/number`` waits.
    ///
    /// - Parameter clientTaskId: As of ``downloadTask(with:clientTaskId:)``.
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
            warn(.taskOfEndedSession, "a task was made in a session that is over; it is not performed")
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

    /// The tasks that are not completed, those from before a relaunch included.
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

    /// The tasks that are not completed, by what they are. Data tasks are not made here; there are none.
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

    /// Gives the tasks that are not completed.
    public func getAllTasks(completionHandler: @escaping @Sendable ([BackgroundSessionTask]) -> Void) {
        Task { completionHandler(await allTasks) }
    }

    /// Gives the tasks that are not completed, by what they are.
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

    /// Takes no more tasks, and ends when those that there are have finished.
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

    /// Empties the session's cookies and credentials and closes its connections.
    public func reset(completionHandler: @escaping @Sendable () -> Void) {
        Task {
            await reset()
            completionHandler()
        }
    }

    /// Empties the session's cookies and credentials and closes its connections.
    public func reset() async { _ = try? await insist { try await $0.resetSession($1) } }

    /// Lets go of the session as the end of the process would: its tasks go on, and the app is launched for them.
    ///
    /// What the delegate was told is acknowledged first. This object is of no use any more.
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

    /// The number of the session among those that had its identifier.
    var incarnation: Int64 { get async throws { try await opening.value.incarnation } }

    /// Calls the service once the session is open, again and again while it is away.
    func insist<Answer: Sendable>(
        _ call: @escaping @Sendable (Client, _ session: String) async throws -> Answer
    ) async throws -> Answer {
        _ = try await opening.value
        return try await Patience.insist { try await call(client, identifier) }
    }
}
