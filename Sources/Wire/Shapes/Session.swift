/// A session as the service answers it.
public struct Session: Shape {
    /// Where a session stands.
    public struct State: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Takes tasks.
        public static let active: Self = "active"
        /// Takes no more tasks, and waits for the last ones.
        public static let invalidating: Self = "invalidating"
        /// Only to be read.
        public static let invalid: Self = "invalid"
        public static let known: [Self] = [.active, .invalidating, .invalid]
    }

    /// How a client is attached.
    public struct Attached: Shape {
        /// `stream`, `wait` or `lease`.
        public var kind = ""
        /// When a lease ends.
        public var expiresAt: String?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("kind", &kind)
            members.nullable("expiresAt", &expiresAt)
        }
    }

    /// The app's name for it.
    public var identifier = ""
    public var sessionDescription: String?
    /// Which session under this identifier it is, from 1.
    public var incarnation: Int64 = 1
    public var state = State.active
    /// The effective configuration, without secrets.
    public var configuration = SessionConfiguration()
    public var taskCounts = TaskCounts()
    /// Bytes of bodies received by all its tasks.
    public var countOfBytesReceived: Int64 = 0
    /// Bytes of bodies sent by all its tasks.
    public var countOfBytesSent: Int64 = 0
    /// The number of the last event, 0 before the first.
    public var lastEventSeq: Int64 = 0
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// The client that is attached.
    public var attachment: Attached?
    /// The open launch.
    public var launch: Launch?
    public var createdAt = ""
    /// Grows with every change.
    public var revision: Int64 = 1

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("identifier", &identifier)
        members.nullable("sessionDescription", &sessionDescription)
        members.member("incarnation", &incarnation)
        members.member("state", &state)
        members.member("configuration", &configuration)
        members.member("taskCounts", &taskCounts)
        members.member("countOfBytesReceived", &countOfBytesReceived)
        members.member("countOfBytesSent", &countOfBytesSent)
        members.member("lastEventSeq", &lastEventSeq)
        members.member("acknowledgedSeq", &acknowledgedSeq)
        members.nullable("attachment", &attachment)
        members.nullable("launch", &launch)
        members.member("createdAt", &createdAt)
        members.member("revision", &revision)
    }

    /// Secrets are never written.
    public func write(to writer: inout JSONWriter) {
        var members = self
        members.configuration = configuration.redacted()
        writer.object { members.visit(&$0) }
    }
}
