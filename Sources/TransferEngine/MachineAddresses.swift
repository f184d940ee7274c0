package import Core
import Glibc

package enum MachineAddresses {
    /// The current addresses of all interfaces, including loopback; `nil` if `getifaddrs` fails.
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
