package import Formats

/// The resume point of a download, stored with the progress of its task.
package struct ResumePoint: Shape {
    /// The URL that responded, after redirects.
    package var url = ""
    /// The URL of the request, before redirects; `nil` if an earlier version stored the point.
    package var requestedURL: String?
    /// A strong entity tag, byte for byte as received.
    package var entityTag: String?
    /// The `Last-Modified` value as received, strong or not: it must not change.
    package var lastModified: String?
    /// Whether ``lastModified`` is allowed in `If-Range` (RFC 9110 section 8.8.2.2).
    package var lastModifiedIsStrong = false
    /// The total length, if the origin declared it.
    package var totalLength: Int64?
    /// The durable offset.
    package var offset: Int64 = 0
    /// SHA-256 of the bytes up to the offset in lower-case hexadecimal, if it is known. Other bytes are not resumed.
    package var digest: String?

    /// The maximum length of stored validators in bytes.
    private static let maximumValidatorLength = 4096

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("url", &url)
        members.optional("requestedURL", &requestedURL)
        members.optional("entityTag", &entityTag)
        members.optional("lastModified", &lastModified)
        members.member("lastModifiedIsStrong", &lastModifiedIsStrong)
        members.optional("totalLength", &totalLength)
        members.member("offset", &offset)
        members.optional("digest", &digest)
    }

    /// The resume point for a first response; `nil` if its bytes can never be resumed.
    ///
    /// Requires a 200 to GET with a strong validator, no content coding, a valid length and no `Accept-Ranges: none`.
    ///
    /// - Parameters:
    ///   - url: The URL that responded, after redirects.
    ///   - receivedAt: When the head was received; used instead of a missing `Date`.
    package static func make(
        from head: ResponseHead, method: String, url: String, receivedAt: Timestamp
    ) -> ResumePoint? {
        guard method == "GET", head.status == 200, !head.hasContentCoding, !head.refusesRanges else { return nil }
        let length = ContentLength.parse(head.fields)
        guard length != .invalid else { return nil }
        let entityTag = head.fields.single("ETag").flatMap { $0.isStrongEntityTag ? $0 : nil }
        // An origin that sent a tag must not be queried by date (RFC 9110 section 13.1.5), so a weak tag excludes it.
        guard entityTag != nil || !head.fields.contains("ETag") else { return nil }
        let lastModified = head.fields.single("Last-Modified")
        let isStrong = head.fields.hasStrongDate(receivedAt: receivedAt)
        guard entityTag != nil || isStrong else { return nil }
        // The validators are stored with the task, and sent with every attempt.
        guard (entityTag ?? "").utf8.count + (lastModified ?? "").utf8.count <= Self.maximumValidatorLength else {
            return nil
        }
        return ResumePoint {
            $0.url = url
            $0.entityTag = entityTag
            $0.lastModified = lastModified
            $0.lastModifiedIsStrong = isStrong
            $0.totalLength = length.value
        }
    }

    /// Sets the durable offset and the digest of the bytes before it.
    package mutating func reach(_ offset: Int64, digest: String?) {
        self.offset = offset
        self.digest = digest
    }

    /// The fields that request the rest. Never a weak tag, and a date only without a tag.
    package var requestFields: HTTPFields { requestFields(upTo: nil) }

    /// The fields that request the bytes from ``offset`` up to `end`.
    package func requestFields(upTo end: Int64?) -> HTTPFields {
        var fields = HTTPFields([HTTPField(name: "Range", value: "bytes=\(offset)-\(end.map { "\($0 - 1)" } ?? "")")])
        if let validator = entityTag ?? (lastModifiedIsStrong ? lastModified : nil) {
            fields.append("If-Range", validator)
        }
        return fields
    }

    /// The validators of a response with a part, for a source without known validators.
    package static func met(_ head: ResponseHead, url: String) -> ResumePoint {
        ResumePoint {
            $0.url = url
            $0.entityTag = head.fields.single("ETag").flatMap { $0.isStrongEntityTag ? $0 : nil }
            $0.lastModified = head.fields.single("Last-Modified")
        }
    }

    /// Whether a response for this resume point shows that the origin supports ranges.
    package func allowsSegments(_ head: ResponseHead) -> Bool {
        guard let totalLength, totalLength >= 2 * Segmentation.grain else { return false }
        return head.status == 206
            || head.fields.values("Accept-Ranges").contains { $0.equalsIgnoringASCIICase("bytes") }
    }
}

extension HTTPFields {
    /// Whether `Last-Modified` is a strong validator (RFC 9110 section 8.8.2.2): at least a second before the origin's
    /// `Date`.
    ///
    /// Without a `Date` two different clocks are compared, which requires a minute.
    package func hasStrongDate(receivedAt: Timestamp) -> Bool {
        guard let modified = single("Last-Modified").flatMap({ HTTPDate.parse($0, now: receivedAt) }) else {
            return false
        }
        guard let date = single("Date").flatMap({ HTTPDate.parse($0, now: receivedAt) }) else {
            return !contains("Date") && receivedAt - modified >= .seconds(60)
        }
        return date - modified >= .seconds(1)
    }

    /// The value of a field; `nil` unless all its lines are byte-equal.
    package func single(_ name: String) -> String? {
        let all = values(name)
        guard let first = all.first, all.allSatisfy({ $0.utf8.elementsEqual(first.utf8) }) else { return nil }
        return first
    }
}

extension ResponseHead {
    var hasContentCoding: Bool {
        fields.values("Content-Encoding").contains { !$0.isEmpty && !$0.equalsIgnoringASCIICase("identity") }
    }

    /// The length of the body, if the head announces one and the body comes without chunks.
    package var announcedLength: Int64? {
        fields.contains("Transfer-Encoding") ? nil : ContentLength.parse(fields).value
    }

    var refusesRanges: Bool {
        fields.values("Accept-Ranges").contains { $0.equalsIgnoringASCIICase("none") }
    }
}

extension String {
    /// `"…"` without `W/` (RFC 9110 section 8.8.3).
    package var isStrongEntityTag: Bool {
        let bytes = Array(utf8)
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return false }
        return bytes[1..<bytes.count - 1].allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
    }
}
