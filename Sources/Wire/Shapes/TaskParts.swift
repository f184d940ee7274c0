/// The last answer of a task's server, as `URLResponse` tells it.
public struct TaskResponse: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The status.
    public var statusCode: Int64
    /// The header fields; those that stand several times are joined with commas.
    public var headers: StringMap
    /// Names of header fields that are not kept because all together were more than 16 KiB.
    public var droppedHeaders: [String]
    /// The media type without its parameters.
    public var mimeType: String?
    /// The announced length in bytes.
    public var expectedContentLength: Int64?
    /// A name for a file.
    public var suggestedFilename: String?
    /// Where it came from, after redirects.
    public var url: String

    /// Makes a response.
    public init(
        statusCode: Int64, headers: StringMap, droppedHeaders: [String] = [], mimeType: String? = nil,
        expectedContentLength: Int64? = nil, suggestedFilename: String? = nil, url: String
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.droppedHeaders = droppedHeaders
        self.mimeType = mimeType
        self.expectedContentLength = expectedContentLength
        self.suggestedFilename = suggestedFilename
        self.url = url
    }

    /// Reads a response.
    public init(reading reader: inout ObjectReader) {
        statusCode = reader.integer("statusCode")
        headers = reader.stringMap("headers")
        droppedHeaders = reader.strings("droppedHeaders", default: [])
        mimeType = reader.optionalString("mimeType")
        expectedContentLength = reader.optionalInteger("expectedContentLength")
        suggestedFilename = reader.optionalString("suggestedFilename")
        url = reader.string("url")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("statusCode", statusCode)
            writer.member("headers", headers)
            if !droppedHeaders.isEmpty { writer.member("droppedHeaders", droppedHeaders) }
            writer.member("mimeType", mimeType)
            writer.member("expectedContentLength", expectedContentLength)
            writer.member("suggestedFilename", suggestedFilename)
            writer.member("url", url)
        }
    }
}

/// Why a task failed, with the codes and names of Apple's `NSURLErrorDomain`.
public struct TaskError: Error, Sendable, Hashable, JSONWritable, JSONReadable {
    /// What lies below.
    public struct Underlying: Sendable, Hashable, JSONWritable, JSONReadable {
        /// `curl` or `urlsessiond`.
        public var domain: String
        /// A number of libcurl's, or a word of the service's own.
        public var code: JSON
        /// In words.
        public var message: String

        /// Makes an underlying error.
        public init(domain: String, code: JSON, message: String) {
            self.domain = domain
            self.code = code
            self.message = message
        }

        /// Reads an underlying error.
        public init(reading reader: inout ObjectReader) {
            domain = reader.string("domain")
            code = reader.json("code")
            message = reader.string("message")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("domain", domain)
                writer.member("code", code)
                writer.member("message", message)
            }
        }
    }

    /// The domain of all these errors.
    public static let domain = "NSURLErrorDomain"

    /// Apple's code, such as -1001.
    public var code: Int64
    /// Apple's name of the code, such as `timedOut`.
    public var name: String
    /// What happened, for a person.
    public var localizedDescription: String
    /// Where it happened.
    public var failingURL: String?
    /// Why the service cancelled: 0 force quit, 1 refresh disabled, 2 insufficient resources.
    public var backgroundTaskCancelledReason: Int64?
    /// Why there is no network: 0 cellular, 1 expensive, 2 constrained.
    public var networkUnavailableReason: Int64?
    /// `egress` when that policy refused.
    public var policy: String?
    /// What lies below.
    public var underlying: Underlying?

    /// Makes an error.
    public init(
        code: Int64, name: String, localizedDescription: String, failingURL: String? = nil, policy: String? = nil,
        underlying: Underlying? = nil
    ) {
        self.code = code
        self.name = name
        self.localizedDescription = localizedDescription
        self.failingURL = failingURL
        self.policy = policy
        self.underlying = underlying
    }

    /// Reads an error.
    public init(reading reader: inout ObjectReader) {
        _ = reader.string("domain", default: Self.domain)
        code = reader.integer("code")
        name = reader.string("name")
        localizedDescription = reader.string("localizedDescription")
        failingURL = reader.optionalString("failingURL")
        backgroundTaskCancelledReason = reader.optionalInteger("backgroundTaskCancelledReason")
        networkUnavailableReason = reader.optionalInteger("networkUnavailableReason")
        policy = reader.optionalString("policy")
        underlying = reader.optionalObject("underlying")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("domain", Self.domain)
            writer.member("code", code)
            writer.member("name", name)
            writer.member("localizedDescription", localizedDescription)
            writer.member("failingURL", failingURL)
            writer.memberIfPresent("backgroundTaskCancelledReason", backgroundTaskCancelledReason)
            writer.memberIfPresent("networkUnavailableReason", networkUnavailableReason)
            writer.memberIfPresent("policy", policy)
            writer.memberIfPresent("underlying", underlying)
        }
    }
}

/// One redirect that was followed.
public struct Redirect: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The status that said so.
    public var statusCode: Int64
    /// Who said so.
    public var from: String
    /// Where it led.
    public var to: String

    /// Makes a redirect.
    public init(statusCode: Int64, from: String, to: String) {
        self.statusCode = statusCode
        self.from = from
        self.to = to
    }

    /// Reads a redirect.
    public init(reading reader: inout ObjectReader) {
        statusCode = reader.integer("statusCode")
        from = reader.string("from")
        to = reader.string("to")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("statusCode", statusCode)
            writer.member("from", from)
            writer.member("to", to)
        }
    }
}

/// Why a running task is not moving.
public struct WaitingReason: Sendable, Hashable, JSONWritable, JSONReadable {
    /// A word for programs.
    public var kind: String
    /// Words for a person.
    public var detail: String
    /// Until when, where that is known.
    public var until: String?
    /// The question that the app has to answer, which other tasks may wait for as well.
    public var questionId: String?

    /// Makes a reason.
    public init(kind: String, detail: String, until: String? = nil, questionId: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.until = until
        self.questionId = questionId
    }

    /// Reads a reason.
    public init(reading reader: inout ObjectReader) {
        kind = reader.string("kind")
        detail = reader.string("detail")
        until = reader.optionalString("until")
        questionId = reader.optionalString("questionId")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("kind", kind)
            writer.member("detail", detail)
            writer.memberIfPresent("until", until)
            writer.memberIfPresent("questionId", questionId)
        }
    }
}

/// How far a task is.
public struct TaskProgress: Sendable, Hashable, JSONWritable, JSONReadable {
    /// 0 to 1, where the length is known.
    public var fractionCompleted: Double?
    /// Bytes per second.
    public var throughput: Double?
    /// Seconds.
    public var estimatedTimeRemaining: Double?

    /// Makes a progress.
    public init(fractionCompleted: Double? = nil, throughput: Double? = nil, estimatedTimeRemaining: Double? = nil) {
        self.fractionCompleted = fractionCompleted
        self.throughput = throughput
        self.estimatedTimeRemaining = estimatedTimeRemaining
    }

    /// Reads a progress.
    public init(reading reader: inout ObjectReader) {
        fractionCompleted = reader.optionalNumber("fractionCompleted")
        throughput = reader.optionalNumber("throughput")
        estimatedTimeRemaining = reader.optionalNumber("estimatedTimeRemaining")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("fractionCompleted", fractionCompleted)
            writer.member("throughput", throughput)
            writer.member("estimatedTimeRemaining", estimatedTimeRemaining)
        }
    }
}

/// A task's attempts.
public struct TaskAttempts: Sendable, Hashable, JSONWritable, JSONReadable {
    /// One attempt that is over.
    public struct Attempt: Sendable, Hashable, JSONWritable, JSONReadable {
        /// When it began.
        public var startedAt: String
        /// When it ended.
        public var endedAt: String?
        /// The server's status.
        public var statusCode: Int64?
        /// Why it ended early.
        public var error: TaskError?

        /// Makes an attempt.
        public init(startedAt: String, endedAt: String? = nil, statusCode: Int64? = nil, error: TaskError? = nil) {
            self.startedAt = startedAt
            self.endedAt = endedAt
            self.statusCode = statusCode
            self.error = error
        }

        /// Reads an attempt.
        public init(reading reader: inout ObjectReader) {
            startedAt = reader.string("startedAt")
            endedAt = reader.optionalString("endedAt")
            statusCode = reader.optionalInteger("statusCode")
            error = reader.optionalObject("error")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("startedAt", startedAt)
                writer.member("endedAt", endedAt)
                writer.member("statusCode", statusCode)
                writer.member("error", error)
            }
        }
    }

    /// How many there were.
    public var count: Int64
    /// The last one.
    public var last: Attempt?
    /// When the next one begins.
    public var nextAt: String?

    /// Makes attempts.
    public init(count: Int64 = 0, last: Attempt? = nil, nextAt: String? = nil) {
        self.count = count
        self.last = last
        self.nextAt = nextAt
    }

    /// Reads attempts.
    public init(reading reader: inout ObjectReader) {
        count = reader.integer("count")
        last = reader.optionalObject("last")
        nextAt = reader.optionalString("nextAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", count)
            writer.member("last", last)
            writer.member("nextAt", nextAt)
        }
    }
}
