/// A delegate message: the same envelope for all.
///
/// Kept events have a ``seq``; live ones have none and go to open streams only.
public struct Event: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Which message it is.
    public struct Kind: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a type of its word.
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
        /// All events of a launch were handled.
        public static let sessionDidFinishEvents: Self = "session.didFinishEvents"
        /// The session is over.
        public static let sessionDidBecomeInvalid: Self = "session.didBecomeInvalid"
        /// All types.
        public static let known: [Self] = [
            .taskDidCreate, .taskIsWaitingForConnectivity, .taskDidSendBodyData, .taskDidWriteData, .taskWillRetry,
            .taskWillBeginDelayedRequest, .taskDidReceiveChallenge, .taskDidResumeAtOffset, .taskDidFinishDownloading,
            .taskDidFinishCollectingMetrics, .taskDidComplete, .sessionDidFinishEvents, .sessionDidBecomeInvalid,
        ]
    }

    /// Its number in the session, from 1 without gaps; `nil` for a live event.
    public var seq: Int64?
    /// Which message it is.
    public var type: Kind
    /// When it happened.
    public var occurredAt: String
    /// The session.
    public var sessionIdentifier: String
    /// The task, unless it is about the session.
    public var taskIdentifier: Int64?
    /// The app's name for the task.
    public var clientTaskId: String?
    /// What the task belongs to.
    public var group: String?
    /// What the message says, by its type: ``EventData``.
    public var data: JSONText

    /// Makes an event.
    public init(
        seq: Int64?, type: Kind, occurredAt: String, sessionIdentifier: String, taskIdentifier: Int64? = nil,
        clientTaskId: String? = nil, group: String? = nil, data: JSONText = .emptyObject
    ) {
        self.seq = seq
        self.type = type
        self.occurredAt = occurredAt
        self.sessionIdentifier = sessionIdentifier
        self.taskIdentifier = taskIdentifier
        self.clientTaskId = clientTaskId
        self.group = group
        self.data = data
    }

    /// Reads an event.
    public init(reading reader: inout ObjectReader) {
        seq = reader.optionalInteger("seq")
        type = reader.word("type")
        occurredAt = reader.string("occurredAt")
        sessionIdentifier = reader.string("sessionIdentifier")
        taskIdentifier = reader.optionalInteger("taskIdentifier")
        clientTaskId = reader.optionalString("clientTaskId")
        group = reader.optionalString("group")
        data = reader.text("data")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("seq", seq)
            writer.member("type", type)
            writer.member("occurredAt", occurredAt)
            writer.member("sessionIdentifier", sessionIdentifier)
            writer.memberIfPresent("taskIdentifier", taskIdentifier)
            writer.memberIfPresent("clientTaskId", clientTaskId)
            writer.memberIfPresent("group", group)
            writer.member("data", data)
        }
    }
}

/// What reading the events of a session answers.
public struct EventPage<Item> {
    /// The events, in order.
    public var items: [Item]
    /// The number of the session's last event.
    public var lastSeq: Int64
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64
    /// Whether these are the last ones and no task is running.
    public var finished: Bool

    /// Makes a page.
    public init(items: [Item], lastSeq: Int64, acknowledgedSeq: Int64, finished: Bool) {
        self.items = items
        self.lastSeq = lastSeq
        self.acknowledgedSeq = acknowledgedSeq
        self.finished = finished
    }
}

extension EventPage: Sendable where Item: Sendable {}
extension EventPage: Equatable where Item: Equatable {}
extension EventPage: Hashable where Item: Hashable {}

extension EventPage: JSONReadable where Item: JSONReadable {
    /// Reads a page.
    public init(reading reader: inout ObjectReader) {
        items = reader.objects("items")
        lastSeq = reader.integer("lastSeq")
        acknowledgedSeq = reader.integer("acknowledgedSeq")
        finished = reader.bool("finished")
    }
}

extension EventPage: JSONWritable where Item: JSONWritable {
    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("items", items)
            writer.member("lastSeq", lastSeq)
            writer.member("acknowledgedSeq", acknowledgedSeq)
            writer.member("finished", finished)
        }
    }
}

/// What `POST …/events/ack` takes.
public struct EventAck: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The last event that was handled.
    public var through: Int64
    /// Of the attachment, where one is held.
    public var epoch: Int64?

    /// Makes an acknowledgement.
    public init(through: Int64, epoch: Int64? = nil) {
        self.through = through
        self.epoch = epoch
    }

    /// Reads an acknowledgement.
    public init(reading reader: inout ObjectReader) {
        through = reader.integer("through", in: 0 ... .max)
        epoch = reader.optionalInteger("epoch", in: 1 ... .max)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("through", through)
            writer.memberIfPresent("epoch", epoch)
        }
    }
}

/// What `POST …/attachment` takes.
public struct AttachmentRequest: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Seconds the lease lasts.
    public var ttl: Double
    /// The launch this client handles.
    public var launchId: String?
    /// Whether another client's lease ends.
    public var takeover: Bool
    /// Renews the lease with this epoch.
    public var epoch: Int64?

    /// Makes a request.
    public init(ttl: Double = 30, launchId: String? = nil, takeover: Bool = false, epoch: Int64? = nil) {
        self.ttl = ttl
        self.launchId = launchId
        self.takeover = takeover
        self.epoch = epoch
    }

    /// Reads a request.
    public init(reading reader: inout ObjectReader) {
        ttl = reader.number("ttl", default: 30, in: 5...900)
        launchId = reader.optionalString("launchId", .handle)
        takeover = reader.bool("takeover", default: false)
        epoch = reader.optionalInteger("epoch", in: 1 ... .max)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("ttl", ttl)
            writer.memberIfPresent("launchId", launchId)
            if takeover { writer.member("takeover", true) }
            writer.memberIfPresent("epoch", epoch)
        }
    }
}

/// A client's lease on a session.
public struct Attachment: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Its number, higher than all before.
    public var epoch: Int64
    /// When it ends unless it is renewed.
    public var expiresAt: String
    /// Through which event the app has acknowledged.
    public var acknowledgedSeq: Int64
    /// The number of the session's last event.
    public var lastSeq: Int64

    /// Makes a lease.
    public init(epoch: Int64, expiresAt: String, acknowledgedSeq: Int64, lastSeq: Int64) {
        self.epoch = epoch
        self.expiresAt = expiresAt
        self.acknowledgedSeq = acknowledgedSeq
        self.lastSeq = lastSeq
    }

    /// Reads a lease.
    public init(reading reader: inout ObjectReader) {
        epoch = reader.integer("epoch")
        expiresAt = reader.string("expiresAt")
        acknowledgedSeq = reader.integer("acknowledgedSeq")
        lastSeq = reader.integer("lastSeq")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("epoch", epoch)
            writer.member("expiresAt", expiresAt)
            writer.member("acknowledgedSeq", acknowledgedSeq)
            writer.member("lastSeq", lastSeq)
        }
    }
}
