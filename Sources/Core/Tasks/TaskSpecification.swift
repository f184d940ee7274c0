package import Formats

package enum TaskKind: String, Word, CaseIterable {
    case download, upload
}

/// The request of a task as the app gave it.
package struct TransferRequest: Shape {
    package var url = ""
    package var method = ""
    package var headers = HTTPFields()
    package var sensitiveHeaders: [String] = []
    /// The requested object, if the app named one; ``url`` is its address then.
    package var object: ObjectReference?
    /// The cache policy of the request; `nil` for that of the session.
    package var cachePolicy: CachePolicy?

    package init() {}

    package init(url: String, method: String, headers: HTTPFields = HTTPFields(), sensitiveHeaders: [String] = []) {
        self.url = url
        self.method = method
        self.headers = headers
        self.sensitiveHeaders = sensitiveHeaders
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url)
        members.member("method", &method)
        members.member("headers", &headers)
        members.member("sensitiveHeaders", &sensitiveHeaders)
        members.optional("object", &object)
        members.optional("cachePolicy", &cachePolicy)
    }

    /// The request's URL, or `s3://BUCKET/KEY` of its object.
    package var address: String { object.map { "s3://\($0.bucket)/\($0.key)" } ?? url }

    package var holdsSecrets: Bool {
        headers.fields.contains { SecretHeaders.isSecret($0.name, besides: sensitiveHeaders) }
    }
}

/// The destination of a finished download: a path below one of the operator's roots.
package struct Destination: Shape {
    package var root = ""
    package var path = ""
    package var replace = false

    package init() {}

    package init(root: String, path: String, replace: Bool) {
        self.root = root
        self.path = path
        self.replace = replace
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("root", &root)
        members.member("path", &path)
        members.member("replace", &replace)
    }
}

/// A digest with its algorithm; the value is in lower-case hex.
package struct ContentDigest: Shape {
    package var algorithm = DigestAlgorithm.sha256
    package var value = ""

    package init() {}

    package init(algorithm: DigestAlgorithm, value: String) {
        self.algorithm = algorithm
        self.value = value
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("algorithm", &algorithm)
        members.member("value", &value)
    }
}

/// An inclusive range of status codes.
package struct StatusRange: Shape {
    package var first = 0
    package var last = 0

    package init() {}

    package init(_ first: Int, _ last: Int) {
        self.first = first
        self.last = last
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("first", &first)
        members.member("last", &last)
    }

    package func contains(_ status: Int) -> Bool { first <= status && status <= last }
}

/// The specification with which an app created a task.
package struct TaskSpecification: Shape {
    package var kind = TaskKind.download
    package var request = TransferRequest()
    /// The stored body sent with the request, by its public identifier.
    package var body: String?
    /// The length of that body.
    package var bodyLength: Int64?
    /// The object that becomes that body before the first attempt.
    package var bodyObject: ObjectReference?
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
    /// The date of a file in a kept version of a set, for the origin to confirm.
    package var ifModifiedSince: String?
    package var acceptableStatusCodes: [StatusRange] = [StatusRange(200, 299)]
    package var failOnHTTPError = false
    package var destination: Destination?
    /// The object to which the content is written while it arrives, instead of a file.
    package var destinationObject: ObjectDestination?
    package var segments = SegmentCount.one
    /// Further URLs of the same content, in order of preference.
    package var mirrors: [String] = []
    package var pieces: PieceDigests?
    package var traceparent: String?
    /// The task that this one retries.
    package var retryOf: Int64?

    package init() {}

    package init(kind: TaskKind, request: TransferRequest) {
        self.kind = kind
        self.request = request
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.member("request", &request)
        members.optional("body", &body)
        members.optional("bodyLength", &bodyLength)
        members.optional("bodyObject", &bodyObject)
        members.optional("clientTaskId", &clientTaskId)
        members.optional("group", &group)
        members.optional("taskDescription", &taskDescription)
        members.member("metadata", &metadata)
        members.member("priority", &priority)
        members.optional("earliestBeginDate", &earliestBeginDate)
        members.member("confirmBeforeStart", &confirmBeforeStart)
        members.optional("countOfBytesClientExpectsToSend", &countOfBytesClientExpectsToSend)
        members.optional("countOfBytesClientExpectsToReceive", &countOfBytesClientExpectsToReceive)
        members.optional("expectedDigest", &expectedDigest)
        members.optional("maximumContentLength", &maximumContentLength)
        members.optional("ifNoneMatch", &ifNoneMatch)
        members.optional("ifModifiedSince", &ifModifiedSince)
        members.member("acceptableStatusCodes", &acceptableStatusCodes)
        members.member("failOnHTTPError", &failOnHTTPError)
        members.optional("destination", &destination)
        members.optional("destinationObject", &destinationObject)
        members.sparse("segments", &segments, unless: .one)
        members.sparse("mirrors", &mirrors, unless: [])
        members.optional("pieces", &pieces)
        members.optional("traceparent", &traceparent)
        members.optional("retryOf", &retryOf)
    }

    /// The length of the body, if it is known; 0 without a body.
    package var expectedBytesToSend: Int64? { body == nil ? 0 : bodyLength ?? countOfBytesClientExpectsToSend }

    /// Whether the downloaded content is stored here.
    package var bringsContent: Bool { kind == .download && !movesContent }

    /// Whether the downloaded content is moved elsewhere.
    package var movesContent: Bool { destination != nil || destinationObject != nil }

    /// Whether a status is a success of the task.
    package func accepts(_ status: Int) -> Bool { acceptableStatusCodes.contains { $0.contains(status) } }

    /// Whether the content may arrive out of order, from several requests or sources.
    package var mayComeInSegments: Bool { segments != .one || !mirrors.isEmpty || pieces != nil }

    /// Whether a cache policy applies: the task downloads the whole of one URL, and not under conditions of its own.
    package var mayUseCache: Bool {
        kind == .download && request.method == "GET" && request.object == nil && destinationObject == nil
            && !isConditional && mirrors.isEmpty && pieces == nil
    }

    /// Whether a 304 answers a condition of the task.
    package var isConditional: Bool { ifNoneMatch != nil || ifModifiedSince != nil }

    /// Whether digests can prove that bytes of several sources are of one content.
    package var provesContent: Bool { pieces != nil || expectedDigest != nil }
}
