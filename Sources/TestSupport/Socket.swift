import Base
import Glibc

/// The error of a socket call. `code` is `errno`.
package struct SocketError: Error, CustomStringConvertible {
    package let call: StaticString
    package let code: Int32
    package var description: String { "\(call): errno \(code)" }

    init(_ call: StaticString, _ code: Int32 = errno) {
        self.call = call
        self.code = code
    }
}

/// A TCP socket with blocking calls. Releasing the last reference closes it.
///
/// Any thread may call `shutdown`, which ends blocking calls of other threads.
package final class Socket: Sendable {
    package let descriptor: Int32

    init(adopting descriptor: Int32) {
        self.descriptor = descriptor
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(descriptor) }

    /// Connects to a port of 127.0.0.1.
    ///
    /// - Parameter receiveBuffer: The size of the kernel's buffer; `nil` for the default.
    package static func connect(port: UInt16, receiveBuffer: Int32? = nil) throws -> Socket {
        let socket = Socket(adopting: try open())
        if let receiveBuffer { socket.setReceiveBuffer(receiveBuffer) }
        var address = loopback(port)
        let code = withSocketAddress(&address) { Glibc.connect(socket.descriptor, $0, $1) }
        guard code == 0 else { throw SocketError("connect") }
        return socket
    }

    /// Listens on an address of 127.0.0.0/8; port 0 selects a free one. The kernel accepts one connection more than the
    /// backlog before `accept`.
    ///
    /// The port belongs to the socket until it is closed, even after `shutdown`: connections are then refused, and no
    /// concurrent test gets the port.
    package static func listen(
        port: UInt16, backlog: Int32 = 1024, address: UInt32 = 0x7F00_0001
    ) throws -> (socket: Socket, port: UInt16) {
        let (socket, port) = port == 0 ? try boundToNext(address) : (try bound(port, address), port)
        guard Glibc.listen(socket.descriptor, backlog) == 0 else { throw SocketError("listen") }
        _ = fcntl(socket.descriptor, F_SETFL, O_NONBLOCK)
        return (socket, port)
    }

    /// Ports below those that Linux gives to clients.
    private static let ports: ClosedRange<UInt16> = 10_000...32_000
    private static let nextPort = Locked(UInt16.random(in: ports))

    /// Uses ports in turn, so that a late request to a stopped server does not reach another test's server.
    private static func boundToNext(_ ip: UInt32) throws -> (socket: Socket, port: UInt16) {
        for _ in ports {
            let port = nextPort.withLock { next in
                next = next == ports.upperBound ? ports.lowerBound : next + 1
                return next
            }
            do {
                return (try bound(port, ip), port)
            } catch let error as SocketError where error.code == EADDRINUSE {
                continue
            }
        }
        throw SocketError("bind")
    }

    private static func bound(_ port: UInt16, _ ip: UInt32) throws -> Socket {
        let socket = Socket(adopting: try open())
        var one: Int32 = 1
        setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = loopback(port, ip)
        guard withSocketAddress(&address, { bind(socket.descriptor, $0, $1) }) == 0 else { throw SocketError("bind") }
        return socket
    }

    /// The next connection; `nil` after `shutdown`.
    func accept() -> Socket? {
        while true {
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&request, 1, -1) >= 0 || errno == EINTR else { return nil }
            let (accepted, code) = Spawner.exclusively { () -> (Int32, Int32) in
                let accepted = Glibc.accept(descriptor, nil, nil)
                let code = errno
                if accepted >= 0 { _ = fcntl(accepted, F_SETFD, FD_CLOEXEC) }
                return (accepted, code)
            }
            if accepted >= 0 { return Socket(adopting: accepted) }
            guard code == EINTR || code == ECONNABORTED || code == EMFILE || code == EAGAIN else { return nil }
        }
    }

    /// Sends all bytes.
    package func send(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let base = buffer.baseAddress?.advanced(by: sent)
                let count = Glibc.send(descriptor, base, buffer.count - sent, Int32(MSG_NOSIGNAL))
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { throw SocketError("send") }
                sent += count
            }
        }
    }

    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// The next bytes, at most `limit`; empty at the end of the stream.
    package func receive(limit: Int = 1 << 16) throws -> [UInt8] {
        while true {
            var interrupted = false
            let bytes = try [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                let received = recv(descriptor, buffer.baseAddress, buffer.count, 0)
                if received < 0 && errno != EINTR { throw SocketError("recv") }
                interrupted = received < 0
                count = max(0, received)
            }
            if !interrupted { return bytes }
        }
    }

    /// The bytes that have already arrived, at most `limit`; empty at the end of the stream, `nil` if there are none
    /// yet.
    func receiveWaiting(limit: Int = 1 << 16) throws -> [UInt8]? {
        var isEarly = false
        let bytes = try [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let received = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            isEarly = received < 0 && (errno == EAGAIN || errno == EINTR)
            if received < 0 && !isEarly { throw SocketError("recv") }
            count = max(0, received)
        }
        return isEarly ? nil : bytes
    }

    /// Waits until `receive` would return bytes, the end or an error.
    func waitToReceive() throws {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&request, 1, -1) >= 0 || errno == EINTR else { throw SocketError("poll") }
    }

    /// Limits the duration of one `receive` or `send`; `nil` for no limit.
    package func setTimeout(_ limit: Duration?) {
        let milliseconds = limit.map { max(1, Int($0 / .milliseconds(1))) } ?? 0
        var time = timeval(tv_sec: milliseconds / 1000, tv_usec: milliseconds % 1000 * 1000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Limits the kernel's buffer of unread bytes to a few kilobytes.
    func receiveLittle() { setReceiveBuffer(4096) }

    private func setReceiveBuffer(_ bytes: Int32) {
        var size = bytes
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Ends both directions (FIN) for every thread that uses the socket.
    package func shutdown() { Glibc.shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Ends the sending direction (FIN).
    package func finishSending() { Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends the sending direction and reads until the peer has closed, so that no RST overtakes the sent bytes (RFC
    /// 9112 section 9.6).
    func lingerUntilPeerCloses() throws {
        finishSending()
        setTimeout(.seconds(5))
        while try !receive().isEmpty {}
    }

    /// Makes the next `close` send RST instead of FIN, once the peer has received all bytes.
    package func resetAtClose() {
        var unsent: Int32 = 0
        for _ in 0..<500 where ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0 && unsent > 0 { usleep(2000) }
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Waits until the peer has closed or `limit` is over. True if it has closed.
    package func waitForHangUp(atMost limit: Duration) -> Bool {
        var request = pollfd(fd: descriptor, events: hangUp, revents: 0)
        return poll(&request, 1, Int32(clamping: max(0, Int(limit / .milliseconds(1))))) > 0
    }

    /// `POLLRDHUP`, which Swift's Glibc lacks.
    private var hangUp: Int16 { 0x2000 }

    private static func open() throws -> Int32 {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SocketError("socket") }
        return descriptor
    }

    private static func loopback(_ port: UInt16, _ ip: UInt32 = 0x7F00_0001) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = ip.bigEndian
        return address
    }

    private static func withSocketAddress<Result>(
        _ address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
