import Base
import Core

@testable import TestSupport

/// An HTTP/2 server of 127.0.0.1 without TLS that sends given frames, behind a ``SecureFront``.
final class FrameServer: Sendable {
    struct Request: Sendable {
        let connection: Int
        let stream: UInt32
        /// The number of the request on its connection, from 1.
        let turn: Int
        let fields: [String: String]
        var path: String { fields[":path"] ?? "" }
        var range: String { fields["range"] ?? "" }
    }

    /// The error codes of RFC 9113 section 7.
    enum Code: UInt32 {
        case none = 0
        case internalError = 2
        case refusedStream = 7
        case enhanceYourCalm = 11
    }

    let port: UInt16
    private let server: SocketServer
    private let state: Locked<(requests: [Request], connections: Int)>

    /// - Parameter answer: Responds to a request with frames, on the connection's thread. False ends the connection.
    init(_ answer: @escaping @Sendable (Request, FrameConnection) throws -> Bool) throws {
        let state = Locked<(requests: [Request], connections: Int)>(([], 0))
        self.state = state
        server = try SocketServer(port: 0) { socket in
            let number = state.withLock { state in
                state.connections += 1
                return state.connections
            }
            let connection = FrameConnection(socket, number)
            try? connection.serve { request in
                state.withLock { $0.requests.append(request) }
                return try answer(request, connection)
            }
            socket.shutdown()
        }
        port = server.port
    }

    deinit { server.stop() }

    /// All requests so far.
    var requests: [Request] { state.withLock { $0.requests } }

    var connections: Int { state.withLock { $0.connections } }
}

/// One connection, on the thread that owns it.
final class FrameConnection {
    private struct Ended: Error {}

    private enum Kind: UInt8 {
        case data = 0
        case headers = 1
        case reset = 3
        case settings = 4
        case ping = 6
        case goAway = 7
        case continuation = 9
    }

    private static let preface = 24
    private let socket: Socket
    private let number: Int
    private var buffer: [UInt8] = []
    private var decoder = FieldDecoder()

    fileprivate init(_ socket: Socket, _ number: Int) {
        self.socket = socket
        self.number = number
    }

    // MARK: Sending

    func head(_ stream: UInt32, _ status: Int, _ fields: [(String, String)] = [], ends: Bool = false) throws {
        var block: [UInt8] = []
        // Literals without index and without Huffman coding.
        for (name, value) in [(":status", String(status))] + fields {
            precondition(name.utf8.count < 127 && value.utf8.count < 127)
            block += [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
        }
        try frame(.headers, flags: ends ? 5 : 4, stream, block)
    }

    func data(_ stream: UInt32, _ bytes: [UInt8], ends: Bool = false) throws {
        try frame(.data, flags: ends ? 1 : 0, stream, bytes)
    }

    func reset(_ stream: UInt32, _ code: FrameServer.Code) throws {
        try frame(.reset, flags: 0, stream, Self.big(code.rawValue))
    }

    /// - Parameter last: The last stream that the server processes.
    func goAway(_ last: UInt32, _ code: FrameServer.Code) throws {
        try frame(.goAway, flags: 0, 0, Self.big(last) + Self.big(code.rawValue))
    }

    /// Sends nothing until the gate opens.
    func wait(for gate: Gate) { _ = gate.wait(socket) }

    private func frame(_ kind: Kind, flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) throws {
        try socket.send(
            Self.big(UInt32(payload.count)).dropFirst() + [kind.rawValue, flags] + Self.big(stream) + payload)
    }

    private static func big(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }

    // MARK: Receiving

    fileprivate func serve(_ answer: (FrameServer.Request) throws -> Bool) throws {
        _ = try take(Self.preface)
        try frame(.settings, flags: 0, 0, [])
        var turn = 0
        while true {
            let head = try take(9)
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let stream = head[5..<9].reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
            let payload = try take(length)
            switch (Kind(rawValue: head[3]), head[4]) {
            case (.settings, 0): try frame(.settings, flags: 1, 0, [])
            case (.ping, 0): try frame(.ping, flags: 1, 0, payload)
            case (.headers, let flags):
                turn += 1
                let fields = try decoder.decode(Self.block(payload, flags))
                let request = FrameServer.Request(
                    connection: number, stream: stream, turn: turn,
                    fields: Dictionary(fields.map { ($0.name, $0.value) }) { first, _ in first })
                guard try answer(request) else { return }
            case (.goAway, _): return
            default: break
            }
        }
    }

    /// The block without padding and priority (RFC 9113 section 6.2). One frame holds all of it.
    private static func block(_ payload: [UInt8], _ flags: UInt8) throws -> [UInt8] {
        guard flags & 4 != 0 else { throw Ended() }
        var block = payload[...]
        if flags & 8 != 0 {
            let padding = Int(block.removeFirst())
            block = block.dropLast(padding)
        }
        if flags & 0x20 != 0 { block = block.dropFirst(5) }
        return Array(block)
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count {
            let bytes = try socket.receive()
            guard !bytes.isEmpty else { throw Ended() }
            buffer += bytes
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }
}
