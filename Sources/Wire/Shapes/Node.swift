/// A role of a node.
public struct NodeRole: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Answers requests.
    public static let api: Self = "api"
    /// Runs transfers.
    public static let transfer: Self = "transfer"
    /// Sends launches.
    public static let launch: Self = "launch"
    public static let known: [Self] = [.api, .transfer, .launch]
}

/// The state of a node.
public struct NodeState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Claims tasks and launches.
    public static let active: Self = "active"
    /// Claims nothing more, and still answers requests.
    public static let draining: Self = "draining"
    /// The lease has expired; other nodes take over its work.
    public static let silent: Self = "silent"
    public static let known: [Self] = [.active, .draining, .silent]
}

/// A process of the service.
public struct Node: Shape {
    public var id = ""
    public var state: NodeState = .active
    public var roles: [NodeRole] = []
    public var version = ""
    /// The base of the URLs in its webhooks.
    public var url = ""
    public var startedAt = ""
    /// The last renewal of its lease.
    public var heartbeatAt = ""
    public var transfersRunning = 0
    /// The maximum number of transfers; 0 without the role `transfer`.
    public var maximumTransfers = 0
    /// The time that work waits on its machine, in relation to the time that it runs; `nil` if the kernel has no
    /// figure.
    public var load: Double?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.member("state", &state)
        members.member("roles", &roles)
        members.member("version", &version)
        members.member("url", &url)
        members.member("startedAt", &startedAt)
        members.member("heartbeatAt", &heartbeatAt)
        members.member("transfersRunning", &transfersRunning)
        members.member("maximumTransfers", &maximumTransfers)
        members.nullable("load", &load)
    }
}
