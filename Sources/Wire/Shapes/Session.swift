/// A session as the service answers it.
public struct Session: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where a session stands.
    public struct State: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a state of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Takes tasks.
        public static let active: Self = "active"
        /// Takes no more tasks, and waits for the last ones.
        public static let invalidating: Self = "invalidating"
        /// Only to be read.
        public static let invalid: Self = "invalid"
        /// All states.
        public static let known: [Self] = [.active, .invalidating, .invalid]
    }

    /// How a client is attached.
    public struct Attached: Sendable, Hashable, JSONWritable, JSONReadable {
        /// `stream`, `wait` or `lease`.
        public var kind: String
        /// When a lease ends.
        public var expiresAt: String?

        /// Makes the way a client is attached.
        public init(kind: String, expiresAt: String?) {
            self.kind = kind
            self.expiresAt = expiresAt
        }

        /// Reads the way a client is attached.
        public init(reading reader: inout ObjectReader) {
            kind = reader.string("kind")
            expiresAt = reader.optionalString("expiresAt")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("kind", kind)
                writer.member("expiresAt", expiresAt)
            }
        }
    }

    /// The app's name for it.
    public var identifier: String
    /// The app's words about it.
    public var sessionDescription: String?
    /// Which session under this identifier it is, from 1.
    public var incarnation: Int64
    /// Where it stands.
    public var state: State
    /// The effective configuration, without secrets.
    public var configuration: SessionConfiguration
    /// How many tasks are where.
    public var taskCounts: TaskCounts
    /// Bytes of bodies received by all its tasks.
    public var countOfBytesReceived: Int64
    /// Bytes of bodies sent by all its tasks.
    public var countOfBytesSent: Int64
    /// The number of the last event, 0 before the first.
    public var lastEventSeq: Int64
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64
    /// The client that is attached.
    public var attachment: Attached?
    /// The open launch.
    public var launch: Launch?
    /// When it was created.
    public var createdAt: String
    /// Grows with every change.
    public var revision: Int64

    /// Makes a session without tasks and events.
    public init(identifier: String, incarnation: Int64 = 1, createdAt: String, revision: Int64 = 1) {
        self.identifier = identifier
        self.incarnation = incarnation
        self.createdAt = createdAt
        self.revision = revision
        state = .active
        configuration = SessionConfiguration()
        taskCounts = TaskCounts()
        countOfBytesReceived = 0
        countOfBytesSent = 0
        lastEventSeq = 0
        acknowledgedSeq = 0
    }

    /// Reads a session.
    public init(reading reader: inout ObjectReader) {
        identifier = reader.string("identifier")
        sessionDescription = reader.optionalString("sessionDescription")
        incarnation = reader.integer("incarnation")
        state = reader.word("state")
        configuration = reader.object("configuration")
        taskCounts = reader.object("taskCounts")
        countOfBytesReceived = reader.integer("countOfBytesReceived")
        countOfBytesSent = reader.integer("countOfBytesSent")
        lastEventSeq = reader.integer("lastEventSeq")
        acknowledgedSeq = reader.integer("acknowledgedSeq")
        attachment = reader.optionalObject("attachment")
        launch = reader.optionalObject("launch")
        createdAt = reader.string("createdAt")
        revision = reader.integer("revision")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("identifier", identifier)
            writer.member("sessionDescription", sessionDescription)
            writer.member("incarnation", incarnation)
            writer.member("state", state)
            writer.member("configuration", configuration.redacted())
            writer.member("taskCounts", taskCounts)
            writer.member("countOfBytesReceived", countOfBytesReceived)
            writer.member("countOfBytesSent", countOfBytesSent)
            writer.member("lastEventSeq", lastEventSeq)
            writer.member("acknowledgedSeq", acknowledgedSeq)
            writer.member("attachment", attachment)
            writer.member("launch", launch)
            writer.member("createdAt", createdAt)
            writer.member("revision", revision)
        }
    }
}
