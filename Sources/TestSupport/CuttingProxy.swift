import Base
import Glibc

/// A network between clients and servers of 127.0.0.1 that fails on demand: it forwards every connection from its port
/// to another port.
package final class CuttingProxy: Sendable {
    package let port: UInt16
    private let network: Network
    private let server: SocketServer

    /// - Parameter target: The port of the server, which may start later.
    package convenience init(to target: UInt16) throws { try self.init { [target] } }

    /// - Parameter targets: The ports of servers; a connection is forwarded to the first that accepts it.
    package init(to targets: @escaping @Sendable () -> [UInt16]) throws {
        let network = Network(targets)
        self.network = network
        server = try SocketServer(port: 0) { network.serve($0) }
        port = server.port
    }

    deinit { close() }

    /// Stops listening, like a server that has ended.
    package func close() {
        server.stop()
        network.cut()
    }

    /// The number of connections that were not closed from both sides.
    package var connections: Int { network.state.withLock { $0.links.count } }

    /// Closes all connections at once, in both directions.
    package func cut() { network.cut() }

    /// Closes new connections at once, or stops doing so.
    package func refuse(_ refuses: Bool) { network.state.withLock { $0.refuses = refuses } }

    /// Stops the network: until the release neither bytes nor ends of connections pass, and new connections wait. Bytes
    /// that were read before still arrive.
    package func hold(_ holds: Bool) { network.state.withLock { $0.holds = holds } }

    /// Loses the response to the next message that contains these bytes: the server receives the message, but its
    /// client receives nothing more, and its connection is closed after the server's response. Later connections are
    /// not affected.
    package func loseAnswers(after bytes: [UInt8]) { network.state.withLock { $0.marker = bytes } }

    /// The number of connections that were closed like this.
    package var lostAnswers: Int { network.state.withLock { $0.lostAnswers } }
}

private final class Network: Sendable {
    struct State {
        var links: [ObjectIdentifier: Link] = [:]
        var refuses = false
        var holds = false
        /// The bytes of a message whose response is lost.
        var marker: [UInt8]?
        var lostAnswers = 0
    }

    let state = Locked(State())
    private let targets: @Sendable () -> [UInt16]

    init(_ targets: @escaping @Sendable () -> [UInt16]) { self.targets = targets }

    /// Runs until the client's direction is closed.
    func serve(_ client: Socket) {
        let link = Link(client)
        let admitted = state.withLock { state -> Bool in
            guard !state.refuses else { return false }
            state.links[ObjectIdentifier(link)] = link
            return true
        }
        guard admitted else { return client.shutdown() }
        waitWhileHeld(link)
        guard let server = connect(link) else {
            link.cut()
            return remove(link)
        }
        startThread { [self] in
            run(link) { try passAnswers(of: link, from: server) }
        }
        run(link) { try passRequests(of: link, to: server) }
    }

    /// Connects to the first target that accepts.
    private func connect(_ link: Link) -> Socket? {
        for port in targets() {
            if let server = link.connect(to: port) { return server }
        }
        return nil
    }

    /// Runs one of two directions. If it breaks, the other one does too.
    private func run(_ link: Link, _ direction: () throws -> Void) {
        do { try direction() } catch { link.cut() }
        if link.endDirection() { remove(link) }
    }

    private func passRequests(of link: Link, to server: Socket) throws {
        var end: [UInt8] = []
        while let bytes = try take(from: link.client, of: link) {
            if bytes.isEmpty { break }
            let isMarked = findMarker(in: bytes, after: &end)
            if isMarked { link.dropAnswers() }
            try server.send(bytes)
            if isMarked, link.loseAnswers() { lose(link, server) }
        }
        server.finishSending()
    }

    /// Searches for the marker, and removes it if found.
    ///
    /// - Parameter end: The last bytes of the preceding ones, which may contain its beginning.
    private func findMarker(in bytes: [UInt8], after end: inout [UInt8]) -> Bool {
        let joined = end + bytes
        return state.withLock { state in
            guard let marker = state.marker else {
                end = []
                return false
            }
            end = joined.suffix(max(0, marker.count - 1))
            guard joined.contains(run: marker) else { return false }
            state.marker = nil
            return true
        }
    }

    private func passAnswers(of link: Link, from server: Socket) throws {
        while let bytes = try take(from: server, of: link) {
            if bytes.isEmpty { break }
            switch link.noteAnswer() {
            case .passed: try link.client.send(bytes)
            case .dropped: break
            case .lost: lose(link, server)
            }
        }
        link.client.finishSending()
    }

    private func lose(_ link: Link, _ server: Socket) {
        state.withLock { $0.lostAnswers += 1 }
        link.client.shutdown()
        // The server completes its work after an orderly end; after a reset it might not.
        server.finishSending()
    }

    /// The next bytes, once the network is released: empty at the end of the stream, `nil` if the connection was cut.
    private func take(from socket: Socket, of link: Link) throws -> [UInt8]? {
        while !link.isCut {
            try socket.waitToReceive()
            // With the lock, so that no byte is read after `hold` has returned.
            let bytes = try state.withLock { $0.holds ? nil : try socket.receiveWaiting() }
            if let bytes { return bytes }
            usleep(1000)
        }
        return nil
    }

    private func waitWhileHeld(_ link: Link) {
        while !link.isCut, state.withLock({ $0.holds }) { usleep(1000) }
    }

    private func remove(_ link: Link) { _ = state.withLock { $0.links.removeValue(forKey: ObjectIdentifier(link)) } }

    func cut() {
        let links = state.withLock { state -> [Link] in
            defer { state.links = [:] }
            return Array(state.links.values)
        }
        for link in links { link.cut() }
    }
}

/// One connection of a client, and its connection to the server.
private final class Link: Sendable {
    /// The handling of the server's bytes: `lost` ones close the connection.
    enum Answers { case passed, dropped, lost }

    let client: Socket
    private let state = Locked(State())

    private struct State {
        var server: Socket?
        var isCut = false
        var answers = Answers.passed
        /// Whether responses were dropped.
        var hasAnswered = false
        /// The number of open directions.
        var open = 2
    }

    init(_ client: Socket) { self.client = client }

    /// - Returns: `nil` if no server listens there, or the connection was cut meanwhile.
    func connect(to port: UInt16) -> Socket? {
        guard let server = try? Socket.connect(port: port) else { return nil }
        let isCut = state.withLock { state in
            state.server = server
            return state.isCut
        }
        return isCut ? nil : server
    }

    var isCut: Bool { state.withLock { $0.isCut } }

    func cut() {
        let server = state.withLock { state -> Socket? in
            state.isCut = true
            return state.server
        }
        client.shutdown()
        server?.shutdown()
    }

    /// Drops the server's bytes from now on, while the message is still being sent to it.
    func dropAnswers() { state.withLock { $0.answers = .dropped } }

    /// Loses the responses, after the message was sent. Returns whether the server has already responded.
    func loseAnswers() -> Bool {
        state.withLock { state in
            if !state.hasAnswered { state.answers = .lost }
            return state.hasAnswered
        }
    }

    /// Decides about bytes of the server.
    func noteAnswer() -> Answers {
        state.withLock { state in
            let answers = state.answers
            if answers == .passed { return answers }
            (state.answers, state.hasAnswered) = (.dropped, true)
            return answers
        }
    }

    /// Returns whether this was the second direction.
    func endDirection() -> Bool {
        state.withLock { state in
            state.open -= 1
            return state.open == 0
        }
    }
}

extension [UInt8] {
    fileprivate func contains(run bytes: [UInt8]) -> Bool {
        guard count >= bytes.count else { return false }
        return (0...(count - bytes.count)).contains { self[$0..<($0 + bytes.count)].elementsEqual(bytes) }
    }
}
