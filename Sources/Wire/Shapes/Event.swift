/// A delegate message. All kinds have the same envelope.
///
/// Stored events have a ``seq``. Live ones have none and are sent to open streams only.
public struct Event: Shape {
    /// The kind of a message.
    public struct Kind: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// A task was created. Live.
        public static let taskDidCreate: Self = "task.didCreate"
        /// A task waits for a network. Live.
        public static let taskIsWaitingForConnectivity: Self = "task.isWaitingForConnectivity"
        /// Bytes of a body were sent. Live.
        public static let taskDidSendBodyData: Self = "task.didSendBodyData"
        /// Bytes of content were received. Live.
        public static let taskDidWriteData: Self = "task.didWriteData"
        /// An attempt failed, and another one follows. Live.
        public static let taskWillRetry: Self = "task.willRetry"
        /// The app decides whether a request may start.
        public static let taskWillBeginDelayedRequest: Self = "task.willBeginDelayedRequest"
        /// The app provides a credential.
        public static let taskDidReceiveChallenge: Self = "task.didReceiveChallenge"
        /// A download resumed after an interruption.
        public static let taskDidResumeAtOffset: Self = "task.didResumeAtOffset"
        /// A download has its content.
        public static let taskDidFinishDownloading: Self = "task.didFinishDownloading"
        /// The metrics of a task.
        public static let taskDidFinishCollectingMetrics: Self = "task.didFinishCollectingMetrics"
        /// A task is completed.
        public static let taskDidComplete: Self = "task.didComplete"
        /// No running task of the session makes progress.
        public static let sessionDidStall: Self = "session.didStall"
        /// A version of a set became current.
        public static let setDidPublish: Self = "set.didPublish"
        /// A version of a set failed.
        public static let setDidFail: Self = "set.didFail"
        /// All events of a launch were handled.
        public static let sessionDidFinishEvents: Self = "session.didFinishEvents"
        /// The session is invalid.
        public static let sessionDidBecomeInvalid: Self = "session.didBecomeInvalid"
        public static let known: [Self] = [
            .taskDidCreate, .taskIsWaitingForConnectivity, .taskDidSendBodyData, .taskDidWriteData, .taskWillRetry,
            .taskWillBeginDelayedRequest, .taskDidReceiveChallenge, .taskDidResumeAtOffset, .taskDidFinishDownloading,
            .taskDidFinishCollectingMetrics, .taskDidComplete, .sessionDidStall, .setDidPublish, .setDidFail,
            .sessionDidFinishEvents, .sessionDidBecomeInvalid,
        ]
    }

    /// The sequence number in the session, from 1 without gaps; `nil` for a live event.
    public var seq: Int64?
    public var type = Kind()
    public var occurredAt = ""
    public var sessionIdentifier = ""
    /// `nil` for an event of the session as a whole.
    public var taskIdentifier: Int64?
    public var clientTaskId: String?
    public var group: String?
    /// The content of the message, by its type: ``EventData``.
    public var data = JSONText.emptyObject

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("seq", &seq)
        members.member("type", &type)
        members.member("occurredAt", &occurredAt)
        members.member("sessionIdentifier", &sessionIdentifier)
        members.optional("taskIdentifier", &taskIdentifier)
        members.optional("clientTaskId", &clientTaskId)
        members.optional("group", &group)
        members.member("data", &data)
    }
}

/// The response to reading the events of a session.
public struct EventPage<Item: MemberValue & Hashable & Sendable>: Shape {
    public var items: [Item] = []
    /// The sequence number of the session's last event.
    public var lastSeq: Int64 = 0
    /// The last event that the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// Whether this page ends with the last event and no task is running.
    public var finished = false

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("items", &items)
        members.member("lastSeq", &lastSeq)
        members.member("acknowledgedSeq", &acknowledgedSeq)
        members.member("finished", &finished)
    }
}

/// The body of `POST …/events/ack`.
public struct EventAck: Shape {
    /// The last event that was handled.
    public var through: Int64 = 0
    /// The epoch of the client's attachment, if it has one.
    public var epoch: Int64?

    public init() {}

    public init(through: Int64, epoch: Int64? = nil) {
        self.through = through
        self.epoch = epoch
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("through", &through, 0 ... .max)
        members.optional("epoch", &epoch, 1 ... .max)
    }
}

/// The body of `POST …/attachment`.
public struct AttachmentRequest: Shape {
    /// The duration of the lease in seconds.
    public var ttl: Double = 30
    /// The launch that this client handles.
    public var launchId: String?
    /// Whether another client's lease is taken over.
    public var takeover = false
    /// The epoch of the lease to renew.
    public var epoch: Int64?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("ttl", &ttl, 5...900)
        members.optional("launchId", &launchId, .handle)
        members.sparse("takeover", &takeover, unless: false)
        members.optional("epoch", &epoch, 1 ... .max)
    }
}

/// A client's lease on a session.
public struct Attachment: Shape {
    /// The epoch, higher than all earlier ones.
    public var epoch: Int64 = 0
    /// The time at which the lease expires unless it is renewed.
    public var expiresAt = ""
    /// The last event that the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// The sequence number of the session's last event.
    public var lastSeq: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("epoch", &epoch)
        members.member("expiresAt", &expiresAt)
        members.member("acknowledgedSeq", &acknowledgedSeq)
        members.member("lastSeq", &lastSeq)
    }
}
