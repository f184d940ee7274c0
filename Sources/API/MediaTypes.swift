import Formats

/// Content negotiation (RFC 9110 sections 8.3.1 and 12.5.1).
enum MediaTypes {
    static let json = "application/json"
    static let lines = "application/x-ndjson"
    static let problem = "application/problem+json"
    static let eventStream = "text/event-stream"

    /// The type and subtype of a `Content-Type`, in lower case; nil for a character set other than UTF-8.
    static func ofBody(_ contentType: String) -> String? {
        guard contentType.utf8.contains(UInt8(ascii: ";")) else { return contentType.trimmed.lowercased() }
        let parts = contentType.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimmed }
        for parameter in parts.dropFirst() {
            guard let equals = parameter.firstIndex(of: "=") else { continue }
            let name = parameter[..<equals].lowercased()
            let value = parameter[parameter.index(after: equals)...].lowercased().filter { $0 != "\"" }
            if name == "charset", value != "utf-8" { return nil }
        }
        return parts.first?.lowercased()
    }

    /// Offered if the bytes may be of any type, known only when they are read: no `Accept` excludes it.
    static let any = "*/*"

    /// The first of `offered` with the highest quality in the `Accept` fields; nil if they exclude all.
    static func choose(_ offered: [String], accept: [String]) -> String? {
        guard !accept.isEmpty, offered != [any] else { return offered.first }
        let ranges = accept.flatMap { $0.split(separator: ",") }.map { Range(String($0)) }
        var best: (type: String, quality: Double)?
        for type in offered {
            let matching = ranges.filter { $0.matches(type) }.max { $0.precision < $1.precision }
            guard let quality = matching?.quality, quality > 0 else { continue }
            if quality > best?.quality ?? 0 { best = (type, quality) }
        }
        return best?.type
    }

    /// The weight among the parameters of an item (RFC 9110 section 12.4.2).
    static func quality(_ parts: [String]) -> Double {
        parts.dropFirst().first { $0.lowercased().hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
    }

    /// One media range of an `Accept` field.
    private struct Range {
        let type: String
        let quality: Double

        init(_ text: String) {
            let parts = text.split(separator: ";").map { $0.trimmed }
            type = parts.first?.lowercased() ?? ""
            quality = MediaTypes.quality(parts)
        }

        var precision: Int { type == "*/*" ? 0 : type.hasSuffix("/*") ? 1 : 2 }

        func matches(_ offered: String) -> Bool {
            type == "*/*" || type == offered || (type.hasSuffix("/*") && offered.hasPrefix(type.dropLast()))
        }
    }
}
