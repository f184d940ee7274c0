import Foundation
import Wire

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A small HTTP server for webhooks, with one request for each connection, on threads of its own, until the process
/// ends.
enum WebhookListener {
    /// Judges a request by its header fields, with names in lower case, and its body.
    typealias Respond = @Sendable ([String: String], [UInt8]) async -> LaunchReceiver.Response

    /// Listens on an IPv4 address.
    ///
    /// - Parameter port: The port; 0 selects a free one.
    /// - Returns: The port.
    /// - Throws: ``ClientError/file(_:code:)`` if the port cannot be bound, with the system's `errno`.
    static func start(host: String, port: UInt16, respond: @escaping Respond) throws(ClientError) -> UInt16 {
        var (yes, address) = (Int32(1), sockaddr_in())
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw .file("\(host):\(port)", code: EINVAL) }
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        let listener = socket(AF_INET, stream, 0)
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard isBound else {
            let code = errno
            close(listener)
            throw .file("\(host):\(port)", code: code)
        }
        Thread.detachNewThread { serve(listener, respond) }
        return UInt16(bigEndian: address.sin_port)
    }

    #if canImport(Glibc)
        private static let stream = Int32(SOCK_STREAM.rawValue)
        private static let noSignal = Int32(MSG_NOSIGNAL)
    #elseif canImport(Musl)
        private static let stream = Int32(SOCK_STREAM)
        private static let noSignal = Int32(MSG_NOSIGNAL)
    #else
        private static let stream = SOCK_STREAM
        private static let noSignal = Int32(0)
    #endif

    private static func serve(_ listener: Int32, _ respond: @escaping Respond) {
        let room = DispatchSemaphore(value: 32)
        while true {
            room.wait()
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else {
                room.signal()
                // Without a free descriptor the connection stays in the queue. An immediate retry would spin.
                Thread.sleep(forTimeInterval: 0.1)
                continue
            }
            Thread.detachNewThread {
                let request = request(connection)
                room.signal()
                Task {
                    guard let (fields, body) = request else {
                        return answer(connection, .init(status: 400, reason: "a webhook is a POST with a length"))
                    }
                    answer(connection, await respond(fields, body))
                }
            }
        }
    }

    /// The header fields and the body; `nil` unless the request is a complete POST.
    private static func request(_ connection: Int32) -> (headers: [String: String], body: [UInt8])? {
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var request = ArrivingRequest()
        while !request.isRefused {
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, recv(connection, buffer.baseAddress, buffer.count, 0))
            }
            guard !piece.isEmpty else { return nil }
            if let complete = request.add(piece) { return complete }
        }
        return nil
    }

    private static func answer(_ connection: Int32, _ response: LaunchReceiver.Response) {
        let (status, reason) = (response.status, response.reason)
        let length = status == 204 ? "" : "Content-Length: \(reason.utf8.count)\r\n"
        let text = "HTTP/1.1 \(status) \(status < 300 ? "OK" : "No")\r\nConnection: close\r\n\(length)\r\n\(reason)"
        _ = send(connection, text, text.utf8.count, noSignal)
        close(connection)
    }
}

extension LaunchReceiver {
    /// Listens for launches on a port of 127.0.0.1, on threads of its own, until the process ends.
    ///
    /// The listener is for development, and for use behind a TLS proxy. An app with an HTTP server calls
    /// ``respond(to:body:)`` instead.
    ///
    /// - Throws: ``ClientError/file(_:code:)`` if the port cannot be bound, with the system's `errno`.
    public func listen(on port: UInt16) throws(ClientError) {
        _ = try WebhookListener.start(host: "127.0.0.1", port: port) { await self.respond(to: $0, body: $1) }
    }
}

extension Webhook {
    /// Listens for webhooks on a port of 127.0.0.1, on threads of its own, until the process ends.
    ///
    /// Each gets a response at once: 202 if it is signed, else 401 or 400. It serves programs without session objects,
    /// for which ``LaunchReceiver`` is no use, such as `examples/swift-receiver`.
    ///
    /// - Returns: The signed webhooks as they arrive.
    /// - Throws: ``ClientError/file(_:code:)`` if the port cannot be bound, with the system's `errno`.
    public func listen(on port: UInt16) throws(ClientError) -> some AsyncSequence<WebhookPayload, Never> & Sendable {
        try arrivals(host: "127.0.0.1", port: port).arrivals.compactMap { try? $0.get() }
    }

    /// Listens for webhooks on an address, and also returns the unsigned ones.
    ///
    /// - Parameter port: The port; 0 selects a free one, which is returned.
    package func arrivals(
        host: String, port: UInt16
    ) throws(ClientError) -> (port: UInt16, arrivals: AsyncStream<Result<WebhookPayload, WebhookError>>) {
        let (stream, arrivals) = AsyncStream.makeStream(of: Result<WebhookPayload, WebhookError>.self)
        let port = try WebhookListener.start(host: host, port: port) { headers, body in
            let arrival = Result { () throws(WebhookError) in try self.verify(headers: headers, body: body) }
            // Without a reader the webhook is refused, so that it is repeated.
            guard case .enqueued = arrivals.yield(arrival) else { return .init(status: 503, reason: "nobody reads") }
            guard case .failure(let error) = arrival else { return .init(status: 202, reason: "") }
            return .init(error)
        }
        return (port, stream)
    }
}
