/// A session as the service returns it.
public struct Session: Shape {
    /// The state of a session.
    public struct State: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Accepts tasks.
        public static let active: Self = "active"
        /// Accepts no more tasks, and waits for the last ones.
        public static let invalidating: Self = "invalidating"
        /// Read-only.
        public static let invalid: Self = "invalid"
        public static let known: [Self] = [.active, .invalidating, .invalid]
    }

    /// The attachment of a client.
    public struct Attached: Shape {
        /// `stream`, `wait` or `lease`.
        public var kind = ""
        /// The time at which a lease expires.
        public var expiresAt: String?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("kind", &kind)
            members.nullable("expiresAt", &expiresAt)
        }
    }

    /// The app's name of the session.
    public var identifier = ""
    public var sessionDescription: String?
    /// The incarnation, from 1.
    public var incarnation: Int64 = 1
    public var state = State.active
    /// The effective configuration, without secrets.
    public var configuration = SessionConfiguration()
    public var taskCounts = TaskCounts()
    /// Body bytes that all its tasks received.
    public var countOfBytesReceived: Int64 = 0
    /// Body bytes that all its tasks sent.
    public var countOfBytesSent: Int64 = 0
    /// The sequence number of the last event; 0 before the first.
    public var lastEventSeq: Int64 = 0
    /// The last event that the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// The attached client.
    public var attachment: Attached?
    /// The open launch.
    public var launch: Launch?
    public var createdAt = ""
    /// Increases with every change.
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

    /// Writes the session without secrets.
    public func write(to writer: inout JSONWriter) {
        var members = self
        members.configuration = configuration.redacted()
        writer.object { members.visit(&$0) }
    }
}
