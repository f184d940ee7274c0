package import Formats

/// The kinds of work of a node (`--roles`). Other nodes have to do the rest.
package enum NodeRole: String, CaseIterable, Sendable {
    /// Responds to API requests.
    case api
    /// Claims tasks from the queue and transfers them.
    case transfer
    /// Sends launches, and starts background fetches.
    case launch
}

/// The bytes of an unfinished content for which readers wait at a node.
package struct ArrivingWait: Shape {
    package var task: Int64 = 0
    package var offsets: [Int64] = []

    package init() {}

    package init(task: TaskID, offsets: [Int64]) {
        self.task = task.rawValue
        self.offsets = offsets
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("task", &task)
        members.member("offsets", &offsets)
    }
}

/// A node's description for other nodes.
package struct NodeProfile: Shape, Equatable {
    package var roles: [String] = []
    package var version = ""
    /// The URL at which clients reach the node.
    package var url = ""
    package var startedAt = Timestamp(milliseconds: 0)
    package var transfersRunning = 0
    package var maximumTransfers = 0
    /// The load of its machine, if it is known.
    package var load: Double?
    /// Tasks whose unfinished contents have readers at the node.
    package var reading: [Int64] = []
    /// The bytes of these contents that readers wait for.
    package var waits: [ArrivingWait] = []
    /// The copies of unfinished contents whose files the node has.
    package var copies: [ArrivingCopy] = []
    /// Versions of sets that readers have open at the node.
    package var openVersions: [Int64] = []

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("roles", &roles)
        members.member("version", &version)
        members.member("url", &url)
        members.member("startedAt", &startedAt)
        members.member("transfersRunning", &transfersRunning)
        members.member("maximumTransfers", &maximumTransfers)
        members.optional("load", &load)
        members.sparse("reading", &reading, unless: [])
        members.sparse("waits", &waits, unless: [])
        members.sparse("copies", &copies, unless: [])
        members.sparse("openVersions", &openVersions, unless: [])
    }
}

package struct NodeRecord: Sendable {
    package var id: String
    /// Whether the node is within its lease.
    package var isAlive: Bool
    package var isDraining: Bool
    /// The time since the last renewal of its lease.
    package var silence: Duration
    /// The number of its last commit.
    package var committed: Int64
    package var profile: NodeProfile

    package init(
        id: String, isAlive: Bool = true, isDraining: Bool = false, silence: Duration = .zero, committed: Int64 = 0,
        profile: NodeProfile
    ) {
        self.id = id
        self.isAlive = isAlive
        self.isDraining = isDraining
        self.silence = silence
        self.committed = committed
        self.profile = profile
    }
}
