import Base
package import Core

/// An HTTP/1.1 origin on raw sockets that can misbehave byte for byte, on a free port of 127.0.0.1.
///
/// Each path has a `Resource` and a list of turns: the faults of its first request, its second, and so on. After the
/// last turn the path is served correctly. All requests are recorded.
package final class OriginServer: Sendable {
    /// One request as it arrived.
    package struct Request: Sendable {
        /// The number of the request, from 1 over all paths.
        package let number: Int
        /// The number of its connection, from 1.
        package let connection: Int
        package let method: String
        /// The target as sent, query included.
        package let target: String
        package let fields: HTTPFields
        /// The arrival time of the head.
        package let time: ContinuousClock.Instant
        /// The first mebibyte of the body.
        package internal(set) var body: [UInt8] = []
        package internal(set) var bodyLength = 0
        /// The SHA-256 in lower-case hex, once the body is complete.
        package internal(set) var bodySHA256: String?
        /// Body bytes of the response that were passed to the kernel.
        package internal(set) var bytesSent = 0
        /// Whether the response has ended, even early.
        package internal(set) var isOver = false

        /// The target without its query.
        package var path: String { String(target.prefix { $0 != "?" }) }
    }

    package let port: UInt16
    private let server: SocketServer
    private let state: OriginState

    /// Starts to listen. A port other than 0 is for an origin that replaces an earlier one.
    ///
    /// - Parameters:
    ///   - address: An address of 127.0.0.0/8.
    ///   - resources: The resources of paths from the first connection on.
    package init(
        port: UInt16 = 0, address: UInt32 = 0x7F00_0001, serving resources: [String: Resource] = [:]
    ) throws {
        let state = OriginState()
        for (path, resource) in resources { state.set(path, resource, [], always: nil) }
        self.state = state
        server = try SocketServer(port: port, address: address) { OriginConnection(socket: $0, state: state).serve() }
        self.port = server.port
    }

    deinit { stop() }

    /// Refuses new connections and ends the open ones.
    package func stop() { server.stop() }

    /// The absolute URL of a path.
    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// How many connections are open.
    package var openConnections: Int { server.openConnections }

    /// Sets the resource of a path, and the faults of its next requests, one turn each.
    package func serve(_ path: String, _ resource: Resource, turns: [[Misbehaviour]] = []) {
        state.set(path, resource, turns, always: nil)
    }

    /// Sets the resource of a path, and the faults of every request.
    package func serve(_ path: String, _ resource: Resource, always: [Misbehaviour]) {
        state.set(path, resource, [], always: always)
    }

    /// All requests so far, in the order of their heads.
    package var requests: [Request] { state.requests }

    /// The requests of one path.
    package func requests(_ path: String) -> [Request] { state.requests.filter { $0.path == path } }

    /// Body bytes of the responses to all requests of a path.
    package func bytesSent(_ path: String) -> Int { requests(path).reduce(0) { $0 + $1.bytesSent } }

    /// The current and the peak number of requests without a complete response. For the peer, which may then send its
    /// next request elsewhere, a response ends with its last bytes or with the peer's disconnection.
    package var inFlight: (now: Int, peak: Int) { state.inFlight }

    /// Waits until a path (`nil`: the origin) has had so many requests, and returns them.
    @discardableResult
    package func waitForRequests(
        _ count: Int, path: String? = nil, within limit: Duration = .seconds(60)
    ) async throws -> [Request] {
        try await eventually("\(count) requests of \(path ?? "the origin")", within: limit) {
            let found = path.map { requests($0) } ?? requests
            return found.count >= count ? found : nil
        }
    }
}

/// The shared state of an origin's connections.
final class OriginState: Sendable {
    private struct Path {
        var resource: Resource
        var turns: ArraySlice<[Misbehaviour]>
        var always: [Misbehaviour]
    }

    private struct Shared {
        var paths: [String: Path] = [:]
        var requests: [OriginServer.Request] = []
        /// The connections of requests in flight, by the requests' indices.
        var answering: [Int: Socket] = [:]
        var peak = 0
        var connections = 0
    }

    private let shared = Locked(Shared())

    func set(_ path: String, _ resource: Resource, _ turns: [[Misbehaviour]], always: [Misbehaviour]?) {
        shared.withLock { $0.paths[path] = Path(resource: resource, turns: turns[...], always: always ?? []) }
    }

    var requests: [OriginServer.Request] { shared.withLock { $0.requests } }

    var inFlight: (now: Int, peak: Int) { shared.withLock { ($0.answering.count, $0.peak) } }

    /// The number of a new connection.
    func beginConnection() -> Int {
        shared.withLock {
            $0.connections += 1
            return $0.connections
        }
    }

    /// Records a request and consumes its path's next turn. The resource is `nil` if the path has none.
    func begin(
        _ method: String, _ target: String, _ fields: HTTPFields, on connection: Int, _ socket: Socket
    ) -> (index: Int, resource: Resource?, turn: [Misbehaviour]) {
        shared.withLock { shared in
            let request = OriginServer.Request(
                number: shared.requests.count + 1, connection: connection, method: method, target: target,
                fields: fields, time: .now)
            shared.answering[shared.requests.count] = socket
            shared.requests.append(request)
            if shared.answering.count > shared.peak {
                let open = shared.answering.values.filter { !$0.waitForHangUp(atMost: .zero) }
                shared.peak = max(shared.peak, open.count)
            }
            guard var path = shared.paths[request.path] else { return (shared.requests.count - 1, nil, []) }
            let turn = path.turns.popFirst() ?? path.always
            for case .become(let resource) in turn { path.resource = resource }
            shared.paths[request.path] = path
            return (shared.requests.count - 1, path.resource, turn)
        }
    }

    func update(_ index: Int, _ change: @Sendable (inout OriginServer.Request) -> Void) {
        shared.withLock { change(&$0.requests[index]) }
    }

    /// Records that the last bytes of a response are about to be sent.
    func finish(_ index: Int) { shared.withLock { $0.answering[index] = nil } }

    func end(_ index: Int) {
        shared.withLock {
            $0.requests[index].isOver = true
            $0.answering[index] = nil
        }
    }
}
