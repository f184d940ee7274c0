extension TextRule {
    /// A path within a version of a set: ``relativePath`` with at most 64 parts. Each part is looked up when it is added.
    public static let setPath = TextRule { text in
        if let detail = relativePath.violation(in: text) { return detail }
        return text.utf8.count { $0 == UInt8(ascii: "/") } < 64 ? nil : "A path of a set has at most 64 parts."
    }

    /// A path below a root: parts of 1–255 bytes, none of them `.` or `..`, no control characters, at most 4096 bytes.
    public static let relativePath = TextRule { text in
        guard (1...4096).contains(text.utf8.count) else { return "A path has 1 to 4096 bytes." }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return "A path has no control characters." }
        for part in text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            if part.isEmpty { return "A path does not begin or end with a slash, and has none twice." }
            if part.count > 255 { return "A part of a path has at most 255 bytes." }
            if part.isDots { return "A path has no . and no .. in it." }
        }
        return nil
    }
}

extension Substring.UTF8View {
    package var isDots: Bool { (1...2).contains(count) && allSatisfy { $0 == UInt8(ascii: ".") } }
}
