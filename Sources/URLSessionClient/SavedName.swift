/// A file name for foreign bytes: within its folder, visible, and short enough.
package struct SavedName: Equatable, Sendable {
    package let text: String

    /// The limit in UTF-8 bytes. A number and the ending of a partial file fit after it.
    private static let longest = 200

    /// The valid rest of a name: the part after the last slash or backslash, without control characters, marks that
    /// change the reading direction, and spaces or dots at its ends.
    ///
    /// - Parameter isHidden: Whether the name may begin with a dot; otherwise an underscore replaces it.
    /// - Returns: `nil` if no character is left.
    package init?(_ name: String, isHidden: Bool = false) {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? [][...]
        var scalars = last.filter { !$0.isUnsafe }[...]
        scalars = scalars.drop { $0 == " " }
        while let end = scalars.last, end == " " || end == "." { scalars.removeLast() }
        guard !scalars.isEmpty else { return nil }
        // The end is kept, with the extension.
        var length = scalars.reduce(0) { $0 + UTF8.width($1) }
        while length > Self.longest, let first = scalars.popFirst() { length -= UTF8.width(first) }
        if scalars.first == ".", !isHidden { scalars[scalars.startIndex] = "_" }
        text = String(String.UnicodeScalarView(scalars))
    }

    private init(plain: String) { text = plain }

    /// The name of a download without another name.
    package static let download = SavedName(plain: "download")

    /// The name of a task's content without another name.
    static func task(_ number: Int64) -> SavedName { SavedName(plain: "task-\(number)") }

    /// `a.tar` for 1, `a-2.tar` for 2.
    package func numbered(_ number: Int) -> String {
        guard number > 1 else { return text }
        guard let dot = text.lastIndex(of: "."), dot > text.startIndex else { return "\(text)-\(number)" }
        return "\(text[..<dot])-\(number)\(text[dot...])"
    }
}

extension Unicode.Scalar {
    fileprivate var isUnsafe: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFFD: true
        default: false
        }
    }
}
