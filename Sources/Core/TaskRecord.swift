/// The state of a task as `URLSessionTask.State` has it.
package enum TaskState: String, Sendable, Codable, CaseIterable {
    case suspended, running, canceling, completed

    package var name: String { rawValue }
}

/// How a task ended.
package enum Outcome: String, Sendable, Codable, CaseIterable {
    case succeeded, httpError, failed, cancelled, notModified

    package var name: String { rawValue }
}

/// An origin's final answer, as `URLResponse` tells it.
package struct TaskResponse: Hashable, Sendable, Codable {
    package var statusCode: Int
    package var headers: HTTPFields
    /// Names of fields that are not kept, nil for none.
    package var droppedHeaders: [String]?
    package var mimeType: String?
    package var expectedContentLength: Int64?
    package var suggestedFilename: String?
    package var url: String

    package init(
        statusCode: Int, headers: HTTPFields, droppedHeaders: [String]? = nil, mimeType: String?,
        expectedContentLength: Int64?, suggestedFilename: String?, url: String
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.droppedHeaders = droppedHeaders
        self.mimeType = mimeType
        self.expectedContentLength = expectedContentLength
        self.suggestedFilename = suggestedFilename
        self.url = url
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

/// One request and its answer, in the shape of `URLSessionTaskTransactionMetrics`.
package struct TransactionMetrics: Hashable, Sendable, Codable {
    package var url: String
    package var statusCode: Int?
    package var error: String?
    package var offset: Int64 = 0
    package var fetchStartDate: Timestamp
    package var domainLookupStartDate: Timestamp?
    package var domainLookupEndDate: Timestamp?
    package var connectStartDate: Timestamp?
    package var secureConnectionStartDate: Timestamp?
    package var secureConnectionEndDate: Timestamp?
    package var connectEndDate: Timestamp?
    package var requestStartDate: Timestamp?
    package var requestEndDate: Timestamp?
    package var responseStartDate: Timestamp?
    package var responseEndDate: Timestamp?
    package var networkProtocolName: String?
    package var negotiatedTLSProtocolVersion: String?
    package var negotiatedTLSCipherSuite: String?
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var localAddress: String?
    package var localPort: Int?
    package var remoteAddress: String?
    package var remotePort: Int?
    package var countOfRequestHeaderBytesSent: Int64 = 0
    package var countOfRequestBodyBytesSent: Int64 = 0
    package var countOfResponseHeaderBytesReceived: Int64 = 0
    package var countOfResponseBodyBytesReceived: Int64 = 0

    package init(url: String, fetchStartDate: Timestamp) {
        self.url = url
        self.fetchStartDate = fetchStartDate
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

/// How a task ended, written once and told by its last events.
package struct TaskResult: Hashable, Sendable, Codable {
    package var error: TaskError?
    package var response: TaskResponse?
    package var progress: TaskProgress
    package var contentLength: Int64?
    package var contentDigest: ContentDigest?

    package init(progress: TaskProgress) { self.progress = progress }
}

/// Stored bytes of a finished task.
package struct ContentRecord: Hashable, Sendable {
    package var length: Int64
    package var digest: ContentDigest
    package var expiresAt: Timestamp?
    package var isExpired: Bool

    package init(length: Int64, digest: ContentDigest, expiresAt: Timestamp?, isExpired: Bool) {
        self.length = length
        self.digest = digest
        self.expiresAt = expiresAt
        self.isExpired = isExpired
    }
}

/// A task as it stands in the store.
package struct TaskRecord: Sendable {
    package var id: TaskID
    package var session: SessionID
    package var app: AppID
    /// `taskIdentifier`, unique in its session, from 1.
    package var number: Int64
    package var state: TaskState
    /// Nil for a completed task.
    package var stage: TaskStage?
    package var outcome: Outcome?
    package var specification: TaskSpecification
    package var progress: TaskProgress?
    package var result: TaskResult?
    package var content: ContentRecord?
    /// Crashes of the service in a row that found it under way.
    package var crashes = 0
    package var dueAt: Timestamp?
    package var resourceDeadline: Timestamp?
    /// The question that it waits for.
    package var questionId: String?
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var completedAt: Timestamp?
    package var revision: Int64

    package init(
        id: TaskID, session: SessionID, app: AppID, number: Int64, state: TaskState, stage: TaskStage?,
        outcome: Outcome?, specification: TaskSpecification, progress: TaskProgress?, result: TaskResult?,
        content: ContentRecord?, dueAt: Timestamp?, resourceDeadline: Timestamp?, createdAt: Timestamp,
        startedAt: Timestamp?, completedAt: Timestamp?, revision: Int64
    ) {
        self.id = id
        self.session = session
        self.app = app
        self.number = number
        self.state = state
        self.stage = stage
        self.outcome = outcome
        self.specification = specification
        self.progress = progress
        self.result = result
        self.content = content
        self.dueAt = dueAt
        self.resourceDeadline = resourceDeadline
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.completedAt = completedAt
        self.revision = revision
    }
}
