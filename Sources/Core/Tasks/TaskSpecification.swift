package import Notation

package enum TaskKind: String, Sendable, Codable, CaseIterable {
    case download, upload

    package var name: String { rawValue }
}

/// The request of a task as the app gave it.
package struct TransferRequest: Hashable, Sendable, Codable {
    package var url: String
    package var method: String
    package var headers: HTTPFields
    package var sensitiveHeaders: [String]

    package init(url: String, method: String, headers: HTTPFields = HTTPFields(), sensitiveHeaders: [String] = []) {
        self.url = url
        self.method = method
        self.headers = headers
        self.sensitiveHeaders = sensitiveHeaders
    }

    package var holdsSecrets: Bool {
        headers.fields.contains { SecretHeaders.isSecret($0.name, besides: sensitiveHeaders) }
    }
}

/// Where a finished download is moved: a path below one of the operator's roots.
package struct Destination: Hashable, Sendable, Codable {
    package var root: String
    package var path: String
    package var replace: Bool

    package init(root: String, path: String, replace: Bool) {
        self.root = root
        self.path = path
        self.replace = replace
    }
}

/// A digest and how it was computed; the value in lower-case hex.
package struct ContentDigest: Hashable, Sendable, Codable {
    package var algorithm: DigestAlgorithm
    package var value: String

    package init(algorithm: DigestAlgorithm, value: String) {
        self.algorithm = algorithm
        self.value = value
    }
}

/// An inclusive range of status codes.
package struct StatusRange: Hashable, Sendable, Codable {
    package var first: Int
    package var last: Int

    package init(_ first: Int, _ last: Int) {
        self.first = first
        self.last = last
    }

    package func contains(_ status: Int) -> Bool { first <= status && status <= last }
}

/// What an app asked for when it created a task.
package struct TaskSpecification: Hashable, Sendable, Codable {
    package var kind: TaskKind
    package var request: TransferRequest
    /// The stored body sent with the request, by its public identifier.
    package var body: String?
    /// The length of that body.
    package var bodyLength: Int64?
    package var clientTaskId: String?
    package var group: String?
    package var taskDescription: String?
    package var metadata: [String: String] = [:]
    package var priority: Double = 0.5
    package var earliestBeginDate: Timestamp?
    package var confirmBeforeStart = false
    package var countOfBytesClientExpectsToSend: Int64?
    package var countOfBytesClientExpectsToReceive: Int64?
    package var expectedDigest: ContentDigest?
    package var maximumContentLength: Int64?
    package var ifNoneMatch: String?
    package var acceptableStatusCodes: [StatusRange] = [StatusRange(200, 299)]
    package var failOnHTTPError = false
    package var destination: Destination?
    package var traceparent: String?
    /// The task that this one repeats.
    package var retryOf: Int64?

    package init(kind: TaskKind, request: TransferRequest) {
        self.kind = kind
        self.request = request
    }

    /// Whether what is downloaded is kept here for a while.
    package var bringsContent: Bool { kind == .download && destination == nil }
}
