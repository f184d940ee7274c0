import Glibc
import TestSupport

/// A network that loses packets silently, as with a pulled cable.
///
/// The rules apply to a whole network namespace and end with it: only tests with a namespace of their own
/// (`PRIVATE_NETWORK=1`) lose packets.
enum PacketLoss {
    static let isPossible = getenv("PRIVATE_NETWORK").map { String(cString: $0) } == "1"

    /// Loses all packets to and from a port of this machine, or stops doing so.
    static func lose(_ loses: Bool, port: UInt16) async throws {
        let rules = """
            table ip loss { set ports { type inet_service; }; chain input { type filter hook input priority 0; }; }
            flush chain ip loss input
            add rule ip loss input tcp dport @ports drop
            add rule ip loss input tcp sport @ports drop
            \(loses ? "add" : "delete") element ip loss ports { \(port) }
            """
        try await ChildProcess.run(["/usr/sbin/nft", rules])
    }
}
