/// A launch as the service answers it: one webhook and all tries to deliver it.
public struct Launch: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where a launch stands.
    public struct State: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a state of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Waits for its next attempt.
        public static let pending: Self = "pending"
        /// Is being sent.
        public static let delivering: Self = "delivering"
        /// Was answered with a 2xx and waits for its completion.
        public static let launched: Self = "launched"
        /// The app has called the completion.
        public static let completed: Self = "completed"
        /// A client attached by itself.
        public static let superseded: Self = "superseded"
        /// All attempts failed.
        public static let exhausted: Self = "exhausted"
        /// Waits for a webhook that can be called.
        public static let parked: Self = "parked"
        /// All states.
        public static let known: [Self] = [
            .pending, .delivering, .launched, .completed, .superseded, .exhausted, .parked,
        ]
    }

    /// The `lnch_…` that names it, and its webhook, over all attempts.
    public var launchId: String
    /// `session.handleEvents` or `app.performFetch`.
    public var kind: String
    /// Where it stands.
    public var state: State
    /// The session, unless it is a fetch.
    public var sessionIdentifier: String?
    /// `tasksFinished`, `authenticationRequired`, `delayedRequestReady`.
    public var reasons: [String]
    /// The last event it tells of.
    public var lastSeq: Int64?
    /// When it was made.
    public var createdAt: String
    /// When it is tried next.
    public var nextAttemptAt: String?
    /// When the app called the completion.
    public var completedAt: String?
    /// All tries so far.
    public var attempts: [LaunchAttempt]

    /// Makes a launch that has not been tried.
    public init(launchId: String, kind: String, state: State = .pending, createdAt: String) {
        self.launchId = launchId
        self.kind = kind
        self.state = state
        self.createdAt = createdAt
        reasons = []
        attempts = []
    }

    /// Reads a launch.
    public init(reading reader: inout ObjectReader) {
        launchId = reader.string("launchId")
        kind = reader.string("kind")
        state = reader.word("state")
        sessionIdentifier = reader.optionalString("sessionIdentifier")
        reasons = reader.strings("reasons")
        lastSeq = reader.optionalInteger("lastSeq")
        createdAt = reader.string("createdAt")
        nextAttemptAt = reader.optionalString("nextAttemptAt")
        completedAt = reader.optionalString("completedAt")
        attempts = reader.objects("attempts")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("launchId", launchId)
            writer.member("kind", kind)
            writer.member("state", state)
            writer.member("sessionIdentifier", sessionIdentifier)
            writer.member("reasons", reasons)
            writer.member("lastSeq", lastSeq)
            writer.member("createdAt", createdAt)
            writer.member("nextAttemptAt", nextAttemptAt)
            writer.member("completedAt", completedAt)
            writer.member("attempts", attempts)
        }
    }
}

/// One try to send a webhook. Also the answer to `POST /v1/app/webhook/ping`.
public struct LaunchAttempt: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Which try it was, from 1.
    public var number: Int64
    /// When it began.
    public var startedAt: String
    /// How many seconds it took.
    public var duration: Double?
    /// The receiver's status.
    public var statusCode: Int64?
    /// Why there was no status, in words.
    public var error: String?
    /// The beginning of the receiver's answer.
    public var excerpt: String?

    /// Makes an attempt.
    public init(
        number: Int64, startedAt: String, duration: Double? = nil, statusCode: Int64? = nil, error: String? = nil,
        excerpt: String? = nil
    ) {
        self.number = number
        self.startedAt = startedAt
        self.duration = duration
        self.statusCode = statusCode
        self.error = error
        self.excerpt = excerpt
    }

    /// Reads an attempt.
    public init(reading reader: inout ObjectReader) {
        number = reader.integer("number")
        startedAt = reader.string("startedAt")
        duration = reader.optionalNumber("duration")
        statusCode = reader.optionalInteger("statusCode")
        error = reader.optionalString("error")
        excerpt = reader.optionalString("excerpt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("number", number)
            writer.member("startedAt", startedAt)
            writer.member("duration", duration)
            writer.member("statusCode", statusCode)
            writer.member("error", error)
            writer.member("excerpt", excerpt)
        }
    }
}

/// What `POST /v1/launches/{id}/complete` takes.
public struct LaunchCompletion: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What came of a fetch.
    public struct FetchResult: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a result of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// There was something new.
        public static let newData: Self = "newData"
        /// There was nothing new.
        public static let noData: Self = "noData"
        /// It did not work.
        public static let failed: Self = "failed"
        /// All results.
        public static let known: [Self] = [.newData, .noData, .failed]
    }

    /// Acknowledges through this event; `nil` for the launch's `lastSeq`.
    public var through: Int64?
    /// Of the attachment, where one is held.
    public var epoch: Int64?
    /// What came of a fetch.
    public var result: FetchResult?

    /// Makes the completion of a launch of a session.
    public init(through: Int64? = nil, epoch: Int64? = nil) {
        self.through = through
        self.epoch = epoch
    }

    /// Makes the completion of a fetch.
    public init(result: FetchResult) { self.result = result }

    /// Reads a completion.
    public init(reading reader: inout ObjectReader) {
        through = reader.optionalInteger("through", in: 0 ... .max)
        epoch = reader.optionalInteger("epoch", in: 1 ... .max)
        result = reader.optionalWord("result")
        if reader.mode == .strict, result != nil, through != nil || epoch != nil {
            reader.report("result", "A fetch has a result, a session has through and epoch: not both.")
        }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("through", through)
            writer.memberIfPresent("epoch", epoch)
            writer.memberIfPresent("result", result)
        }
    }
}
