/// A request that a task sends.
public struct TransferRequest: Shape {
    /// http or https.
    public var url = ""
    /// `nil` for the default: GET for downloads, PUT for uploads. Always there in answers.
    public var method: String?
    /// Header fields. In answers secret values are hidden.
    public var headers = StringMap()
    /// Names of header fields to be treated as secrets.
    public var sensitiveHeaders: [String] = []
    /// What a download by POST sends. Uploads have theirs beside the request.
    public var body: BodySource?

    public init() {}

    public init(
        url: String, method: String? = nil, headers: StringMap = [:], sensitiveHeaders: [String] = [],
        body: BodySource? = nil
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.sensitiveHeaders = sensitiveHeaders
        self.body = body
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url, .url)
        members.optional("method", &method, .method)
        members.defaulted("headers", &headers, .headers(forDownload: false))
        members.sparse("sensitiveHeaders", &sensitiveHeaders, unless: [], .headerNames)
        members.optional("body", &body)
    }

    /// Checks what depends on the kind of the task.
    ///
    /// - Parameter name: The member in which the request stands.
    func check(as kind: TaskKind, at name: String, _ reader: inout ObjectReader) {
        if kind == .upload {
            if body != nil {
                reader.report(name, "body", detail: "An upload has its body beside the request, not in it.")
            }
            return
        }
        for field in headers {
            guard let detail = TextRule.faultOnDownload(field.name) else { continue }
            reader.report(name, "headers", field.name, detail: detail)
        }
        if body != nil, ["GET", "HEAD"].contains(method ?? "GET") {
            reader.report(name, "body", detail: "A request with a body needs a method that sends one, such as POST.")
        }
    }

    /// The request with every secret hidden, for answers.
    public func redacted() -> TransferRequest {
        var copy = self
        copy.headers = SecretHeaders.redacted(headers, besides: sensitiveHeaders)
        return copy
    }
}

/// What a `PATCH` of a task changes about its request: only the members that are there.
public struct RequestChange: Shape {
    /// A new URL, such as a newly signed one.
    public var url: String?
    /// New header fields instead of all old ones.
    public var headers: StringMap?
    /// New names instead of all old ones.
    public var sensitiveHeaders: [String]?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("url", &url, .url)
        members.given("headers", &headers, .headers(forDownload: true))
        members.given("sensitiveHeaders", &sensitiveHeaders, .headerNames)
    }
}

extension ListRule<String> {
    static var headerNames: Self {
        .each(.headerName(forDownload: false), count: 0...StringMap.Rule.maximumHeaderCount)
    }
}
