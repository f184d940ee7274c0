import Base

/// Accepts connections on a free loopback port and serves each on a thread of its own.
package final class SocketServer: Sendable {
    package let port: UInt16
    private let listener: Socket
    private let connections: Connections

    package init(
        port: UInt16, address: UInt32 = 0x7F00_0001, serve: @escaping @Sendable (Socket) -> Void
    ) throws {
        let connections = Connections()
        let (listener, port) = try Socket.listen(port: port, address: address)
        self.listener = listener
        self.port = port
        self.connections = connections
        startThread {
            while let socket = listener.accept() {
                guard connections.add(socket) else { break }
                startThread {
                    serve(socket)
                    connections.remove(socket)
                }
            }
        }
    }

    deinit { stop() }

    /// Refuses new connections and ends the open ones.
    package func stop() {
        listener.shutdown()
        connections.endAll()
    }

    /// How many connections are open.
    package var openConnections: Int { connections.count }
}

private final class Connections: Sendable {
    private let state = Locked<(open: [ObjectIdentifier: Socket], ended: Bool)>(([:], false))

    func add(_ socket: Socket) -> Bool {
        state.withLock {
            guard !$0.ended else { return false }
            $0.open[ObjectIdentifier(socket)] = socket
            return true
        }
    }

    func remove(_ socket: Socket) { _ = state.withLock { $0.open.removeValue(forKey: ObjectIdentifier(socket)) } }

    func endAll() {
        let sockets = state.withLock { state -> [Socket] in
            state.ended = true
            return Array(state.open.values)
        }
        for socket in sockets { socket.shutdown() }
    }

    var count: Int { state.withLock { $0.open.count } }
}
