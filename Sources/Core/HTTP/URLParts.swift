import Formats

/// The parts of a text that satisfies `TextRule.url`, of which all parsers find the same ones.
struct URLParts {
    /// `scheme://authority` as written.
    let site: String
    /// As written: empty, or from the first slash on, without query and fragment.
    let path: String

    init?(_ text: String) {
        guard TextRule.url.violation(in: text) == nil else { return nil }
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        // Behind `://`.
        let slash = bytes[..<end].dropFirst(colon + 3).firstIndex(of: UInt8(ascii: "/")) ?? end
        site = String(decoding: bytes[..<slash], as: UTF8.self)
        path = String(decoding: bytes[slash..<end], as: UTF8.self)
    }

    /// The origin in lower case, without the scheme's own port (RFC 6454).
    var origin: String {
        let site = site.asciiLowercased
        let port = site.hasPrefix("https:") ? ":443" : ":80"
        return site.hasSuffix(port) ? String(site.dropLast(port.utf8.count)) : site
    }

    /// The path up to its last slash.
    var folder: String { path.isEmpty ? "/" : path.lastIndex(of: "/").map { String(path[...$0]) } ?? "/" }
}
