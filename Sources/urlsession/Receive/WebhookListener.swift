import Dispatch
import Glibc
import Synchronization
import URLSessionClient
import Wire

/// A small HTTP server for webhooks: one request a connection, verified and answered at once.
final class WebhookListener: Sendable {
    /// What arrived.
    enum Arrival: Sendable {
        case webhook(WebhookPayload)
        /// Not believed, and why.
        case refused(String)
    }

    /// Bytes of a request's head, and of its body.
    private static let longestHead = 64 << 10
    private static let longestBody = 8 << 20
    /// Seconds for a request to come.
    private static let patience = 10

    /// Where it listens unless told otherwise: on a port that no common server uses.
    static let standardAddress = "127.0.0.1:8757"

    let port: UInt16
    private let socket: Int32
    private let isOpen = Atomic(true)

    /// - Parameter address: `127.0.0.1:8757`; port 0 picks one.
    init(_ address: String) throws {
        let parts = address.split(separator: ":").map(String.init)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        guard parts.count == 2, let port = UInt16(parts[1]), inet_pton(AF_INET, parts[0], &name.sin_addr) == 1 else {
            throw CallWords.Fault(
                text: "--listen must be ADDR:PORT, such as \(Self.standardAddress): \(address)", command: "receive")
        }
        name.sin_port = port.bigEndian
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var (yes, size) = (Int32(1), socklen_t(MemoryLayout<sockaddr_in>.size))
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
        let isBound = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, size) == 0 && listen(socket, 64) == 0 && getsockname(socket, $0, &size) == 0
            }
        }
        guard isBound else {
            let reason = String(cString: strerror(errno))
            Glibc.close(socket)
            throw Failure("cannot listen on \(address): \(reason)")
        }
        self.socket = socket
        self.port = UInt16(bigEndian: name.sin_port)
    }

    /// Arrivals until the stream is not read any more.
    func arrivals(verifying webhook: URLSessionClient.Webhook) -> AsyncStream<Arrival> {
        AsyncStream { continuation in
            continuation.onTermination = { _ in self.close() }
            DispatchQueue.global().async {
                while true {
                    let connection = accept(self.socket, nil, nil)
                    guard self.isOpen.load(ordering: .sequentiallyConsistent) else { return }
                    guard connection >= 0 else {
                        usleep(100_000)  // Without a free descriptor the connection stays in the queue.
                        continue
                    }
                    DispatchQueue.global().async {
                        if let arrival = Self.serve(connection, webhook) { continuation.yield(arrival) }
                        Glibc.close(connection)
                    }
                }
            }
        }
    }

    private func close() {
        guard isOpen.exchange(false, ordering: .sequentiallyConsistent) else { return }
        shutdown(socket, Int32(SHUT_RDWR))
        Glibc.close(socket)
    }

    private static func serve(_ connection: Int32, _ webhook: URLSessionClient.Webhook) -> Arrival? {
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard let (fields, body) = request(connection) else {
            answer(connection, "400 Bad Request")
            return nil
        }
        do throws(WebhookError) {
            let payload = try webhook.verify(headers: fields, body: body, now: Words.now / 1000)
            answer(connection, "202 Accepted")
            return .webhook(payload)
        } catch {
            answer(connection, "401 Unauthorized")
            return .refused(words(error))
        }
    }

    private static func words(_ error: WebhookError) -> String {
        switch error {
        case .unusableSecret: "the secret is none"
        case .incompleteHeaders: "it has no signature"
        case .wrongTime: "it was signed too long ago, or in the future"
        case .wrongSignature: "it is not signed with this secret"
        case .unreadable: "it is not JSON of a webhook"
        }
    }

    /// Header fields by their names in small letters, and the body; `nil` for what is no such request.
    private static func request(_ connection: Int32) -> (fields: [String: String], body: [UInt8])? {
        var bytes: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        var headEnd: Int?
        while headEnd == nil, bytes.count < longestHead {
            let searched = max(0, bytes.count - 3)
            guard receive(connection, &bytes) else { return nil }
            headEnd = bytes[searched...].firstRange(of: end)?.upperBound
        }
        guard let headEnd else { return nil }
        let lines = String(decoding: bytes[..<headEnd], as: UTF8.self).split(separator: "\r\n")
        guard lines.first?.hasPrefix("POST ") == true else { return nil }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { fields[parts[0].lowercased()] = parts[1].trimmed }
        }
        guard let length = fields["content-length"].flatMap({ Int($0) }), (0...longestBody).contains(length) else {
            return nil
        }
        while bytes.count < headEnd + length { guard receive(connection, &bytes) else { return nil } }
        return (fields, Array(bytes[headEnd..<headEnd + length]))
    }

    private static func receive(_ connection: Int32, _ bytes: inout [UInt8]) -> Bool {
        let piece = [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, count in
            count = max(0, recv(connection, buffer.baseAddress, buffer.count, 0))
        }
        bytes += piece
        return !piece.isEmpty
    }

    private static func answer(_ connection: Int32, _ status: String) {
        let text = "HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }
}
