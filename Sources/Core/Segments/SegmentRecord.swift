package import Formats

/// A range of a content on disk, from `offset` up to `end`.
package struct HeldRange: Shape {
    package var offset: Int64 = 0
    package var end: Int64 = 0
    /// The source of the bytes, if it may still matter.
    package var source: Int?

    package init() {}

    package init(_ offset: Int64, _ end: Int64, source: Int? = nil) {
        self.offset = offset
        self.end = end
        self.source = source
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("offset", &offset)
        members.member("end", &end)
        members.optional("source", &source)
    }
}

/// The ranges of a segmented content on disk, stored with the progress of its task.
package struct SegmentRecord: Shape {
    /// The total length.
    package var total: Int64 = 0
    /// In ascending order; ranges of the same source do not touch.
    package var held: [HeldRange] = []
    /// Sources that sent other bytes than the rest, or cannot serve segments.
    package var dropped: [Int] = []

    package init() {}

    package init(total: Int64) { self.total = total }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("total", &total)
        members.member("held", &held)
        members.sparse("dropped", &dropped, unless: [])
    }

    /// The number of bytes on disk.
    package var count: Int64 { held.reduce(0) { $0 + $1.end - $1.offset } }

    /// The number of bytes before the first gap.
    package var contiguous: Int64 {
        held.reduce(0) { reached, range in range.offset == reached ? range.end : reached }
    }

    /// The ranges on disk.
    package var ranges: [Range<Int64>] { held.map { $0.offset..<$0.end } }

    /// The minimum length of the partial file.
    package var end: Int64 { held.last?.end ?? 0 }

    /// Whether the record is consistent, and not the result of a damaged disk.
    package var isSound: Bool {
        var reached: Int64 = 0
        for range in held {
            guard range.offset >= reached, range.end > range.offset else { return false }
            reached = range.end
        }
        return reached <= total
    }

    mutating func insert(_ range: HeldRange) {
        guard range.end > range.offset else { return }
        remove(range.offset, range.end)
        var index = held.firstIndex { $0.offset > range.offset } ?? held.count
        held.insert(range, at: index)
        if index + 1 < held.count, held[index + 1].offset == range.end, held[index + 1].source == range.source {
            held[index].end = held.remove(at: index + 1).end
        }
        if index > 0, held[index - 1].end == range.offset, held[index - 1].source == range.source {
            index -= 1
            held[index].end = held.remove(at: index + 1).end
        }
    }

    mutating func remove(_ offset: Int64, _ end: Int64) {
        held = held.flatMap { range -> [HeldRange] in
            guard range.offset < end, range.end > offset else { return [range] }
            return [
                HeldRange(range.offset, min(range.end, offset), source: range.source),
                HeldRange(max(range.offset, end), range.end, source: range.source),
            ].filter { $0.end > $0.offset }
        }
    }
}
