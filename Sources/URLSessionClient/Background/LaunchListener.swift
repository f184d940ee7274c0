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
    /// Listens for launches on a port of 127.0.0.1, on threads of its own, until the process ends.
    ///
    /// The listener is for development, and for use behind a TLS proxy. An app with an HTTP server calls
    /// ``respond(to:body:)`` instead.
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
                    // Without a free descriptor the connection stays in the queue. An immediate retry would spin.
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

    /// Reads one request and responds to it.
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

    /// The maximum size of a launch: the events that the service sends, and room for the rest.
    private static let longest = 4 << 20

    private static func readRequest(_ connection: Int32) -> (headers: [String: String], body: ArraySlice<UInt8>)? {
        let gap = Array("\r\n\r\n".utf8)
        var bytes: [UInt8] = []
        var head: [String: String]?
        var start = 0
        while bytes.count <= longest {
            if head == nil, let end = bytes.firstRange(of: gap) {
                head = fields(of: bytes[..<end.lowerBound])
                start = end.upperBound
            }
            if let head {
                let length = Int(head["content-length"] ?? "") ?? 0
                if bytes.count - start >= length { return (head, bytes[start...].prefix(max(0, length))) }
            }
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, recv(connection, buffer.baseAddress, buffer.count, 0))
            }
            guard !piece.isEmpty else { return nil }
            bytes += piece
        }
        return nil
    }

    /// The header fields after the request line, with names in lower case.
    private static func fields(of head: ArraySlice<UInt8>) -> [String: String] {
        var fields: [String: String] = [:]
        for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return fields
    }
}

/// The system's `listen`, which is shadowed by a method of that name.
private func beginListening(_ socket: Int32, _ waiting: Int32) -> Int32 { listen(socket, waiting) }
