package import Formats

/// The progress of an unfinished task. Stored with every attempt and checkpoint.
package struct TaskProgress: Shape {
    package var attempts = AttemptLedger()
    package var lastAttempt: AttemptRecord?
    /// The bytes of the content that the next attempt need not fetch again.
    package var kept = Kept.none
    /// Identifies the bytes among all that the task has begun to receive from offset 0: a later restart has a greater
    /// number. 0 before the first one, and for bytes of resume data.
    package var version: Int64 = 0
    /// The node whose disk has the partial file, if there are many nodes: other nodes cannot use the file.
    package var node: String?
    /// Whether segments failed, so that only one request at a time is sent, to the task's own URL.
    package var avoidsSegments = false
    /// Whether the cache and the transfers of other tasks have proved useless, so that the task transfers for itself.
    package var avoidsCache = false
    /// The number of bytes that must be received again, because they were unrecorded at a kill or could not be resumed.
    package var bytesFetchedTwice: Int64 = 0
    /// Received bytes that are in no stored part: they are fetched twice if the end of the attempt is never recorded.
    package var bytesInMemory: Int64 = 0
    package var redirects: [RedirectRecord] = []
    package var currentURL: String?
    package var transactions: [TransactionMetrics] = []
    package var countOfBytesSent: Int64 = 0
    package var countOfBytesReceived: Int64 = 0
    package var isConfirmed = false
    /// The reason for which received bytes cannot be resumed, until an event has reported the restart.
    package var restartCause: String?
    /// The partial file of a cancelled task that this task resumes, until its first attempt adopts the file.
    package var adoptedFile: String?
    /// Another task may resume from this task's partial file, and may not have adopted it yet.
    package var hasPassedBytes = false
    /// The number of consecutive pauses by a full disk without progress.
    package var diskPauses = 0
    /// The number of times that received bytes were discarded because the disk was full.
    package var diskLosses = 0
    /// The upload resource's URL and the draft's version of a resumable upload.
    package var uploadURL: String?
    package var uploadVersion: Int?
    /// The number of bytes that the upload's server is known to have.
    package var uploadOffset: Int64?
    /// The method and URL of the request that the upload belongs to. Another request restarts the upload.
    package var uploadRequest: String?
    /// The stored credentials sent in response to challenges, the latest last.
    package var credentialsTried: [String] = []
    /// The answers to this task's challenges, the latest last.
    package var authentication: [AuthenticationStep] = []

    package init() {}

    /// Counts the attempt in flight of a task that ends before it.
    package mutating func count(_ attempt: LiveState.CurrentAttempt, endedBy error: TaskError, at now: Timestamp) {
        attempts.attempts += 1
        // The progress counts the bytes of ended connections of segments already.
        countOfBytesReceived =
            kept.segments == nil
            ? countOfBytesReceived + attempt.received : max(countOfBytesReceived, attempt.sample.received)
        countOfBytesSent = attempt.sentBefore > 0 ? attempt.sample.sent : countOfBytesSent + attempt.sent
        lastAttempt = AttemptRecord(
            number: attempts.attempts, startedAt: attempt.startedAt, endedAt: now, offset: attempt.offset,
            statusCode: attempt.response?.statusCode, error: error)
    }

    /// Discards everything from which the task could resume.
    package mutating func forgetBytes() {
        kept = .none
        bytesInMemory = 0
    }

    /// Gives the bytes of another task its number for them, unless this task has used a number as great.
    package mutating func share(version other: Int64) { version = max(other, version + 1) }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("attempts", &attempts)
        members.optional("lastAttempt", &lastAttempt)
        kept.visit(&members)
        members.sparse("version", &version, unless: 0)
        members.optional("node", &node)
        members.sparse("avoidsSegments", &avoidsSegments, unless: false)
        members.sparse("avoidsCache", &avoidsCache, unless: false)
        members.sparse("bytesFetchedTwice", &bytesFetchedTwice, unless: 0)
        members.sparse("bytesInMemory", &bytesInMemory, unless: 0)
        members.sparse("redirects", &redirects, unless: [])
        members.optional("currentURL", &currentURL)
        members.member("transactions", &transactions)
        members.sparse("countOfBytesSent", &countOfBytesSent, unless: 0)
        members.sparse("countOfBytesReceived", &countOfBytesReceived, unless: 0)
        members.sparse("isConfirmed", &isConfirmed, unless: false)
        members.optional("restartCause", &restartCause)
        members.optional("adoptedFile", &adoptedFile)
        members.sparse("hasPassedBytes", &hasPassedBytes, unless: false)
        members.sparse("diskPauses", &diskPauses, unless: 0)
        members.sparse("diskLosses", &diskLosses, unless: 0)
        members.optional("uploadURL", &uploadURL)
        members.optional("uploadVersion", &uploadVersion)
        members.optional("uploadOffset", &uploadOffset)
        members.optional("uploadRequest", &uploadRequest)
        members.sparse("credentialsTried", &credentialsTried, unless: [])
        members.sparse("authentication", &authentication, unless: [])
    }

    /// Counts the bytes in memory of a killed process as lost.
    package mutating func loseMemory() {
        noteFetchedTwice(bytesInMemory)
        bytesInMemory = 0
    }

    package mutating func noteFetchedTwice(_ count: Int64) {
        bytesFetchedTwice += max(0, count)
    }

    /// The number of bytes that the next attempt need not transfer again.
    package var keptOffset: Int64 { kept.count ?? uploadOffset ?? 0 }

    /// The maximum number of requests whose metrics are stored; the latest are kept.
    package static let transactionsKept = 64
    /// The maximum total length of their URLs, which origins choose by redirects.
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

/// A followed redirect.
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

/// The record of the last attempt.
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

/// An answered challenge of a task. The secret stays sealed with the question.
package struct AuthenticationStep: Shape {
    package var questionId = ""
    package var disposition = Answer.Disposition.performDefaultHandling
    /// The source of the challenge; `nil` matches all.
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
