import Formats

/// The path and the query of a request, each part decoded once.
///
/// Routing of the encoded path keeps `%2F` and `%2e%2e` from becoming structure.
struct RequestTarget: Sendable {
    var segments: [String]
    var query: [(name: String, value: String)]

    /// - Throws: ``RefusalReason/badTarget(_:)`` if it is no path in origin form (RFC 9112, section 3.2.1);
    ///   ``RefusalReason/undecodableTarget(_:)`` for `%` without two digits, for NUL, and for invalid UTF-8.
    init(_ raw: String) throws(RefusalReason) {
        let bytes = Array(raw.utf8)
        guard bytes.first == UInt8(ascii: "/") else { throw .badTarget("the target must be a path or an http URL") }
        for byte in bytes where byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "#") {
            throw .badTarget("the target has a byte that must be percent-encoded")
        }
        let question = bytes.firstIndex(of: UInt8(ascii: "?"))
        let path = bytes[1..<(question ?? bytes.endIndex)]
        segments = []
        if !path.isEmpty {
            for part in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
                segments.append(try Self.decoded(part))
            }
        }
        query = []
        guard let question else { return }
        for pair in bytes[(question + 1)...].split(separator: UInt8(ascii: "&")) {
            let equals = pair.firstIndex(of: UInt8(ascii: "="))
            let value = equals.map { pair[($0 + 1)...] } ?? []
            query.append((try Self.formDecoded(pair[..<(equals ?? pair.endIndex)]), try Self.formDecoded(value)))
        }
    }

    /// Divides a target in absolute form into its authority and the rest, which is in origin form (RFC 9112, section
    /// 3.2.2). A target in another form is unchanged, as is a URL with user information, which servers should not
    /// accept (RFC 9110, section 4.2.4).
    static func divided(_ raw: String) -> (authority: String?, target: String) {
        guard raw.utf8.first != UInt8(ascii: "/") else { return (nil, raw) }
        let bytes = Array(raw.utf8)
        for scheme in ["http://", "https://"] {
            let start = String(decoding: bytes.prefix(scheme.utf8.count), as: UTF8.self)
            guard equalIgnoringASCIICase(start, scheme) else { continue }
            let rest = bytes.dropFirst(scheme.utf8.count)
            let authority = rest.prefix { !"/?#".utf8.contains($0) }
            guard !authority.isEmpty,
                authority.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "@") })
            else { break }
            let path = rest[authority.endIndex...]
            let slash = path.first == UInt8(ascii: "/") ? "" : "/"
            return (String(decoding: authority, as: UTF8.self), slash + String(decoding: path, as: UTF8.self))
        }
        return (nil, raw)
    }

    /// Decodes a name or value of a query as `application/x-www-form-urlencoded`, which clients send: a plus is a space
    /// (WHATWG URL Standard, section 5.1).
    private static func formDecoded(_ part: ArraySlice<UInt8>) throws(RefusalReason) -> String {
        let (plus, space) = (UInt8(ascii: "+"), UInt8(ascii: " "))
        guard part.contains(plus) else { return try decoded(part) }
        return try decoded(part.map { $0 == plus ? space : $0 }[...])
    }

    private static func decoded(_ part: ArraySlice<UInt8>) throws(RefusalReason) -> String {
        guard part.contains(UInt8(ascii: "%")) else { return String(decoding: part, as: UTF8.self) }
        let (result, isWellFormed) = PercentCoding.decode(part)
        guard isWellFormed else { throw .undecodableTarget("% must be followed by two hexadecimal digits") }
        guard !result.contains(0) else { throw .undecodableTarget("%00 is not allowed") }
        guard let text = String(validating: result, as: UTF8.self) else {
            throw .undecodableTarget("it does not decode to UTF-8")
        }
        return text
    }
}
