import Base
import Glibc

/// A bound socket that is not served yet, so that its port is known before the components that need it are created.
///
/// Clients that connect meanwhile wait in the kernel's queue.
package final class Listener: Sendable {
    package let port: UInt16
    private let descriptor: Locked<Int32?>

    /// - Parameters:
    ///   - address: Numeric, IPv4 or IPv6.
    ///   - port: 0 for a free port.
    package init(address: String, port: UInt16) throws(ServerStartError) {
        let socket = try SocketAddress.listen(address, port: port)
        self.port = socket.port
        descriptor = Locked(socket.descriptor)
    }

    deinit {
        if let descriptor = take() { close(descriptor) }
    }

    /// Transfers the socket to the caller, which closes it.
    func take() -> Int32? { descriptor.withLock { $0.take() } }
}
