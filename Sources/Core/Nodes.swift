package import Formats

/// What a node does of the service's work (`--roles`). Whatever it does not, others have to.
package enum NodeRole: String, CaseIterable, Sendable {
    /// Answers requests.
    case api
    /// Takes tasks from the queue and transfers them.
    case transfer
    /// Sends launches, and fetches in the background.
    case launch
}

/// What a node says of itself.
package struct NodeProfile: Shape, Equatable {
    package var roles: [String] = []
    package var version = ""
    /// Where clients reach it.
    package var url = ""
    package var startedAt = Timestamp(milliseconds: 0)
    package var transfersRunning = 0
    package var maximumTransfers = 0
    /// How busy its machine is, where that is known.
    package var load: Double?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("roles", &roles)
        members.member("version", &version)
        members.member("url", &url)
        members.member("startedAt", &startedAt)
        members.member("transfersRunning", &transfersRunning)
        members.member("maximumTransfers", &maximumTransfers)
        members.optional("load", &load)
    }
}

/// A node of the service.
package struct NodeRecord: Sendable {
    package var id: String
    /// Whether it was heard of within its lease.
    package var isAlive: Bool
    package var isDraining: Bool
    /// Since it said last that it lives.
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
