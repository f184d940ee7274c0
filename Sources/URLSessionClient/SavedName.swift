/// The name of a file for bytes of others: in its folder, visible, and short enough.
package struct SavedName: Equatable, Sendable {
    package let text: String

    /// Bytes of UTF-8. A number and the ending of a partial file fit behind them.
    private static let longest = 200

    /// What remains of a name: the part behind the last slash or backslash, without control characters, marks that turn the
    /// reading direction, and spaces or dots at its ends.
    ///
    /// - Parameter isHidden: Whether a dot may stand at the beginning; else an underscore takes its place.
    /// - Returns: `nil` where nothing remains.
    package init?(_ name: String, isHidden: Bool = false) {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? [][...]
        var scalars = last.filter { !$0.isUnsafe }[...]
        scalars = scalars.drop { $0 == " " }
        while let end = scalars.last, end == " " || end == "." { scalars.removeLast() }
        guard !scalars.isEmpty else { return nil }
        // The end is kept, and with it the extension.
        var length = scalars.reduce(0) { $0 + UTF8.width($1) }
        while length > Self.longest, let first = scalars.popFirst() { length -= UTF8.width(first) }
        if scalars.first == ".", !isHidden { scalars[scalars.startIndex] = "_" }
        text = String(String.UnicodeScalarView(scalars))
    }

    private init(plain: String) { text = plain }

    /// The name for a download that has no other.
    package static let download = SavedName(plain: "download")

    /// The name for the content of a task that has no other.
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
