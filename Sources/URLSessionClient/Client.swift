public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client of `urlsessiond` for one app, which its API key identifies.
///
///     let client = Client(url: URL(string: "http://127.0.0.1:8080")!, key: "dev")
///     let session = try await client.openSession("com.example.bg")
///     let task = try await client.createTask(.download(TransferRequest(url: "https://example.com/a")), in: "com.example.bg")
///     for try await event in client.events(of: "com.example.bg") { … }
///
/// Every call throws ``Wire/Problem`` if the service refuses, ``ClientError`` if its response cannot be read, and
/// `URLError` if there is none. Calls of operators (``apps(cursor:limit:)`` and the following) require the admin key.
public struct Client: Sendable {
    /// The URL of the service, without a trailing slash.
    let base: String
    private let key: String
    let openSessions = OpenSessions()

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - url: The URL of the service, without `/v1`.
    ///   - key: The app's API key.
    public init(url: URL, key: String) {
        self.init(base: url.absoluteString, key: key)
    }

    init(base: String, key: String) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.key = key
    }

    /// No cache and no cookies: every request reaches the service.
    private static let session: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpShouldSetCookies = false
        configuration.httpMaximumConnectionsPerHost = 64
        return URLSession(configuration: configuration)
    }()

    // MARK: Sessions

    /// Creates the session, or reconnects to it: the same call at every start of the app.
    public func openSession(
        _ identifier: String, configuration: SessionConfiguration? = nil, description: String? = nil
    ) async throws -> Session {
        let put = SessionPut {
            $0.configuration = configuration
            if let description { $0.sessionDescription = .set(description) }
        }
        return try await send("PUT", ["v1", "sessions", identifier], body: put.jsonBytes)
    }

    /// One session: its current state or, with `waiting` seconds (0 to 60), its state when none of its tasks runs.
    public func session(_ identifier: String, waiting: Int = 0) async throws -> Session {
        try await send(
            "GET", ["v1", "sessions", identifier], query: waiting > 0 ? ["wait": String(waiting)] : [:],
            mayTakeLong: waiting > 0)
    }

    /// A page of the app's sessions; a `nextCursor` reads the next one.
    public func sessions(cursor: String? = nil, limit: Int = 100) async throws -> Page<Session> {
        try await page(["v1", "sessions"], cursor, limit)
    }

    /// Lets the session's tasks finish and accepts no new ones.
    public func finishTasksAndInvalidate(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "finish-tasks-and-invalidate"])
    }

    /// Cancels the session's tasks and invalidates it.
    public func invalidateAndCancel(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "invalidate-and-cancel"], mayTakeLong: true)
    }

    /// Cancels the session's tasks, and deletes the session with all its contents.
    public func deleteSession(_ identifier: String) async throws {
        _ = try await exchange("DELETE", ["v1", "sessions", identifier])
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

    /// Reads a list from its first page to its last.
    package static func each<Item>(
        _ page: (_ cursor: String?) async throws -> Page<Item>, use: (Item) async throws -> Void
    ) async throws {
        var cursor: String?
        repeat {
            let page = try await page(cursor)
            for item in page.items { try await use(item) }
            cursor = page.nextCursor
        } while cursor != nil
    }

    /// The value of a filter with several words; `nil` for none, so that it is left out.
    static func list(_ words: [String]) -> String? { words.isEmpty ? nil : words.joined(separator: ",") }

    func send<Answer: JSONReadable>(
        _ method: String, _ path: [String], query: [String: String] = [:], body: [UInt8]? = nil,
        mediaType: String = "application/json", mayTakeLong: Bool = false
    ) async throws -> Answer {
        let bytes = try await exchange(
            method, path, query: query, body: body, mediaType: mediaType, mayTakeLong: mayTakeLong)
        return try Self.read(bytes)
    }

    /// Opens a connection for a slow request, with a request that the service answers at once.
    ///
    /// On Linux a URLSession polls without a pause whether a new connection is writable until its first response is
    /// complete (`_SocketSources` of swift-corelibs-foundation), which uses a whole processor. A later request on the
    /// same connection does not have this defect.
    private func knock() async {
        guard var request = try? request("GET", ["healthz"]) else { return }
        request.timeoutInterval = 15
        _ = try? await answer(to: request)
    }

    /// Sends one request, and returns the body of its response or throws its problem.
    ///
    /// - Parameter mayTakeLong: Whether the response may be slow: to a held request, or to a command for many tasks.
    func exchange(
        _ method: String, _ path: [String], query: [String: String] = [:], body: [UInt8]? = nil,
        mediaType: String = "application/json", mayTakeLong: Bool = false
    ) async throws -> [UInt8] {
        if mayTakeLong { await knock() }
        var request = try request(method, path, query: query)
        if let body {
            request.setValue(mediaType, forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(body)
        }
        return Array(try await answer(to: request).body)
    }

    /// Sends a request, and returns its response or throws its problem.
    func answer(to request: URLRequest) async throws -> Reply {
        let (data, response) = try await WholeAnswer.of(request, in: Self.session)
        let head = response as? HTTPURLResponse
        let status = head?.statusCode ?? 0
        guard (200..<300).contains(status) else {
            let retryAfter = head?.value(forHTTPHeaderField: "Retry-After")
            throw Self.refusal(status, Array(data), retryAfter: retryAfter)
        }
        return Reply(status: status, head: head, body: data)
    }

    /// A successful response.
    struct Reply {
        let status: Int
        let head: HTTPURLResponse?
        let body: Data

        func field(_ name: String) -> String? { head?.value(forHTTPHeaderField: name) }
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

    /// The error of an unsuccessful response.
    ///
    /// - Parameter retryAfter: The field `Retry-After`. The service sends seconds, never a date.
    static func refusal(_ status: Int, _ body: [UInt8], retryAfter: String?) -> any Error {
        guard var problem = try? Problem(parsing: body, .tolerant) else { return ClientError.status(status) }
        problem.retryAfter = retryAfter.flatMap { Int64($0) }
        return problem
    }

    static func read<Answer: JSONReadable>(_ bytes: [UInt8]) throws -> Answer {
        do {
            return try Answer(parsing: bytes, .tolerant)
        } catch {
            throw ClientError.unreadableAnswer(Problem(error).detail)
        }
    }

    private func url(_ path: [String], _ query: [String: String]) throws -> URL {
        let segments = path.map { Self.encode($0) }.joined(separator: "/")
        let pairs = query.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.encode($0.value))" }
        let text = pairs.isEmpty ? segments : segments + "?" + pairs.joined(separator: "&")
        guard let url = URL(string: "\(base)/\(text)"), ["http", "https"].contains(url.scheme?.lowercased()),
            url.host != nil
        else { throw ClientError.badURL(base) }
        return url
    }

    /// Percent-encodes all but unreserved characters (RFC 3986 section 2.3).
    private static func encode(_ text: String) -> String {
        PercentCoding.encode(text, keeping: PercentCoding.isUnreserved)
    }
}

/// An error between the client and the service.
public enum ClientError: Error, Sendable, Hashable {
    /// The client's URL is not the URL of a service.
    case badURL(String)
    /// An unsuccessful status without a readable problem.
    case status(Int)
    /// A response that does not fit its route.
    case unreadableAnswer(String)
    /// A stream of events that ended. ``EventStream`` connects again by itself.
    case streamEnded
    /// The task has no content.
    case noContent
    /// The content changed while it was read.
    case contentChanged
    /// A file that could not be read or written; `code` is the system's `errno`.
    case file(String, code: Int32)
    /// A file that became shorter while it was sent.
    case fileShrank(String)
}
