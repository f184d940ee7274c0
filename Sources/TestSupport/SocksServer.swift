import Base

/// A SOCKS 5 server (RFC 1928, RFC 1929) that forwards every connection to the requested port on 127.0.0.1, and records
/// the requested hosts.
package final class SocksServer: Sendable {
    package let port: UInt16
    private let server: SocketServer
    private let asked: Locked<[String]>

    /// - Parameter user: The required `user:password`; `nil` for no authentication.
    package init(user: String? = nil) throws {
        let asked = Locked<[String]>([])
        self.asked = asked
        // A client that breaks off ends its connection only.
        server = try SocketServer(port: 0) { socket in
            try? Self.serve(socket, user: user) { text in asked.withLock { $0.append(text) } }
            socket.shutdown()
        }
        port = server.port
    }

    deinit { server.stop() }

    /// The requested `host:port` of each connection.
    package var targets: [String] { asked.withLock { $0 } }

    private static func serve(_ socket: Socket, user: String?, _ note: (String) -> Void) throws {
        let greeting = try bytes(2, of: socket)
        let methods = try bytes(Int(greeting[1]), of: socket)
        let method: UInt8 = user == nil ? 0 : 2
        guard greeting[0] == 5, methods.contains(method) else { return try socket.send([5, 0xFF]) }
        try socket.send([5, method])
        if let user {
            let name = try text(Int(bytes(2, of: socket)[1]), of: socket)
            let password = try text(Int(bytes(1, of: socket)[0]), of: socket)
            guard "\(name):\(password)" == user else { return try socket.send([1, 1]) }
            try socket.send([1, 0])
        }
        let request = try bytes(4, of: socket)
        let host =
            switch request[3] {
            case 1: try bytes(4, of: socket).map(String.init).joined(separator: ".")
            case 3: try text(Int(bytes(1, of: socket)[0]), of: socket)
            default: "[" + Content.hex(try bytes(16, of: socket)) + "]"
            }
        let port = try bytes(2, of: socket).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        note("\(host):\(port)")
        guard request[1] == 1, let target = try? Socket.connect(port: port) else {
            return try socket.send([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
        }
        try socket.send([5, 0, 0, 1, 127, 0, 0, 1] + [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)])
        startThread {
            try? pump(from: target, to: socket)
            socket.shutdown()
        }
        try? pump(from: socket, to: target)
        target.shutdown()
    }

    private static func pump(from source: Socket, to target: Socket) throws {
        while true {
            let bytes = try source.receive()
            if bytes.isEmpty { return target.finishSending() }
            try target.send(bytes)
        }
    }

    private static func text(_ count: Int, of socket: Socket) throws -> String {
        String(decoding: try bytes(count, of: socket), as: UTF8.self)
    }

    private static func bytes(_ count: Int, of socket: Socket) throws -> [UInt8] {
        var result: [UInt8] = []
        while result.count < count {
            let piece = try socket.receive(limit: count - result.count)
            guard !piece.isEmpty else { throw SocketError("recv", 0) }
            result += piece
        }
        return result
    }
}
