import CLinux
import CMicroHTTPD
import Glibc

/// Numeric addresses of sockets.
enum SocketAddress {
    /// A listening socket on a numeric address, and its port.
    static func listen(_ address: String, port: UInt16) throws(ServerStartError) -> (descriptor: Int32, port: UInt16) {
        var four = sockaddr_in()
        var six = sockaddr_in6()
        let descriptor: Int32
        if inet_pton(AF_INET, address, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            descriptor = try listen(&four, AF_INET, address)
        } else if inet_pton(AF_INET6, address, &six.sin6_addr) == 1 {
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            descriptor = try listen(&six, AF_INET6, address)
        } else {
            throw ServerStartError(message: "not a numeric address: \(address)")
        }
        return (descriptor, self.port(of: descriptor))
    }

    private static func listen<Address>(
        _ address: inout Address, _ family: Int32, _ name: String
    ) throws(ServerStartError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw ServerStartError(call: "socket", errno) }
        setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        probeIdleClients(descriptor)
        boundUnsentBytes(descriptor)
        let bound = withUnsafeBytes(of: &address) {
            // `bind` expects the common prefix of all address types.
            bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard bound == 0, Glibc.listen(descriptor, 1024) == 0 else {
            let code = errno
            close(descriptor)
            throw ServerStartError(call: "cannot listen on \(name)", code)
        }
        return descriptor
    }

    /// Has the kernel probe silent clients. Accepted sockets inherit the options of their listener (tcp(7)).
    ///
    /// A client whose machine or network fails sends no FIN, and a held request has nothing to send that would reveal
    /// the failure. The connection ends 11 s after the last packet of such a client: 5 s and three probes, each 2 s.
    private static func probeIdleClients(_ listener: Int32) {
        setOption(listener, SOL_SOCKET, SO_KEEPALIVE, 1)
        setOption(listener, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 5)
        setOption(listener, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 2)
        setOption(listener, Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
    }

    /// Bounds the bytes that the kernel keeps unsent for a client, here as inherited by accepted sockets (tcp(7)).
    ///
    /// The kernel reports a socket as writable once a third of its buffer is free, and half of this bound. A client that
    /// reads slowly takes longer for a third of several megabytes than a connection may be idle.
    private static func boundUnsentBytes(_ listener: Int32) {
        setOption(listener, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, 128 << 10)
    }

    static func setOption(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        let code = setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
        precondition(code == 0, "setsockopt: \(errno)")
    }

    private static func port(of descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutableBytes(of: &storage) {
            getsockname(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        precondition(code == 0, "getsockname: \(errno)")
        // Both address families have the port at the same offset.
        return withUnsafeBytes(of: &storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }
}

/// The reason for which a server could not start.
package struct ServerStartError: Error, Sendable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    init(message: String) { self.message = message }

    init(call: String, _ code: Int32) { message = "\(call): \(String(cString: strerror(code)))" }
}
