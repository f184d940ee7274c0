/// The `Link` header field (RFC 8288 section 3).
enum LinkField {
    struct Link: Hashable {
        /// As written: a URL, or a reference relative to that of the response.
        var target: String
        /// In lower case.
        var relations: [String]
    }

    /// The links of the field.
    ///
    /// - Parameter values: All lines of the field, in order.
    /// - Returns: `nil` if the field is malformed.
    static func parse(_ values: [String]) -> [Link]? {
        var links: [Link] = []
        var scanner = ByteScanner(values.joined(separator: ","))
        while true {
            scanner.skipBlanks()
            if scanner.skip(",") { continue }
            if scanner.isAtEnd { return links }
            guard scanner.skip("<") else { return nil }
            let target = scanner.take { $0 != 0x3E }
            guard scanner.skip(">"), let relations = scanner.relations() else { return nil }
            guard scanner.isAtEnd || scanner.skip(",") else { return nil }
            links.append(Link(target: String(decoding: target, as: UTF8.self), relations: relations))
        }
    }
}

extension ByteScanner {
    /// The relations among a link's parameters, up to the next link. Of several `rel` the first counts.
    fileprivate mutating func relations() -> [String]? {
        var relations: [String]?
        while true {
            skipBlanks()
            guard skip(";") else { return relations ?? [] }
            skipBlanks()
            guard let name = token() else { continue }
            skipBlanks()
            guard skip("=") else { continue }
            skipBlanks()
            let value = peek == 0x22 ? quotedBytes() : Array(take { !$0.isBlank && $0 != 0x3B && $0 != 0x2C })
            guard let value else { return nil }
            if relations == nil, name.equalsIgnoringASCIICase("rel") {
                relations = value.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self).asciiLowercased }
            }
        }
    }
}
