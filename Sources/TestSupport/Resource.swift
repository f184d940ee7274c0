package import Core

/// The resource of an origin's path: generated or given bytes, and the honesty of its validators.
package struct Resource: Sendable {
    /// The content: bytes computed from a seed, or given ones.
    package enum Body: Sendable {
        case generated(seed: UInt64, length: Int)
        case bytes([UInt8])
        case large(LargeContent)

        package var length: Int {
            switch self {
            case .large(let content): content.length
            case .generated(_, let length): length
            case .bytes(let bytes): bytes.count
            }
        }

        func bytes(_ range: Range<Int>) -> [UInt8] {
            switch self {
            case .generated(let seed, _): Content.bytes(seed: seed, range: range)
            case .bytes(let bytes): Array(bytes[range])
            case .large(let content): content.bytes(range)
            }
        }
    }

    package var body: Body
    package var status = 200
    /// The entity tag with its quotes and, if it is weak, `W/`; `nil` for none.
    package var etag: String?
    /// The date as IMF-fixdate; `nil` for none.
    package var lastModified: String?
    /// Whether `Range` is honoured; otherwise the response is 200.
    package var servesRanges = true
    /// The `Accept-Ranges` line; `nil` for none.
    package var acceptRanges: String? = "bytes"
    /// Whether `If-Range` is honoured; otherwise a range is always served.
    package var honoursIfRange = true
    package var contentType: String? = "application/octet-stream"
    /// More header lines.
    package var fields = HTTPFields()
    /// The response to a request with a body (PUT, POST, PATCH); `nil` for the content, as for GET.
    package var uploadAnswer: UploadAnswer?

    package enum UploadAnswer: Sendable {
        /// A status and a small body.
        case status(Int, body: [UInt8] = [])
        /// 200 with the received bytes (the first mebibyte).
        case echo
    }

    package init(_ body: Body, etag: String? = nil, lastModified: String? = nil) {
        self.body = body
        self.etag = etag
        self.lastModified = lastModified
    }

    /// Generated content with a strong entity tag from the seed.
    package static func generated(seed: UInt64, length: Int) -> Resource {
        Resource(.generated(seed: seed, length: length), etag: "\"v\(seed)\"")
    }

    /// Text without validators.
    package static func text(_ text: String, status: Int = 200) -> Resource {
        var resource = Resource(.bytes(Array(text.utf8)))
        resource.status = status
        resource.contentType = "text/plain"
        return resource
    }

    /// Accepts uploads and responds with a status.
    package static func upload(status: Int = 201, body: String = "") -> Resource {
        var resource = Resource.text("")
        resource.uploadAnswer = .status(status, body: Array(body.utf8))
        return resource
    }

    /// Responds to an upload with its own bytes.
    package static var echo: Resource {
        var resource = Resource.text("")
        resource.uploadAnswer = .echo
        return resource
    }

    /// The SHA-256 of the content in lower-case hex.
    package var sha256: String {
        switch body {
        case .generated(let seed, let length): Content.sha256(seed: seed, length: length)
        case .bytes(let bytes): Content.sha256(of: bytes)
        case .large(let content): content.sha256
        }
    }

    /// A copy with changed members.
    package func with(_ change: (inout Resource) -> Void) -> Resource {
        var copy = self
        change(&copy)
        return copy
    }
}
