import Glibc
import TestSupport

/// A blocking client that sends exactly the given bytes. It needs a thread of its own, because Swift's pool belongs to
/// the handlers.
final class RawClient {
    struct Answer: Sendable {
        var status: Int
        var headers: [(name: String, value: String)]
        var body: [UInt8]

        subscript(name: String) -> String? { headers.first { $0.name.lowercased() == name.lowercased() }?.value }
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let socket: Socket
    private var buffer: [UInt8] = []

    init(_ port: UInt16, receiveBuffer: Int32? = nil) throws {
        socket = try Socket.connect(port: port, receiveBuffer: receiveBuffer)
        socket.setTimeout(.seconds(60))
    }

    var descriptor: Int32 { socket.descriptor }

    func send(_ text: String) throws { try socket.send(text) }

    func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }

    /// Sends a request with the required fields.
    func request(_ method: String, _ target: String, _ headers: String = "", body: String? = nil) throws {
        let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
        try send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n\(headers)\(length)\r\n\(body ?? "")")
    }

    func exchange(_ method: String, _ target: String, _ headers: String = "", body: String? = nil) throws -> Answer {
        try request(method, target, headers, body: body)
        return try answer(toHead: method == "HEAD")
    }

    /// Whether the server has closed the connection. Discards the remaining bytes.
    func isClosed() -> Bool {
        while true {
            do { if try !fill() { return true } } catch { return (error as? SocketError)?.code == ECONNRESET }
        }
    }

    /// All bytes until the server closes.
    func rest() throws -> [UInt8] {
        while try fill() {}
        return buffer
    }

    /// Reads until `text` has arrived.
    func read(until text: String) throws {
        while !String(decoding: buffer, as: UTF8.self).contains(text) {
            guard try fill() else { throw Failure(description: "closed before \(text)") }
        }
    }

    func answer(toHead: Bool = false) throws -> Answer {
        let lines = try head()
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count > 1 else { throw Failure(description: "no status line: \(lines)") }
        var answer = Answer(status: Int(words[1]) ?? 0, headers: [], body: [])
        for line in lines.dropFirst() {
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            answer.headers.append((String(line[..<colon]), String(line[colon...].dropFirst(2))))
        }
        if toHead || answer.status == 204 || answer.status == 304 { return answer }
        if answer["Transfer-Encoding"] == "chunked" {
            while true {
                let size = Int(try line(), radix: 16) ?? 0
                answer.body += try take(size)
                _ = try take(2)
                if size == 0 { return answer }
            }
        }
        if let length = answer["Content-Length"].flatMap({ Int($0) }) {
            answer.body = try take(length)
        } else {
            while try fill() {}
            answer.body = buffer
        }
        return answer
    }

    /// The lines of a response's head, the status line first.
    func head() throws -> [String] {
        var lines: [String] = []
        while true {
            let next = try line()
            if next.isEmpty { return lines }
            lines.append(next)
        }
    }

    /// One chunk of a chunked body.
    func chunk() throws -> String {
        let size = Int(try line(), radix: 16) ?? 0
        let bytes = try take(size)
        _ = try take(2)
        return String(decoding: bytes, as: UTF8.self)
    }

    func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let line = buffer[..<end].filter { $0 != 0x0D }
                buffer.removeFirst(end + 1)
                return String(decoding: line, as: UTF8.self)
            }
            guard try fill() else { throw Failure(description: "closed") }
        }
    }

    func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count {
            guard try fill() else { throw Failure(description: "closed inside a body") }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    private func fill() throws -> Bool {
        let bytes = try socket.receive()
        buffer += bytes
        return !bytes.isEmpty
    }
}
