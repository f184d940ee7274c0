/// A request that a task sends.
public struct TransferRequest: Shape {
    /// The URL, http or https; empty for an object.
    public var url = ""
    /// The operator's name for the bucket of an object, instead of a URL.
    public var bucket: String?
    /// The key of the object.
    public var key: String?
    /// The version of the object; `nil` for the current one.
    public var versionId: String?
    /// `nil` for the default: GET for downloads, PUT for uploads. Always present in responses.
    public var method: String?
    /// Header fields. Responses hide secret values.
    public var headers = StringMap()
    /// Names of header fields that are treated as secrets.
    public var sensitiveHeaders: [String] = []
    /// The cache policy of a download by GET; `nil` for that of the session.
    public var cachePolicy: CachePolicy?
    /// The body of a download by POST. Uploads have their body beside the request.
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
        members.sparse("url", &url, unless: "", .url)
        members.given("bucket", &bucket, .handle)
        members.given("key", &key, .objectKey)
        members.given("versionId", &versionId, .plain(1...1024))
        members.optional("method", &method, .method)
        members.defaulted("headers", &headers, .headers(forDownload: false))
        members.sparse("sensitiveHeaders", &sensitiveHeaders, unless: [], .headerNames)
        members.optional("cachePolicy", &cachePolicy)
        members.optional("body", &body)
    }

    /// A download of an object in one of the operator's buckets.
    public static func object(bucket: String, key: String, versionId: String? = nil) -> TransferRequest {
        var request = TransferRequest(url: "")
        (request.bucket, request.key, request.versionId) = (bucket, key, versionId)
        return request
    }

    /// The URL, or `s3://BUCKET/KEY` of the object.
    public var address: String {
        guard let bucket, let key else { return url }
        return "s3://\(bucket)/\(key)"
    }

    /// Checks that the request has a URL or names an object. Requests for objects are signed by the service alone.
    public func check(_ reader: inout ObjectReader) {
        let hasURL = reader.presence(of: "url") == .present
        let isForObject = ["bucket", "key", "versionId"].contains { reader.presence(of: $0) == .present }
        guard isForObject else {
            if !hasURL { reader.report("url", "This member is missing; it must be a string.") }
            return
        }
        if hasURL { reader.report("url", "With bucket and key the service derives the URL: leave it out.") }
        for name in ["bucket", "key"] where reader.presence(of: name) != .present {
            reader.report(name, "An object has a bucket and a key.")
        }
        if let method, method != "GET" {
            reader.report("method", "An object is fetched with GET. To send one, use an upload to a presigned URL.")
        }
        for field in headers where Self.isSigned(field.name) {
            reader.report("headers", field.name, detail: "The service signs requests for objects: leave this out.")
        }
    }

    private static func isSigned(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("x-amz-") || name == "authorization"
    }

    /// Checks the members that depend on the kind of the task.
    ///
    /// - Parameter name: The name of the member with the request.
    func check(as kind: TaskKind, at name: String, _ reader: inout ObjectReader) {
        if kind == .upload, bucket != nil {
            reader.report(name, "bucket", detail: "An upload goes to a url, such as a presigned one.")
        }
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

    /// The request with every secret hidden, for responses.
    public func redacted() -> TransferRequest {
        var copy = self
        copy.headers = SecretHeaders.redacted(headers, besides: sensitiveHeaders)
        return copy
    }
}

/// A change of a task's request in a `PATCH`; absent members stay.
public struct RequestChange: Shape {
    /// The new URL, such as a newly signed one.
    public var url: String?
    /// New header fields, which replace all old ones.
    public var headers: StringMap?
    /// New names, which replace the old ones. Without new `headers`, those of stored fields stay.
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
