/// Splits bytes into lines as they arrive. Empty lines are left out; a line above the limit is skipped and reported.
struct LineSplitter {
    struct Line {
        /// From 1; empty lines count, too.
        let number: Int
        /// Nil if the line is too long.
        let bytes: [UInt8]?
    }

    private let limit: Int
    private var partial: [UInt8] = []
    private var isTooLong = false
    private var ended = 0

    /// Bytes held of a line that has not ended.
    var held: Int { partial.count }

    init(limit: Int) { self.limit = limit }

    mutating func take(_ bytes: [UInt8]) -> [Line] {
        var lines: [Line] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            keep(rest[..<end])
            if let line = finish() { lines.append(line) }
            rest = rest[(end + 1)...]
        }
        keep(rest)
        return lines
    }

    /// The line that ends with the body.
    mutating func finish() -> Line? {
        defer {
            partial = []
            isTooLong = false
        }
        ended += 1
        if isTooLong { return Line(number: ended, bytes: nil) }
        let isEmpty = partial.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return isEmpty ? nil : Line(number: ended, bytes: partial)
    }

    private mutating func keep(_ bytes: ArraySlice<UInt8>) {
        guard !isTooLong, partial.count + bytes.count <= limit else {
            isTooLong = true
            partial = []
            return
        }
        partial += bytes
    }
}
