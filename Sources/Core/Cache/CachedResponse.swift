package import Formats

/// A response as a private cache stores it: its head, and what its reuse depends on (RFC 9111).
package struct CachedResponse: Shape {
    package var response = TaskResponse()
    /// The fields that determine freshness, selection and validation.
    package var fields = HTTPFields()
    /// The request's values of the fields that `Vary` names, in the order of the names.
    package var selecting: [HTTPField] = []
    package var requestedAt = Timestamp()
    package var receivedAt = Timestamp()
    /// The number of the content's bytes in the task that received them (``TaskProgress/version``).
    package var version: Int64 = 0
    /// Whether redirects led to the response. Redirects are not stored, so the response is stale at once.
    package var isRedirected = false
    /// Whether `Last-Modified` was a strong validator when the bytes were received. The `Date` of a 304 is later.
    package var hasStrongDate = false

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("response", &response)
        members.member("fields", &fields)
        members.member("selecting", &selecting)
        members.member("requestedAt", &requestedAt)
        members.member("receivedAt", &receivedAt)
        members.member("isRedirected", &isRedirected)
        members.sparse("version", &version, unless: 0)
        members.sparse("hasStrongDate", &hasStrongDate, unless: false)
    }

    private static let fieldNames = [
        "Age", "Cache-Control", "Date", "ETag", "Expires", "Last-Modified", "Pragma", "Vary",
    ]
    /// The maximum length of the fields in bytes, because each request that may use the response reads them.
    private static let maximumLength = 8192

    /// The response as the cache stores it; `nil` if it must not be stored (section 3).
    ///
    /// A private cache stores responses with `private`, and responses to requests with `Authorization`.
    ///
    /// - Parameters:
    ///   - fields: The fields of the response's head.
    ///   - request: The header fields of the request.
    package init?(
        _ response: TaskResponse, _ fields: HTTPFields, to request: HTTPFields, requestedAt: Timestamp,
        receivedAt: Timestamp, isRedirected: Bool = false
    ) {
        guard response.statusCode == 200, Self.mayStore(fields, request) else { return nil }
        let kept = HTTPFields(
            fields.fields.filter { field in Self.fieldNames.contains { field.name.equalsIgnoringASCIICase($0) } })
        let selecting = Self.selecting(kept, request)
        let length = (kept.fields + selecting).reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard length <= Self.maximumLength else { return nil }
        self.init()
        self.response = response
        self.fields = kept
        self.selecting = selecting
        self.requestedAt = requestedAt
        self.receivedAt = receivedAt
        self.isRedirected = isRedirected
        hasStrongDate = kept.hasStrongDate(receivedAt: receivedAt)
    }

    /// Whether other tasks may reuse a response with these fields.
    package static func mayStore(_ fields: HTTPFields, _ request: HTTPFields) -> Bool {
        !CacheControl(fields).noStore && !CacheControl(request).noStore && !names(fields).contains("*")
    }

    // MARK: Selection

    /// The names in `Vary`, in lower case and sorted.
    private static func names(_ fields: HTTPFields) -> [String] {
        let names = fields.values("Vary").flatMap { $0.split { $0 == "," || $0 == " " || $0 == "\t" } }
        return Set(names.map { String($0).asciiLowercased }).sorted()
    }

    private static func selecting(_ fields: HTTPFields, _ request: HTTPFields) -> [HTTPField] {
        names(fields).map { name in
            // Lines of a field are one list (section 4.1), and a missing field differs from an empty one.
            let values = request.values(name)
            return HTTPField(name: name, value: values.isEmpty ? "" : "=" + values.joined(separator: ","))
        }
    }

    /// Whether the request has the values that `Vary` selects the response by (section 4.1).
    package func matches(_ request: HTTPFields) -> Bool {
        !Self.names(fields).contains("*") && selecting == Self.selecting(fields, request)
    }

    // MARK: Freshness

    /// The freshness lifetime in milliseconds (section 4.2.1). 0 without explicit freshness: no heuristic.
    package var lifetime: Int64 {
        if let seconds = CacheControl(fields).maxAge { return seconds * 1000 }
        guard let value = fields.single("Expires"), let expires = HTTPDate.parse(value, now: receivedAt) else {
            return 0
        }
        return max(0, (expires - date).milliseconds)
    }

    private var date: Timestamp {
        fields.single("Date").flatMap { HTTPDate.parse($0, now: receivedAt) } ?? receivedAt
    }

    /// The age of the response in milliseconds (section 4.2.3).
    package func age(at now: Timestamp) -> Int64 {
        let apparent = max(0, (receivedAt - date).milliseconds)
        // The first of several values counts (section 5.1).
        let told = fields["Age"].map { $0.split(separator: ",").first ?? "" }.map {
            CacheControl.seconds(Array($0.utf8.filter { !$0.isBlank })) * 1000
        }
        let corrected = (told ?? 0) + max(0, (receivedAt - requestedAt).milliseconds)
        return max(apparent, corrected) + max(0, (now - receivedAt).milliseconds)
    }

    /// Whether the response may be used without a request (section 4.2), with the demands of the request (5.2.1).
    package func isFresh(for request: HTTPFields, at now: Timestamp) -> Bool {
        let demands = CacheControl(request)
        guard !isRedirected, !CacheControl(fields).noCache, !demands.noCache else { return false }
        let age = age(at: now)
        if let limit = demands.maxAge, age > limit * 1000 { return false }
        return lifetime > age + (demands.minFresh ?? 0) * 1000
    }

    // MARK: Validation

    /// The fields that ask whether the response is still current (section 4.3.1); `nil` without a validator.
    package var conditions: HTTPFields? {
        if let tag = fields.single("ETag") { return HTTPFields([HTTPField(name: "If-None-Match", value: tag)]) }
        return fields.single("Last-Modified").map {
            HTTPFields([HTTPField(name: "If-Modified-Since", value: $0)])
        }
    }

    /// Whether a 304 to the ``conditions`` proves that the bytes are the same.
    package var hasStrongValidator: Bool {
        fields.contains("ETag") ? fields.single("ETag")?.isStrongEntityTag ?? false : hasStrongDate
    }

    /// The response after a 304 to its ``conditions`` (sections 3.2 and 4.3.4); `nil` if the 304 is about another one.
    ///
    /// - Parameters:
    ///   - url: The URL that sent the 304.
    ///   - request: The header fields of the request.
    package func freshened(
        by head: HTTPFields, from url: String, to request: HTTPFields, requestedAt: Timestamp, receivedAt: Timestamp
    ) -> CachedResponse? {
        // A validator says nothing about the responses of another URL, to which a redirect may have led.
        guard url == response.url, confirms(head) else { return nil }
        var copy = self
        copy.fields = Self.updated(fields, by: head, onlyKnown: true)
        copy.response.headers = Self.updated(response.headers, by: head, onlyKnown: false)
        copy.selecting = Self.selecting(copy.fields, request)
        copy.requestedAt = requestedAt
        copy.receivedAt = receivedAt
        return copy
    }

    /// Whether the validators of a 304 select this response: a strong tag by strong comparison, a weak one by weak.
    private func confirms(_ head: HTTPFields) -> Bool {
        guard let tag = head.single("ETag") else {
            guard !head.contains("ETag") else { return false }
            guard let date = head.single("Last-Modified"), let own = fields.single("Last-Modified") else { return true }
            return date.utf8.elementsEqual(own.utf8)
        }
        guard let own = fields.single("ETag") else { return true }
        return tag.isStrongEntityTag
            ? tag.utf8.elementsEqual(own.utf8) : tag.opaqueTag.utf8.elementsEqual(own.opaqueTag.utf8)
    }

    /// Replaces fields by those of a 304, except for those that describe its message.
    private static func updated(_ fields: HTTPFields, by head: HTTPFields, onlyKnown: Bool) -> HTTPFields {
        var copy = fields
        let ofMessage = [
            "connection", "content-encoding", "content-length", "content-range", "content-type", "keep-alive",
            "proxy-authenticate", "set-cookie", "set-cookie2", "te", "trailer", "transfer-encoding", "upgrade",
        ]
        let new = head.fields.filter { field in
            let name = field.name.asciiLowercased
            return !ofMessage.contains(name)
                && (!onlyKnown || fieldNames.contains { name.equalsIgnoringASCIICase($0) })
        }
        for field in new { copy.remove(field.name) }
        copy.fields += new
        // Those of the earlier response do not tell the age of the 304: a message without a date was created when it
        // was received (RFC 9110 section 6.6.1), and one without an age comes from the origin.
        for name in ["Age", "Date"] where !head.contains(name) { copy.remove(name) }
        return copy
    }
}

extension String {
    /// The entity tag without `W/` (RFC 9110 section 8.8.3.2).
    fileprivate var opaqueTag: Substring { hasPrefix("W/") ? dropFirst(2) : self[...] }
}
