import Base
import Core
import TestSupport
import Testing

/// A service, an origin, and the short functions of tests.
final class Scene: Sendable {
    let service: ServiceProcess
    let origin: OriginServer
    /// The receivers of launches. They outlive the service, so that no launch reaches another test's server on a
    /// released port.
    private let receivers = Locked<[Receiver]>([])
    /// The key of the tasks' app.
    private let key: String

    /// Starts both, and creates the session `s` with a configuration (`nil`: no session).
    init(
        _ arguments: [String] = [], configuration: JSON? = [:], environment: [String: String] = [:],
        data: TemporaryFolder = TemporaryFolder(), wrapper: [String] = [], nodes: Int = TestStore.nodes
    ) async throws {
        key = "dev"
        origin = try OriginServer()
        service = try await ServiceProcess(
            arguments, environment: environment, data: data, wrapper: wrapper, nodes: nodes)
        if let configuration { try await makeSession("s", configuration) }
    }

    /// A service of many nodes, each with arguments of its own.
    init(nodes: Int, configuration: JSON, eachWith own: @escaping (Int) -> [String]) async throws {
        key = "dev"
        origin = try OriginServer()
        service = try await ServiceProcess(nodes: nodes, eachWith: own)
        try await makeSession("s", configuration)
    }

    /// A part of a shared service: an app of its own, with the session `s`.
    init(on service: ServiceProcess, key: String, configuration: JSON) async throws {
        self.service = service
        self.key = key
        origin = try OriginServer()
        try await makeSession("s", configuration)
    }

    /// A service with the state of another one, and that one's origin.
    init(_ service: ServiceProcess, _ origin: OriginServer) {
        self.service = service
        self.origin = origin
        key = "dev"
    }

    var api: APIClient { observed(service.api.with(key: key)) }
    var admin: APIClient { observed(service.admin) }

    /// A client whose responses are all compared with the description.
    private func observed(_ client: APIClient) -> APIClient {
        var client = client
        client.observe = Contract.shared.check
        return client
    }

    @discardableResult
    func makeSession(_ identifier: String, _ configuration: JSON = [:]) async throws -> JSON {
        let answer = try await api.put("/v1/sessions/\(identifier)", ["configuration": configuration])
        try #require(answer.status == 201, "\(answer.text)")
        return answer.json
    }

    func session(_ identifier: String = "s") async throws -> JSON {
        try await api.get("/v1/sessions/\(identifier)").json
    }

    /// Creates a task and returns it.
    @discardableResult
    func create(_ task: JSON, in session: String = "s", location: SourceLocation = #_sourceLocation) async throws
        -> JSON
    {
        let answer = try await api.post("/v1/sessions/\(session)/tasks", task)
        try #require(answer.status == 201, "\(answer.text)", sourceLocation: location)
        return answer.json
    }

    /// Creates a download of a path of the origin, with more members, and returns its identifier.
    @discardableResult
    func download(
        _ path: String, _ more: [String: JSON] = [:], in session: String = "s",
        location: SourceLocation = #_sourceLocation
    ) async throws -> Int {
        let task = try await create(downloadOf(path, more), in: session, location: location)
        return try #require(task["taskIdentifier"].int, "\(task)", sourceLocation: location)
    }

    /// Creates an upload to a path of the origin and returns its identifier.
    @discardableResult
    func upload(
        _ path: String, body: JSON, _ more: [String: JSON] = [:], in session: String = "s",
        location: SourceLocation = #_sourceLocation
    ) async throws -> Int {
        var members: [String: JSON] = ["kind": "upload", "request": ["url": .string(origin.url(path))], "body": body]
        members.merge(more) { _, new in new }
        let task = try await create(.object(members), in: session, location: location)
        return try #require(task["taskIdentifier"].int, "\(task)", sourceLocation: location)
    }

    /// The JSON that creates a download of a path of the origin.
    func downloadOf(_ path: String, _ more: [String: JSON] = [:]) -> JSON {
        var members: [String: JSON] = ["kind": "download", "request": ["url": .string(origin.url(path))]]
        members.merge(more) { _, new in new }
        return .object(members)
    }

    func task(_ number: Int, in session: String = "s") async throws -> JSON {
        try await api.get("/v1/sessions/\(session)/tasks/\(number)").json
    }

    func content(_ number: Int, in session: String = "s", headers: [(String, String)] = []) async throws
        -> APIClient.Answer
    {
        try await api.get("/v1/sessions/\(session)/tasks/\(number)/content", headers: headers)
    }

    /// Waits until a task is completed and returns it.
    @discardableResult
    func completed(
        _ number: Int, in session: String = "s", within limit: Duration = .seconds(120)
    ) async throws -> JSON {
        var last = JSON.null
        do {
            return try await eventually("task \(number) of \(session) completes", within: limit) { () -> JSON? in
                last = try await api.get("/v1/sessions/\(session)/tasks/\(number)?wait=5").json
                return last["state"] == "completed" ? last : .none
            }
        } catch is DeadlineExceeded {
            throw DeadlineExceeded("task \(number) of \(session) completes: \(last)")
        }
    }

    /// Waits until a running task satisfies `condition` and returns it.
    @discardableResult
    func waitFor(
        _ what: String, task number: Int, in session: String = "s", _ condition: (JSON) -> Bool
    ) async throws -> JSON {
        var last = JSON.null
        do {
            return try await eventually("task \(number): \(what)") { () -> JSON? in
                last = try await task(number, in: session)
                return condition(last) ? last : .none
            }
        } catch is DeadlineExceeded {
            throw DeadlineExceeded("task \(number): \(what): \(last)")
        }
    }

    /// Waits until no task of a session runs and returns the session.
    @discardableResult
    func settled(_ session: String = "s", within limit: Duration = .seconds(120)) async throws -> JSON {
        try await eventually("all tasks of \(session) complete", within: limit) { () -> JSON? in
            let session = try await self.session(session)
            let counts = session["taskCounts"]
            return counts["running"] == 0 && counts["canceling"] == 0 && counts["completed"].int ?? 0 > 0
                ? session : .none
        }
    }

    /// All stored events of a session after `after`, read page by page.
    func events(_ session: String = "s", after: Int = 0) async throws -> [JSON] {
        var events: [JSON] = []
        var last = after
        while true {
            let answer = try await api.get("/v1/sessions/\(session)/events?after=\(last)&limit=1000")
            try #require(answer.status == 200, "\(answer.text)")
            let items = answer.json["items"].array ?? []
            events += items
            guard let seq = items.last?["seq"].int else { return events }
            last = seq
        }
    }

    /// Waits until a session has an event that satisfies `condition` and returns it.
    @discardableResult
    func event(
        _ what: String, in session: String = "s", _ condition: (JSON) -> Bool
    ) async throws -> JSON {
        try await eventually("an event: \(what)") { try await events(session).first(where: condition) }
    }

    /// Sets the receiver of launches.
    func launches(to receiver: Receiver, _ more: [String: JSON] = [:]) async throws {
        receivers.withLock { $0.append(receiver) }
        var webhook: [String: JSON] = ["url": .string(receiver.url)]
        webhook.merge(more) { _, new in new }
        let answer = try await api.patch("/v1/app", ["webhook": .object(webhook)])
        try #require(answer.status == 200, "\(answer.text)")
    }

    /// The launches of a session in the service's order.
    func launches(of session: String = "s") async throws -> [JSON] {
        try await api.get("/v1/launches?session=\(session)&order=asc").json["items"].array ?? []
    }
}

/// The secret of the app `dev`.
let devSecret = "whsec_" + Base64Text.encode([UInt8](repeating: 0, count: 32))

/// Expects a status, and shows any other response.
func expect(_ answer: APIClient.Answer, _ status: Int, location: SourceLocation = #_sourceLocation) {
    #expect(answer.status == status, "\(answer.text)", sourceLocation: location)
}

/// Expects a problem with this status and code (RFC 9457).
func expectProblem(
    _ answer: APIClient.Answer, _ status: Int, _ code: String, pointer: String? = nil,
    location: SourceLocation = #_sourceLocation
) {
    #expect(answer.status == status, "\(answer.text)", sourceLocation: location)
    #expect(answer.code == code, "\(answer.text)", sourceLocation: location)
    #expect(
        answer.fields["Content-Type"]?.hasPrefix("application/problem+json") == true, sourceLocation: location)
    #expect(answer.json["status"].int == status, sourceLocation: location)
    #expect(
        answer.json["type"].string == "https://urlsessiond.dev/problems/\(code)", "\(answer.text)",
        sourceLocation: location)
    for member in ["title", "detail", "instance"] {
        #expect(answer.json[member].string?.isEmpty == false, "\(member): \(answer.text)", sourceLocation: location)
    }
    if let pointer { #expect(answer.pointers.contains(pointer), "\(answer.text)", sourceLocation: location) }
}

/// Checks the invariants of a session's log: G1, G3, G4, G5 and G7 of the guarantees in docs/concepts.md.
func expectSound(_ events: [JSON], location: SourceLocation = #_sourceLocation) {
    #expect(events.compactMap { $0["seq"].int } == Array(1..<events.count + 1), "seq", sourceLocation: location)
    let order = ["task.didFinishDownloading": 1, "task.didFinishCollectingMetrics": 2, "task.didComplete": 3]
    var reached: [Int: Int] = [:]
    for event in events {
        guard let type = event["type"].string else {
            Issue.record("no type: \(event)", sourceLocation: location)
            continue
        }
        if type == "session.didBecomeInvalid" {
            #expect(event == events.last, "something follows didBecomeInvalid", sourceLocation: location)
        }
        guard let task = event["taskIdentifier"].int else { continue }
        let rank = order[type] ?? 0
        let before = reached[task] ?? 0
        #expect(rank > before || rank == 0 && before == 0, "\(type) of task \(task) late", sourceLocation: location)
        reached[task] = rank
    }
}

/// The one didComplete of each task, by task identifier.
func completions(_ events: [JSON], location: SourceLocation = #_sourceLocation) -> [Int: JSON] {
    var found: [Int: JSON] = [:]
    for event in events where event["type"] == "task.didComplete" {
        guard let task = event["taskIdentifier"].int else { continue }
        #expect(found[task] == nil, "task \(task) completed twice", sourceLocation: location)
        found[task] = event["data"]
    }
    return found
}

/// The events without the addresses that change with the port of each run.
func stable(_ events: [JSON]) -> [JSON] {
    events.map { event in
        var event = event
        if event["data"].has("contentURL") { event["data"]["contentURL"] = nil }
        return event
    }
}
