package import Core
import TransferEngine

/// An IPv4 address of the machine other than loopback, if it has one.
package func addressOfInterface() -> IPAddress? {
    MachineAddresses.current()?.first { address in
        guard case .v4 = address else { return false }
        return !address.isLoopback
    }
}
