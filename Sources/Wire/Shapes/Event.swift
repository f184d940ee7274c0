/// A delegate message: the same envelope for all.
///
/// Kept events have a ``seq``; live ones have none and go to open streams only.
public struct Event: Shape {
    /// Which message it is.
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
        /// An attempt failed and another follows. Live.
        public static let taskWillRetry: Self = "task.willRetry"
        /// The app is asked whether a request may start.
        public static let taskWillBeginDelayedRequest: Self = "task.willBeginDelayedRequest"
        /// The app is asked for a credential.
        public static let taskDidReceiveChallenge: Self = "task.didReceiveChallenge"
        /// A download went on after an interruption.
        public static let taskDidResumeAtOffset: Self = "task.didResumeAtOffset"
        /// A download has its content.
        public static let taskDidFinishDownloading: Self = "task.didFinishDownloading"
        /// How a task went in detail.
        public static let taskDidFinishCollectingMetrics: Self = "task.didFinishCollectingMetrics"
        /// A task is done.
        public static let taskDidComplete: Self = "task.didComplete"
        /// No running task of the session makes progress.
        public static let sessionDidStall: Self = "session.didStall"
        /// All events of a launch were handled.
        public static let sessionDidFinishEvents: Self = "session.didFinishEvents"
        /// The session is over.
        public static let sessionDidBecomeInvalid: Self = "session.didBecomeInvalid"
        public static let known: [Self] = [
            .taskDidCreate, .taskIsWaitingForConnectivity, .taskDidSendBodyData, .taskDidWriteData, .taskWillRetry,
            .taskWillBeginDelayedRequest, .taskDidReceiveChallenge, .taskDidResumeAtOffset, .taskDidFinishDownloading,
            .taskDidFinishCollectingMetrics, .taskDidComplete, .sessionDidStall, .sessionDidFinishEvents,
            .sessionDidBecomeInvalid,
        ]
    }

    /// Its number in the session, from 1 without gaps; `nil` for a live event.
    public var seq: Int64?
    public var type = Kind()
    public var occurredAt = ""
    public var sessionIdentifier = ""
    /// `nil` for an event of the session as a whole.
    public var taskIdentifier: Int64?
    public var clientTaskId: String?
    public var group: String?
    /// What the message says, by its type: ``EventData``.
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

/// What reading the events of a session answers.
public struct EventPage<Item: MemberValue & Hashable & Sendable>: Shape {
    public var items: [Item] = []
    /// The number of the session's last event.
    public var lastSeq: Int64 = 0
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// Whether these are the last ones and no task is running.
    public var finished = false

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("items", &items)
        members.member("lastSeq", &lastSeq)
        members.member("acknowledgedSeq", &acknowledgedSeq)
        members.member("finished", &finished)
    }
}

/// What `POST …/events/ack` takes.
public struct EventAck: Shape {
    /// The last event that was handled.
    public var through: Int64 = 0
    /// Of the client's attachment, where it holds one.
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

/// What `POST …/attachment` takes.
public struct AttachmentRequest: Shape {
    /// Seconds the lease lasts.
    public var ttl: Double = 30
    /// The launch this client handles.
    public var launchId: String?
    /// Whether another client's lease ends.
    public var takeover = false
    /// Renews the lease with this epoch.
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
    /// Its number, higher than all before.
    public var epoch: Int64 = 0
    /// When it ends unless it is renewed.
    public var expiresAt = ""
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64 = 0
    /// The number of the session's last event.
    public var lastSeq: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("epoch", &epoch)
        members.member("expiresAt", &expiresAt)
        members.member("acknowledgedSeq", &acknowledgedSeq)
        members.member("lastSeq", &lastSeq)
    }
}
