extension TextRule {
    /// A method: a token of at most 32 characters, in upper case as all registered ones are.
    public static let method = TextRule { text in
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(Bytes.isToken) else {
            return "A method is 1 to 32 characters of a token, such as GET."
        }
        guard text.utf8.allSatisfy({ !(0x61...0x7A).contains($0) }) else { return "Methods are written in upper case." }
        return ["CONNECT", "TRACE"].contains(text) ? "This method cannot be used." : nil
    }

    /// A value of a header field: visible ASCII, blanks and tabs.
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
            if refusedEverywhere.contains(name) || name.hasPrefix("proxy-") {
                return "The service sets this header itself."
            }
            return forDownload ? faultOnDownload(name) : nil
        }
    }

    /// What is wrong with a name that other tasks may have.
    static func faultOnDownload(_ name: String) -> String? {
        refusedOnDownloads.contains(name.lowercased())
            ? "The service sets this header itself on downloads, to resume them." : nil
    }

    /// Framing, routing, and what concerns one connection only (RFC 9110 section 7.6.1).
    private static let refusedEverywhere: Set<String> = [
        "host", "content-length", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
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
    /// The most header fields a task or session may have, and the bytes of their names and values together.
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
                position.member(pair.name).report("This header stands here twice; letters of either case are the same.")
            }
        }
    }
}
