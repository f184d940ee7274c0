extension TextRule {
    /// A method: a token of at most 32 characters, in upper case like all registered ones.
    public static let method = TextRule { text in
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(Bytes.isToken) else {
            return "A method is 1 to 32 characters of a token, such as GET."
        }
        guard text.utf8.allSatisfy({ !(0x61...0x7A).contains($0) }) else { return "Methods are written in upper case." }
        return ["CONNECT", "TRACE"].contains(text) ? "This method cannot be used." : nil
    }

    /// A value of a header field: visible ASCII, spaces and tabs.
    public static let headerValue = TextRule { text in
        guard text.utf8.count <= 8192 else { return "A header's value has at most 8192 bytes." }
        let isValid = text.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 }
        return isValid ? nil : "A header's value has only visible ASCII characters, blanks and tabs."
    }

    /// A name of a header field that a task may set.
    public static func headerName(forDownload: Bool) -> TextRule {
        TextRule { name in
            guard (1...256).contains(name.utf8.count), name.utf8.allSatisfy(Bytes.isToken) else {
                return "A header's name is a token of 1 to 256 characters."
            }
            let name = name.lowercased()
            if refusedEverywhere.contains(name) {
                return "The service sets this header itself."
            }
            return forDownload ? faultOnDownload(name) : nil
        }
    }

    /// The fault of a name that only downloads may not have; `nil` if there is none.
    static func faultOnDownload(_ name: String) -> String? {
        refusedOnDownloads.contains(name.lowercased())
            ? "The service sets this header itself on downloads, to resume them." : nil
    }

    /// Fields for framing, routing and single connections (RFC 9110 section 7.6.1).
    private static let refusedEverywhere: Set<String> = [
        "host", "content-length", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
        "proxy-authenticate", "proxy-authorization", "proxy-connection",
    ]
    private static let refusedOnDownloads: Set<String> = ["range", "if-range", "accept-encoding"]

    /// An entity tag or a list of them, for `If-None-Match`.
    public static let entityTag = TextRule { text in
        guard (1...1024).contains(text.utf8.count) else { return "An entity tag has 1 to 1024 bytes." }
        let isTag = text == "*" || text.hasSuffix("\"")
        return isTag && headerValue.fault(text) == nil
            ? nil : "This must be an entity tag with its quotation marks, such as \"\\\"abc\\\"\"."
    }

    /// A status code or a range of them: `204`, `200-299`.
    public static let statusRange = TextRule { text in
        StatusCodes.parse(text) == nil ? "This must be a status code or a range of them, such as 204 or 200-299." : nil
    }
}

extension StringMap.Rule {
    /// The limits of a task or session: the number of header fields, and the bytes of their names and values.
    static let maximumHeaderCount = 100
    static let maximumHeaderBytes = 32_768

    /// Header fields that a task or session sends.
    static func headers(forDownload: Bool) -> Self {
        StringMap.Rule(
            names: .headerName(forDownload: forDownload), values: .headerValue, maximumCount: maximumHeaderCount
        ) { map, position in
            if map.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }) > maximumHeaderBytes {
                position.report("Header fields have at most \(maximumHeaderBytes) bytes together.")
            }
            var seen: Set<String> = []
            for pair in map where !seen.insert(pair.name.lowercased()).inserted {
                position.member(pair.name).report("This header occurs twice; names are case-insensitive.")
            }
        }
    }
}
