extension TextRule {
    /// A URL that a task may transfer: absolute, http or https, ASCII, at most 8 KiB, without user and password.
    ///
    /// The rule checks the text alone. libcurl's parser decides about the host, and the egress policy about its
    /// addresses.
    public static let url = TextRule { text in URLText.fault(text) }
}

private enum URLText {
    static func fault(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= 8192 else { return "A URL has 1 to 8192 bytes." }
        guard bytes.allSatisfy({ (0x21...0x7E).contains($0) && !forbidden.contains($0) }) else {
            return
                "A URL has only the ASCII characters of RFC 3986: percent-encode others, and write a host in Punycode."
        }
        guard let rest = afterScheme(bytes) else { return "A URL must begin with http:// or https://." }
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        if authority.contains(UInt8(ascii: "@")) {
            return "A URL must not contain a user or password: use a header or a credential."
        }
        return authorityFault(Array(authority))
    }

    /// Printable characters that no URL has: libcurl and other parsers read them differently.
    private static let forbidden = Array("\\\"<>^`{|}".utf8)

    private static func afterScheme(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
        for scheme in ["http://", "https://"] {
            let count = scheme.utf8.count
            let start = bytes.prefix(count).map { Bytes.isLetter($0) ? $0 | 0x20 : $0 }
            if start.elementsEqual(scheme.utf8) { return bytes[count...] }
        }
        return nil
    }

    private static func authorityFault(_ authority: [UInt8]) -> String? {
        var host = authority[...]
        var port: ArraySlice<UInt8>?
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else {
                return "The address has no closing bracket."
            }
            host = authority[1..<end]
            let rest = authority[(end + 1)...]
            guard rest.isEmpty || rest.first == UInt8(ascii: ":") else { return "Only a port may follow an address." }
            port = rest.isEmpty ? nil : rest.dropFirst()
            let isAddress = host.allSatisfy {
                Bytes.isDigit($0) || (0x61...0x66).contains($0 | 0x20) || $0 == 0x3A || $0 == 0x2E
            }
            guard isAddress else { return "Brackets enclose an IPv6 address, without a zone." }
        } else if let colon = authority.firstIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        guard !host.isEmpty, host.count <= 253 else { return "A URL needs a host, of at most 253 characters." }
        if host.contains(UInt8(ascii: "%")) { return "A host must not be percent-encoded." }
        guard let port else { return nil }
        let number =
            port.allSatisfy(Bytes.isDigit) && port.count <= 5 ? Int(String(decoding: port, as: UTF8.self)) : nil
        return number.map((1...65535).contains) == true ? nil : "A port is a number from 1 to 65535."
    }
}

extension TextRule {
    /// A host alone: a name in ASCII or an address, without port and brackets.
    public static let host = TextRule { text in
        let bytes = text.utf8
        let colons = bytes.count { $0 == UInt8(ascii: ":") }
        // A single colon would begin a port; an IPv6 address has two or more.
        let isValid =
            (1...253).contains(bytes.count) && colons != 1
            && bytes.allSatisfy { byte in
                if colons > 0 { return byte.hexadecimalValue != nil || ".:".utf8.contains(byte) }
                return Bytes.isLetter(byte) || Bytes.isDigit(byte) || ".-_".utf8.contains(byte)
            }
        return isValid ? nil : "A host is a name in ASCII or an address, without port and brackets."
    }
}
