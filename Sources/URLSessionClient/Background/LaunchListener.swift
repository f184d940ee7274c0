import Foundation
import Wire

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension LaunchReceiver {
    /// Listens for launches on a port of 127.0.0.1, on threads of its own, as long as the process lives.
    ///
    /// It is for the machine of a developer, and for what stands behind a proxy that speaks TLS. An app that has an HTTP
    /// server gives it ``respond(to:body:)`` instead.
    ///
    /// - Throws: ``ClientError/file(_:code:)`` if the port cannot be bound, with the system's `errno`.
    public func listen(on port: UInt16) throws(ClientError) {
        let listener = socket(AF_INET, Self.stream, 0)
        var (yes, address) = (Int32(1), sockaddr_in())
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeBytes(of: &address) { bytes in
            bind(listener, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, size)
        }
        guard bound == 0, beginListening(listener, 16) == 0 else {
            let code = errno
            close(listener)
            throw .file("127.0.0.1:\(port)", code: code)
        }
        let room = DispatchSemaphore(value: 32)
        Thread.detachNewThread {
            while true {
                room.wait()
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    room.signal()
                    // Without a free descriptor the connection stays in the queue: accepting at once would spin.
                    Thread.sleep(forTimeInterval: 0.1)
                    continue
                }
                Thread.detachNewThread {
                    self.serve(connection)
                    room.signal()
                }
            }
        }
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

    /// Takes one request, and answers when it is judged.
    private func serve(_ connection: Int32) {
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard let (headers, body) = Self.readRequest(connection) else {
            close(connection)
            return
        }
        Task {
            let response = await respond(to: headers, body: body)
            let head =
                "HTTP/1.1 \(response.status) \(response.reason.isEmpty ? "OK" : "No")\r\nConnection: close\r\n"
                + (response.status == 204 ? "\r\n" : "Content-Length: \(response.reason.utf8.count)\r\n\r\n")
            let answer = Array((head + response.reason).utf8)
            _ = send(connection, answer, answer.count, Self.noSignal)
            close(connection)
        }
    }

    /// Most bytes of a launch: what the service sends of events, and room for the rest.
    private static let longest = 4 << 20

    private static func readRequest(_ connection: Int32) -> (headers: [String: String], body: ArraySlice<UInt8>)? {
        var request = ArrivingRequest()
        while request.count <= longest {
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, recv(connection, buffer.baseAddress, buffer.count, 0))
            }
            guard !piece.isEmpty else { return nil }
            if let whole = request.add(piece) { return whole }
        }
        return nil
    }
}

/// The system's `listen`, which a method of that name hides.
private func beginListening(_ socket: Int32, _ waiting: Int32) -> Int32 { listen(socket, waiting) }
