/// A request that a task sends.
public struct TransferRequest: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where to. http or https.
    public var url: String
    /// `nil` for the kind's own: GET for downloads, PUT for uploads. Always there in answers.
    public var method: String?
    /// Header fields. In answers secret values are hidden.
    public var headers: StringMap
    /// Names of header fields to be treated as secrets.
    public var sensitiveHeaders: [String]
    /// What a download by POST sends. Uploads have theirs beside the request.
    public var body: BodySource?

    /// Makes a request.
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

    /// Reads a request of a download.
    public init(reading reader: inout ObjectReader) { self.init(reading: &reader, forDownload: true) }

    init(reading reader: inout ObjectReader, forDownload: Bool) {
        url = reader.string("url", .url)
        method = reader.optionalString("method", .method)
        headers = reader.headers("headers", forDownload: forDownload)
        sensitiveHeaders = reader.strings(
            "sensitiveHeaders", default: [], .headerName(forDownload: false), count: 0...ObjectReader.maximumHeaderCount
        )
        body = reader.optionalObject("body")
        guard reader.mode == .strict, body != nil else { return }
        if !forDownload {
            reader.report("body", "An upload has its body beside the request, not in it.")
        } else if ["GET", "HEAD"].contains(method ?? "GET") {
            reader.report("body", "A request with a body needs a method that sends one, such as POST.")
        }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.memberIfPresent("method", method)
            writer.member("headers", headers)
            if !sensitiveHeaders.isEmpty { writer.member("sensitiveHeaders", sensitiveHeaders) }
            writer.memberIfPresent("body", body)
        }
    }

    /// The request with every secret hidden, for answers.
    public func redacted() -> TransferRequest {
        var copy = self
        copy.headers = SecretHeaders.redacted(headers, besides: sensitiveHeaders)
        return copy
    }
}

/// What a `PATCH` of a task says about its request: only what is there changes.
public struct RequestChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// A new URL, such as a newly signed one.
    public var url: String?
    /// New header fields instead of all old ones.
    public var headers: StringMap?
    /// New names instead of all old ones.
    public var sensitiveHeaders: [String]?

    /// Makes a change.
    public init(url: String? = nil, headers: StringMap? = nil, sensitiveHeaders: [String]? = nil) {
        self.url = url
        self.headers = headers
        self.sensitiveHeaders = sensitiveHeaders
    }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        url = reader.presence(of: "url") == .absent ? reader.optionalString("url") : reader.string("url", .url)
        let hasHeaders = reader.presence(of: "headers") != .absent
        let fields = reader.headers("headers", forDownload: true)
        headers = hasHeaders ? fields : nil
        let hasNames = reader.presence(of: "sensitiveHeaders") != .absent
        let names = reader.strings(
            "sensitiveHeaders", default: [], .headerName(forDownload: false), count: 0...ObjectReader.maximumHeaderCount
        )
        sensitiveHeaders = hasNames ? names : nil
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("url", url)
            writer.memberIfPresent("headers", headers)
            writer.memberIfPresent("sensitiveHeaders", sensitiveHeaders)
        }
    }
}
