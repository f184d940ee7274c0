/// A media type with its parameters (RFC 9110 section 8.3.1).
package struct MediaType: Hashable, Sendable {
    /// `type/subtype` in lower case, without parameters: Apple's `mimeType`.
    package var essence: String
    /// Parameter names in lower case.
    package var parameters: [String: String]

    package init?(_ text: String) {
        var scanner = ByteScanner(trimming: text)
        guard let type = scanner.token(), scanner.skip("/"), let subtype = scanner.token() else { return nil }
        scanner.skipBlanks()
        guard scanner.isAtEnd || scanner.peek == 0x3B else { return nil }
        essence = "\(type)/\(subtype)".asciiLowercased
        parameters = scanner.parameters().mapValues { String(decoding: $0, as: UTF8.self) }
    }
}

extension ByteScanner {
    /// Parses `; name=value` pairs up to the first other text; the first of two equal names counts.
    mutating func parameters() -> [String: [UInt8]] {
        var parameters: [String: [UInt8]] = [:]
        while true {
            skipBlanks()
            guard skip(";") else { return parameters }
            skipBlanks()
            guard let name = token()?.asciiLowercased else { continue }
            skipBlanks()
            guard skip("=") else { return parameters }
            skipBlanks()
            let value = peek == 0x22 ? quotedBytes() : Array(take { !$0.isBlank && $0 != 0x3B })
            guard let value else { return parameters }
            if parameters[name] == nil { parameters[name] = value }
        }
    }
}
