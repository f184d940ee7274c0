package import Formats

/// The final result of a task, written once and reported by its last events.
package struct TaskResult: Shape {
    package var error: TaskError?
    package var response: TaskResponse?
    package var progress = TaskProgress()
    package var contentLength: Int64?
    package var contentDigest: ContentDigest?
    package var cacheStatus: CacheStatus?

    package init() {}

    package init(progress: TaskProgress) { self.progress = progress }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("error", &error)
        members.optional("response", &response)
        members.member("progress", &progress)
        members.optional("contentLength", &contentLength)
        members.optional("contentDigest", &contentDigest)
        members.optional("cacheStatus", &cacheStatus)
    }
}

/// An origin's final response, like `URLResponse`.
package struct TaskResponse: Shape {
    package var statusCode = 0
    package var headers = HTTPFields()
    /// The names of dropped fields.
    package var droppedHeaders: [String] = []
    package var mimeType: String?
    package var expectedContentLength: Int64?
    package var suggestedFilename: String?
    package var url = ""

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("statusCode", &statusCode)
        members.member("headers", &headers)
        members.sparse("droppedHeaders", &droppedHeaders, unless: [])
        members.optional("mimeType", &mimeType)
        members.optional("expectedContentLength", &expectedContentLength)
        members.optional("suggestedFilename", &suggestedFilename)
        members.member("url", &url)
    }
}

/// The condition for claiming a content.
package enum ClaimCondition: Hashable, Sendable {
    /// The content is not expired.
    case unexpired
    /// The task has this revision.
    case revision(Int64)
}

/// The stored content of a finished task.
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

    /// Whether the content has expired, though its bytes may not be removed yet.
    package func hasExpired(at now: Timestamp) -> Bool { isExpired || expiresAt.map { $0 <= now } ?? false }
}
