/// A process that shares the database of a server with others, as its row says.
package struct Node: Sendable {
    package let id: String
    /// Whether the node is within its lease. A node whose lease expired loses its place to the first node that looks.
    package let isAlive: Bool
    /// How long ago it said last that it lives.
    package let silence: Duration
    /// The number of its last commit.
    package let committed: Int64
    /// Whether it was asked to take nothing more.
    package let isDraining: Bool
    /// What it says of itself; empty before it has said anything.
    package let document: [UInt8]
}
