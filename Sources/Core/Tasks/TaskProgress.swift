/// What a task that is not completed has behind it. Kept at rest with every attempt and checkpoint.
package struct TaskProgress: Hashable, Sendable, Codable {
    package var attempts = AttemptLedger()
    package var lastAttempt: AttemptRecord?
    package var resume: ResumePoint?
    /// Bytes of the partial file known to be on disk.
    package var durableOffset: Int64 = 0
    /// Bytes of content that came and have to be fetched once more: what was not recorded when the service was killed,
    /// and what could not be continued.
    package var bytesFetchedTwice: Int64?
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
    package var diskPauses: Int?
    /// How often what had come was thrown away because the disk was full.
    package var diskLosses: Int?
    /// Where a resumable upload stands: the draft's URL and version.
    package var uploadURL: String?
    package var uploadVersion: Int?
    /// Bytes that its server is known to have.
    package var uploadOffset: Int64?
    /// Method and URL of the task's request that it belongs to: another request begins anew.
    package var uploadRequest: String?
    /// The stored credentials that were sent because a challenge asked for them, the latest last.
    package var credentialsTried: [String]?
    /// The answers to this task's challenges, the latest last.
    package var authentication: [AuthenticationStep] = []

    package init() {}

    package mutating func noteFetchedTwice(_ count: Int64) {
        if count > 0 { bytesFetchedTwice = (bytesFetchedTwice ?? 0) + count }
    }

    /// Bytes that the next attempt need not transfer again.
    package var keptOffset: Int64 { resume?.offset ?? uploadOffset ?? 0 }

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
package struct RedirectRecord: Hashable, Sendable, Codable {
    package var statusCode: Int
    package var url: String

    package init(statusCode: Int, url: String) {
        self.statusCode = statusCode
        self.url = url
    }
}

/// What is kept of the last attempt.
package struct AttemptRecord: Hashable, Sendable, Codable {
    package var number: Int
    package var startedAt: Timestamp
    package var endedAt: Timestamp
    package var offset: Int64
    package var statusCode: Int?
    package var error: TaskError?

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
}

/// One answered challenge of a task. The secret itself stays sealed with the question.
package struct AuthenticationStep: Hashable, Sendable, Codable {
    package var questionId: String
    package var disposition: Answer.Disposition
    /// Who asked. Nil in what earlier versions kept: it counts for all then.
    package var space: ProtectionSpace?

    package init(questionId: String, disposition: Answer.Disposition, space: ProtectionSpace? = nil) {
        self.questionId = questionId
        self.disposition = disposition
        self.space = space
    }
}
