import Core

/// Reads consecutive HTTP/1.1 messages from a socket. Used by one thread.
final class HTTPReader {
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    enum Framing: Equatable {
        case none, chunked, untilClose
        case length(Int)
    }

    private let socket: Socket
    private var buffer: [UInt8] = []
    private var position = 0

    init(_ socket: Socket) { self.socket = socket }

    /// The start line and the fields of the next message; `nil` if the peer closed between messages.
    func head() throws -> (startLine: String, fields: HTTPFields)? {
        guard let start = try line(), !start.isEmpty else { return nil }
        return (start, try fields())
    }

    /// Field lines up to the empty line.
    func fields() throws -> HTTPFields {
        var fields = HTTPFields()
        while true {
            guard let line = try line() else { throw Malformed(description: "end inside the head") }
            guard !line.isEmpty else { return fields }
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else {
                throw Malformed(description: "no colon in \(line)")
            }
            let value = line[line.utf8.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append(String(line[..<colon]), String(value))
        }
    }

    /// Passes the body to `sink` in pieces, and returns the trailer fields. Throws if it ends early.
    @discardableResult
    func body(_ framing: Framing, _ sink: ([UInt8]) throws -> Void) throws -> HTTPFields {
        switch framing {
        case .none: break
        case .length(let length): try exactly(length, sink)
        case .untilClose:
            while case let piece = try some(limit: 1 << 16), !piece.isEmpty { try sink(piece) }
        case .chunked:
            while let size = try chunkSize() {
                try exactly(size, sink)
                guard try line() == "" else { throw Malformed(description: "no line end after a chunk") }
            }
            return try fields()
        }
        return HTTPFields()
    }

    /// The next line without its end; `nil` at the end of the stream.
    func line() throws -> String? {
        var searched = position
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                var text = buffer[position..<end]
                if text.last == 0x0D { text = text.dropLast() }
                position = end + 1
                return String(decoding: text, as: UTF8.self)
            }
            searched = buffer.count
            let before = position
            guard try fill() else {
                guard position == buffer.count else { throw Malformed(description: "end inside a line") }
                return nil
            }
            searched -= before - position
        }
    }

    /// The size of the next chunk; `nil` for the last one.
    private func chunkSize() throws -> Int? {
        guard let line = try line() else { throw Malformed(description: "end between chunks") }
        let digits = line.prefix { $0 != ";" && $0 != " " }
        guard let size = Int(digits, radix: 16) else { throw Malformed(description: "chunk size \(line)") }
        return size == 0 ? nil : size
    }

    private func exactly(_ length: Int, _ sink: ([UInt8]) throws -> Void) throws {
        var left = length
        while left > 0 {
            let piece = try some(limit: left)
            guard !piece.isEmpty else { throw Malformed(description: "\(left) bytes of the body are missing") }
            left -= piece.count
            try sink(piece)
        }
    }

    private func some(limit: Int) throws -> [UInt8] {
        if position == buffer.count { guard try fill() else { return [] } }
        let end = min(buffer.count, position + limit)
        defer { position = end }
        return Array(buffer[position..<end])
    }

    /// Appends the next received bytes. False at the end of the stream.
    private func fill() throws -> Bool {
        if position > 0 {
            buffer.removeFirst(position)
            position = 0
        }
        let bytes = try socket.receive()
        buffer += bytes
        return !bytes.isEmpty
    }
}

extension HTTPFields {
    init(pairs: [(String, String)]) { self.init(pairs.map { HTTPField(name: $0.0, value: $0.1) }) }

    /// The lines as they are sent.
    var lines: String { fields.map { "\($0.name): \($0.value)\r\n" }.joined() }

    var isChunked: Bool { self["Transfer-Encoding"]?.asciiLowercased.contains("chunked") ?? false }
}
