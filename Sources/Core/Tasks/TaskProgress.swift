package import Formats

/// What a task that is not completed has behind it. Kept at rest with every attempt and checkpoint.
package struct TaskProgress: Shape {
    package var attempts = AttemptLedger()
    package var lastAttempt: AttemptRecord?
    package var resume: ResumePoint?
    /// Bytes of the partial file known to be on disk.
    package var durableOffset: Int64 = 0
    /// The node whose disk has the partial file, where there are many: it is of no use to others.
    package var node: String?
    /// What of it is on disk where the content comes in segments; ``resume`` has its validators then, and the bytes up to
    /// the first gap.
    package var segments: SegmentRecord?
    /// What of the content is in its bucket; ``resume`` goes on behind it.
    package var multipart: MultipartUpload?
    /// The source that ``resume`` is of: 0 is the task's own URL, then come its mirrors.
    package var source = 0
    /// Segments were of no use: one request at a time, of the task's own URL alone.
    package var avoidsSegments = false
    /// Bytes of content that came and have to be fetched once more: what was not recorded when the service was killed,
    /// and what could not be continued.
    package var bytesFetchedTwice: Int64 = 0
    /// Bytes that came and are in none of the parts which the bucket has: they are fetched twice if the end of the
    /// attempt stays unknown.
    package var bytesInMemory: Int64 = 0
    package var redirects: [RedirectRecord] = []
    package var currentURL: String?
    package var transactions: [TransactionMetrics] = []
    package var countOfBytesSent: Int64 = 0
    package var countOfBytesReceived: Int64 = 0
    package var isConfirmed = false
    /// Why bytes that came cannot be continued, until the app has been told that the content begins anew.
    package var restartCause: String?
    /// The partial file of a cancelled task that this one goes on with, until its first attempt takes it over.
    package var adoptedFile: String?
    /// How often in a row a full disk stopped it without its getting on.
    package var diskPauses = 0
    /// How often what had come was thrown away because the disk was full.
    package var diskLosses = 0
    /// Where a resumable upload stands: the draft's URL and version.
    package var uploadURL: String?
    package var uploadVersion: Int?
    /// Bytes that its server is known to have.
    package var uploadOffset: Int64?
    /// Method and URL of the task's request that it belongs to: another request begins anew.
    package var uploadRequest: String?
    /// The stored credentials that were sent because a challenge asked for them, the latest last.
    package var credentialsTried: [String] = []
    /// The answers to this task's challenges, the latest last.
    package var authentication: [AuthenticationStep] = []

    package init() {}

    /// Nothing of what came is left to go on with.
    package mutating func forgetBytes() {
        resume = nil
        segments = nil
        multipart = nil
        source = 0
        durableOffset = 0
        bytesInMemory = 0
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("attempts", &attempts)
        members.optional("lastAttempt", &lastAttempt)
        members.optional("resume", &resume)
        members.member("durableOffset", &durableOffset)
        members.optional("node", &node)
        members.optional("segments", &segments)
        members.optional("multipart", &multipart)
        members.sparse("source", &source, unless: 0)
        members.sparse("avoidsSegments", &avoidsSegments, unless: false)
        members.sparse("bytesFetchedTwice", &bytesFetchedTwice, unless: 0)
        members.sparse("bytesInMemory", &bytesInMemory, unless: 0)
        members.member("redirects", &redirects)
        members.optional("currentURL", &currentURL)
        members.member("transactions", &transactions)
        members.member("countOfBytesSent", &countOfBytesSent)
        members.member("countOfBytesReceived", &countOfBytesReceived)
        members.member("isConfirmed", &isConfirmed)
        members.optional("restartCause", &restartCause)
        members.optional("adoptedFile", &adoptedFile)
        members.sparse("diskPauses", &diskPauses, unless: 0)
        members.sparse("diskLosses", &diskLosses, unless: 0)
        members.optional("uploadURL", &uploadURL)
        members.optional("uploadVersion", &uploadVersion)
        members.optional("uploadOffset", &uploadOffset)
        members.optional("uploadRequest", &uploadRequest)
        members.sparse("credentialsTried", &credentialsTried, unless: [])
        members.member("authentication", &authentication)
    }

    /// Counts what was in memory of a process that was killed.
    package mutating func loseMemory() {
        noteFetchedTwice(bytesInMemory)
        bytesInMemory = 0
    }

    package mutating func noteFetchedTwice(_ count: Int64) {
        bytesFetchedTwice += max(0, count)
    }

    /// Bytes that the next attempt need not transfer again.
    package var keptOffset: Int64 { segments?.count ?? resume?.offset ?? uploadOffset ?? 0 }

    /// Metrics of at most this many requests are kept, the latest.
    package static let transactionsKept = 64
    /// And no more than have URLs of so many bytes together, which origins choose when they redirect.
    private static let transactionURLBytesKept = 32 * 1024

    package mutating func record(_ transaction: TransactionMetrics) {
        transactions.append(transaction)
        var urlBytes = transactions.reduce(0) { $0 + $1.url.utf8.count }
        while transactions.count > 1,
            transactions.count > Self.transactionsKept || urlBytes > Self.transactionURLBytesKept
        {
            urlBytes -= transactions.removeFirst().url.utf8.count
        }
    }
}

/// One redirect that was followed.
package struct RedirectRecord: Shape {
    package var statusCode = 0
    package var url = ""

    package init() {}

    package init(statusCode: Int, url: String) {
        self.statusCode = statusCode
        self.url = url
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("statusCode", &statusCode)
        members.member("url", &url)
    }
}

/// What is kept of the last attempt.
package struct AttemptRecord: Shape {
    package var number = 0
    package var startedAt = Timestamp()
    package var endedAt = Timestamp()
    package var offset: Int64 = 0
    package var statusCode: Int?
    package var error: TaskError?

    package init() {}

    package init(
        number: Int, startedAt: Timestamp, endedAt: Timestamp, offset: Int64, statusCode: Int?, error: TaskError?
    ) {
        self.number = number
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.offset = offset
        self.statusCode = statusCode
        self.error = error
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("number", &number)
        members.member("startedAt", &startedAt)
        members.member("endedAt", &endedAt)
        members.member("offset", &offset)
        members.optional("statusCode", &statusCode)
        members.optional("error", &error)
    }
}

/// One answered challenge of a task. The secret itself stays sealed with the question.
package struct AuthenticationStep: Shape {
    package var questionId = ""
    package var disposition = Answer.Disposition.performDefaultHandling
    /// Who asked; nil counts for all.
    package var space: ProtectionSpace?

    package init() {}

    package init(questionId: String, disposition: Answer.Disposition, space: ProtectionSpace? = nil) {
        self.questionId = questionId
        self.disposition = disposition
        self.space = space
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("questionId", &questionId)
        members.member("disposition", &disposition)
        members.optional("space", &space)
    }
}
