/// Where a finished download is moved: a path below one of the operator's roots.
public struct Destination: Shape {
    /// The name of a root, as the operator gave it.
    public var root = ""
    /// Relative to the root, with `/` between its parts.
    public var path = ""
    /// Whether an existing file gives way.
    public var replace = false

    public init() {}

    public init(root: String, path: String, replace: Bool = false) {
        self.root = root
        self.path = path
        self.replace = replace
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("root", &root, .handle)
        members.member("path", &path, .relativePath)
        members.defaulted("replace", &replace)
    }
}

extension TextRule {
    /// A path below a root: parts of 1–255 bytes, none of them `.` or `..`, no control characters, 4096 bytes in all.
    public static let relativePath = TextRule { text in
        guard (1...4096).contains(text.utf8.count) else { return "A path has 1 to 4096 bytes." }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return "A path has no control characters." }
        for part in text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            if part.isEmpty { return "A path does not begin or end with a slash, and has none twice." }
            if part.count > 255 { return "A part of a path has at most 255 bytes." }
            if part.allSatisfy({ $0 == UInt8(ascii: ".") }), part.count <= 2 {
                return "A path has no . and no .. in it."
            }
        }
        return nil
    }
}
