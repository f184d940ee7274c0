package import Formats

/// Bytes of a content that are on disk, from `offset` up to `end`.
package struct HeldRange: Shape {
    package var offset: Int64 = 0
    package var end: Int64 = 0
    /// Who sent them, where it may still matter.
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

/// What is on disk of a content that comes in segments, stored beside its partial file.
package struct SegmentRecord: Shape {
    /// Length of the whole.
    package var total: Int64 = 0
    /// In ascending order, none touching another of the same source.
    package var held: [HeldRange] = []
    /// Sources that sent something else than the others.
    package var dropped: [Int] = []

    package init() {}

    package init(total: Int64) { self.total = total }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("total", &total)
        members.member("held", &held)
        members.sparse("dropped", &dropped, unless: [])
    }

    /// Bytes on disk.
    package var count: Int64 { held.reduce(0) { $0 + $1.end - $1.offset } }

    /// Bytes from the start up to the first gap.
    package var contiguous: Int64 {
        held.reduce(0) { reached, range in range.offset == reached ? range.end : reached }
    }

    /// Where the bytes on disk are.
    package var ranges: [Range<Int64>] { held.map { $0.offset..<$0.end } }

    /// How long the partial file is at least.
    package var end: Int64 { held.last?.end ?? 0 }

    /// Whether it can be what a machine left, and not what became of it on a broken disk.
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
