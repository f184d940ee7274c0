/// How a task ended, written once and told by its last events.
package struct TaskResult: Hashable, Sendable, Codable {
    package var error: TaskError?
    package var response: TaskResponse?
    package var progress: TaskProgress
    package var contentLength: Int64?
    package var contentDigest: ContentDigest?

    package init(progress: TaskProgress) { self.progress = progress }
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
