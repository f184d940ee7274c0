/// The row of a process that shares a PostgreSQL database with others.
package struct Node: Sendable {
    package let id: String
    /// Whether the node is within its lease. The first node that checks takes over a node whose lease has expired.
    package let isAlive: Bool
    /// The time since the last renewal of its lease.
    package let silence: Duration
    /// The number of its last commit.
    package let committed: Int64
    /// Whether the operator requested its drain.
    package let isDraining: Bool
    /// Its description for other nodes; empty before the first one.
    package let document: [UInt8]
}
