package import Core
import Glibc

package enum MachineAddresses {
    /// The addresses of all interfaces at this moment, loopback included; nil where `getifaddrs` fails.
    package static func current() -> Set<IPAddress>? {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return nil }
        defer { freeifaddrs(first) }
        var addresses: Set<IPAddress> = []
        var next = first
        while let interface = next?.pointee {
            if let pointer = interface.ifa_addr, let (address, _) = SocketAddress.read(pointer) {
                addresses.insert(address.unmapped)
            }
            next = interface.ifa_next
        }
        return addresses
    }
}
