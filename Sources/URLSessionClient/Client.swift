public import FoundationEssentials
import FoundationNetworking
public import Wire

/// A client of `urlsessiond`: one app, by its API key.
///
///     let client = Client(url: URL(string: "http://127.0.0.1:8080")!, key: "dev")
///     let session = try await client.openSession("com.example.bg")
///     let task = try await client.createTask(.download(TransferRequest(url: "https://example.com/a")), in: "com.example.bg")
///     for try await event in client.events(of: "com.example.bg") { … }
///
/// Every call throws ``Wire/Problem`` when the service refuses, ``ClientError`` when its answer cannot be read, and
/// `URLError` when there is none.
public struct Client: Sendable {
    private let base: URL
    private let key: String

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - url: Where the service listens, without `/v1`.
    ///   - key: The app's API key.
    public init(url: URL, key: String) {
        base = url
        self.key = key
    }

    // MARK: Sessions

    /// Creates the session, or reconnects to it: the same call at every start of the app.
    public func openSession(
        _ identifier: String, configuration: SessionConfiguration? = nil
    ) async throws -> Session {
        try await send(
            "PUT", ["v1", "sessions", identifier], body: SessionPut { $0.configuration = configuration }.jsonBytes)
    }

    /// One session.
    public func session(_ identifier: String) async throws -> Session {
        try await send("GET", ["v1", "sessions", identifier])
    }

    /// A page of the app's sessions; a `nextCursor` reads the next one.
    public func sessions(cursor: String? = nil, limit: Int = 100) async throws -> Page<Session> {
        try await page(["v1", "sessions"], cursor, limit)
    }

    /// Lets the session's tasks finish and takes no new ones.
    public func finishTasksAndInvalidate(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "finish-tasks-and-invalidate"])
    }

    /// Cancels the session's tasks and ends it.
    public func invalidateAndCancel(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "invalidate-and-cancel"])
    }

    // MARK: Tasks

    /// Creates a task. With a `clientTaskId` it is safe to repeat.
    public func createTask(_ task: TaskCreation, in session: String) async throws -> SessionTask {
        try await send("POST", ["v1", "sessions", session, "tasks"], body: task.jsonBytes)
    }

    /// Creates all tasks or none.
    public func createTasks(_ tasks: [TaskCreation], in session: String) async throws -> Batch {
        try await send(
            "POST", ["v1", "sessions", session, "tasks", "batch"], body: BatchCreation(tasks: tasks).jsonBytes)
    }

    /// One task: as it is now or, with `waiting` seconds (0 to 60), once it completes.
    public func task(_ number: Int64, in session: String, waiting: Int = 0) async throws -> SessionTask {
        try await send(
            "GET", ["v1", "sessions", session, "tasks", String(number)],
            query: waiting > 0 ? ["wait": String(waiting)] : [:])
    }

    /// A page of the session's tasks.
    public func tasks(in session: String, cursor: String? = nil, limit: Int = 100) async throws -> Page<SessionTask> {
        try await page(["v1", "sessions", session, "tasks"], cursor, limit)
    }

    /// What a task that is not completed can be told to do.
    public enum Command: String, Sendable, CaseIterable {
        /// Stops it, bytes kept.
        case suspend
        /// Starts it, or tries again at once.
        case resume
        /// Ends it.
        case cancel
    }

    /// Suspends, resumes or cancels a task.
    public func command(_ command: Command, task number: Int64, in session: String) async throws -> SessionTask {
        try await send("POST", ["v1", "sessions", session, "tasks", String(number), command.rawValue])
    }

    // MARK: Events

    /// The events after a number, by default after the last acknowledged one; with `waiting` seconds, once there is one.
    ///
    /// While it waits, the app counts as attached and is not launched.
    public func eventPage(
        of session: String, after seq: Int64? = nil, waiting: Int = 0, limit: Int = 100
    ) async throws -> EventPage<Event> {
        var query = ["limit": String(limit)]
        query["after"] = seq.map { String($0) }
        if waiting > 0 { query["wait"] = String(waiting) }
        return try await send("GET", ["v1", "sessions", session, "events"], query: query)
    }

    /// The session's events in order, from the first that is not acknowledged. The sequence has no end.
    ///
    /// Acknowledge each event when it is handled: what is not acknowledged comes again after a restart.
    public func events(of session: String) -> Events { Events(client: self, session: session) }

    /// The session's events as they happen, live ones included, after a number or the last acknowledged one. The sequence
    /// has no end.
    public func stream(of session: String, after seq: Int64? = nil) -> EventStream {
        EventStream(client: self, session: session, after: seq)
    }

    /// Acknowledges all events up to a number, with the `epoch` of the attachment where the app holds one.
    public func acknowledge(through seq: Int64, in session: String, epoch: Int64? = nil) async throws {
        _ = try await exchange(
            "POST", ["v1", "sessions", session, "events", "ack"], body: EventAck(through: seq, epoch: epoch).jsonBytes)
    }

    /// Completes a launch, as calling the completion handler does.
    public func completeLaunch(
        _ launchId: String, through seq: Int64? = nil, epoch: Int64? = nil
    ) async throws -> Launch {
        let completion = LaunchCompletion { ($0.through, $0.epoch) = (seq, epoch) }
        return try await send("POST", ["v1", "launches", launchId, "complete"], body: completion.jsonBytes)
    }

    /// A page of the app's launches.
    public func launches(cursor: String? = nil, limit: Int = 100) async throws -> Page<Launch> {
        try await page(["v1", "launches"], cursor, limit)
    }

    /// Changes where and how the app is launched.
    public func changeWebhook(_ change: WebhookChange) async throws -> App {
        try await send("PATCH", ["v1", "app"], body: OwnAppChange { $0.webhook = change }.jsonBytes)
    }

    // MARK: Bytes

    /// Stores a body for tasks to send.
    public func storeBody(_ bytes: [UInt8], mediaType: String = "application/octet-stream") async throws -> StoredBody {
        try await send("POST", ["v1", "bodies"], body: bytes, mediaType: mediaType)
    }

    /// A page of the stored bodies: all, or only those that are complete or not, in use by a task or not.
    public func bodies(
        complete: Bool? = nil, inUse: Bool? = nil, cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<ListedBody> {
        let state = complete.map { $0 ? "complete" : "partial" }
        return try await page(["v1", "bodies"], cursor, limit, ["state": state, "inUse": inUse.map { String($0) }])
    }

    /// The bytes of a finished download.
    public func content(ofTask number: Int64, in session: String) async throws -> [UInt8] {
        try await exchange("GET", ["v1", "sessions", session, "tasks", String(number), "content"])
    }

    // MARK: Exchanges

    /// Reads a page of a list; filters without a value are left out.
    func page<Item>(
        _ path: [String], _ cursor: String?, _ limit: Int, _ filters: [String: String?] = [:]
    ) async throws -> Page<Item> {
        var query = filters.compactMapValues { $0 }
        query["limit"] = String(limit)
        query["cursor"] = cursor
        return try await send("GET", path, query: query)
    }

    func send<Answer: JSONReadable>(
        _ method: String, _ path: [String], query: [String: String] = [:], body: [UInt8]? = nil,
        mediaType: String = "application/json"
    ) async throws -> Answer {
        let bytes = try await exchange(method, path, query: query, body: body, mediaType: mediaType)
        do {
            return try Answer(parsing: bytes, .tolerant)
        } catch {
            throw ClientError.unreadableAnswer("\(error)")
        }
    }

    /// One request; the body of its answer, or the problem it tells.
    func exchange(
        _ method: String, _ path: [String], query: [String: String] = [:], body: [UInt8]? = nil,
        mediaType: String = "application/json"
    ) async throws -> [UInt8] {
        var request = try request(method, path, query: query)
        if let body {
            request.setValue(mediaType, forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(body)
        }
        let (data, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw Self.refusal(status, Array(data)) }
        return Array(data)
    }

    func request(
        _ method: String, _ path: [String], query: [String: String] = [:], headers: [String: String] = [:]
    ) throws -> URLRequest {
        var request = URLRequest(url: try url(path, query))
        request.httpMethod = method
        request.timeoutInterval = 90
        request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization")
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// The error of an answer that is no success.
    static func refusal(_ status: Int, _ body: [UInt8]) -> any Error {
        (try? Problem(parsing: body, .tolerant)) ?? ClientError.status(status)
    }

    static func event(_ data: [UInt8]) throws -> Event {
        do {
            return try Event(parsing: data, .tolerant)
        } catch {
            throw ClientError.unreadableAnswer("\(error)")
        }
    }

    private func url(_ path: [String], _ query: [String: String]) throws -> URL {
        let segments = path.map { Self.encode($0) }.joined(separator: "/")
        let pairs = query.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.encode($0.value))" }
        let text = pairs.isEmpty ? segments : segments + "?" + pairs.joined(separator: "&")
        var base = base.absoluteString
        if base.hasSuffix("/") { base.removeLast() }
        guard let url = URL(string: "\(base)/\(text)") else { throw ClientError.badURL(text) }
        return url
    }

    /// Percent-encodes all but unreserved characters (RFC 3986 section 2.3).
    private static func encode(_ text: String) -> String {
        PercentCoding.encode(text, keeping: PercentCoding.isUnreserved)
    }
}

/// What went wrong between the client and the service.
public enum ClientError: Error, Sendable, Hashable {
    /// No URL can be made of this.
    case badURL(String)
    /// A status that is no success, without a problem that could be read.
    case status(Int)
    /// An answer that is not what the route answers.
    case unreadableAnswer(String)
    /// A stream of events that ended. ``EventStream`` connects again by itself.
    case streamEnded
}
