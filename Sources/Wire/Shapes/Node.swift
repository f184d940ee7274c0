/// What a node does.
public struct NodeRole: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It answers requests.
    public static let api: Self = "api"
    /// It transfers.
    public static let transfer: Self = "transfer"
    /// It sends launches.
    public static let launch: Self = "launch"
    public static let known: [Self] = [.api, .transfer, .launch]
}

/// How a node is.
public struct NodeState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It takes tasks and launches.
    public static let active: Self = "active"
    /// It takes nothing more, and still answers requests.
    public static let draining: Self = "draining"
    /// Nothing was heard of it for too long; others take over what it has.
    public static let silent: Self = "silent"
    public static let known: [Self] = [.active, .draining, .silent]
}

/// A process of the service.
public struct Node: Shape {
    public var id = ""
    public var state: NodeState = .active
    public var roles: [NodeRole] = []
    public var version = ""
    /// The base of the URLs that it puts into webhooks.
    public var url = ""
    public var startedAt = ""
    /// When it said last that it lives.
    public var heartbeatAt = ""
    public var transfersRunning = 0
    /// How many it takes at most; 0 where it does not transfer.
    public var maximumTransfers = 0
    /// How long work waits on its machine, compared with how long it runs; `nil` where the kernel does not tell.
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
