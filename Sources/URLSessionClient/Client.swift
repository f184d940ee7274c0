public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client of `urlsessiond`: one app, by its API key.
///
///     let client = Client(url: URL(string: "http://127.0.0.1:8080")!, key: "dev")
///     let session = try await client.openSession("com.example.bg")
///     let task = try await client.createTask(.download(TransferRequest(url: "https://example.com/a")), in: "com.example.bg")
///     for try await event in client.events(of: "com.example.bg") { … }
///
/// Every call throws ``Wire/Problem`` when the service refuses, ``ClientError`` when its answer cannot be read, and
/// `URLError` when there is none. Calls of operators (``apps(cursor:limit:)`` and those beside it) take the admin key.
public struct Client: Sendable {
    /// Where the service listens, without a slash at the end.
    let base: String
    private let key: String
    let openSessions = OpenSessions()

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - url: Where the service listens, without `/v1`.
    ///   - key: The app's API key.
    public init(url: URL, key: String) {
        self.init(base: url.absoluteString, key: key)
    }

    init(base: String, key: String) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.key = key
    }

    /// No cache and no cookies: what is asked of a service is asked anew.
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

    /// One session: as it is now or, with `waiting` seconds (0 to 60), once none of its tasks runs.
    public func session(_ identifier: String, waiting: Int = 0) async throws -> Session {
        try await send(
            "GET", ["v1", "sessions", identifier], query: waiting > 0 ? ["wait": String(waiting)] : [:],
            mayTakeLong: waiting > 0)
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
        try await send("POST", ["v1", "sessions", identifier, "invalidate-and-cancel"], mayTakeLong: true)
    }

    /// Cancels the session's tasks, ends it, and forgets it with all its contents.
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

    /// The value of a filter that takes several words; `nil` for none, which leaves it out.
    static func list(_ words: [String]) -> String? { words.isEmpty ? nil : words.joined(separator: ",") }

    func send<Answer: JSONReadable>(
        _ method: String, _ path: [String], query: [String: String] = [:], body: [UInt8]? = nil,
        mediaType: String = "application/json", mayTakeLong: Bool = false
    ) async throws -> Answer {
        let bytes = try await exchange(
            method, path, query: query, body: body, mediaType: mediaType, mayTakeLong: mayTakeLong)
        return try Self.read(bytes)
    }

    /// Opens a connection for a request that the service answers late, by one that it answers at once.
    ///
    /// On Linux a URLSession asks without a pause whether a new connection can be written to until the first response over
    /// that connection is whole (`_SocketSources` of swift-corelibs-foundation), which takes a whole processor. A later
    /// request over the same connection is free of that.
    private func knock() async {
        guard var request = try? request("GET", ["healthz"]) else { return }
        request.timeoutInterval = 15
        _ = try? await answer(to: request)
    }

    /// One request; the body of its answer, or the problem it tells.
    ///
    /// - Parameter mayTakeLong: Whether the service may answer late: a held request, or one for any number of tasks.
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

    /// The answer to a request, or the problem it tells.
    func answer(to request: URLRequest) async throws -> Reply {
        let (data, response) = try await WholeAnswer.of(request, in: Self.session)
        let head = response as? HTTPURLResponse
        let status = head?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw Self.refusal(status, Array(data)) }
        return Reply(status: status, head: head, body: data)
    }

    /// A successful answer.
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

    /// The error of an answer that is no success.
    static func refusal(_ status: Int, _ body: [UInt8]) -> any Error {
        (try? Problem(parsing: body, .tolerant)) ?? ClientError.status(status)
    }

    static func read<Answer: JSONReadable>(_ bytes: [UInt8]) throws -> Answer {
        do {
            return try Answer(parsing: bytes, .tolerant)
        } catch {
            throw ClientError.unreadableAnswer("\(error)")
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

/// What went wrong between the client and the service.
public enum ClientError: Error, Sendable, Hashable {
    /// The URL of the client, which is none of a service.
    case badURL(String)
    /// A status that is no success, without a problem that could be read.
    case status(Int)
    /// An answer that is not what the route answers.
    case unreadableAnswer(String)
    /// A stream of events that ended. ``EventStream`` connects again by itself.
    case streamEnded
    /// The task has no content to be read.
    case noContent
    /// The content is not the one that was begun.
    case contentChanged
    /// A file that could not be read or written; `code` is the system's `errno`.
    case file(String, code: Int32)
    /// A file that became shorter while it was sent.
    case fileShrank(String)
}
