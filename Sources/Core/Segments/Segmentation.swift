/// The state of a segmented download: ranges on disk, the segment of each connection, standings of sources.
///
/// The caller numbers its connections. Each fetches consecutive bytes of one source. No byte is fetched twice unless it
/// was lost. The first bytes are assigned first, so that the content can be digested in order.
package struct Segmentation: Hashable, Sendable {
    /// The byte range that one connection fetches.
    package struct Segment: Hashable, Sendable {
        package let source: Int
        package let offset: Int64
        package fileprivate(set) var end: Int64
        /// The durable offset of the segment.
        package fileprivate(set) var reached: Int64
    }

    package enum Standing: Hashable, Sendable {
        /// Not tried yet: it gets only one connection.
        case untried
        case sound
        /// It failed, and is not used until this time.
        case resting(until: Timestamp)
        /// It sent other bytes than the rest, or cannot serve segments: it is never used again.
        case dropped
    }

    /// The bytes that a connection is to fetch.
    package struct Assignment: Hashable, Sendable {
        package let bytes: Range<Int64>
        /// The connection that had these bytes, and now ends before them.
        package var shortened: UInt64?
    }

    /// The minimum length of a segment, and the alignment of segment boundaries.
    package static let grain: Int64 = 1 << 20
    /// The maximum length of one assignment, so that bytes arrive nearly in order.
    private static let longest: Int64 = 16 << 20
    private static let firstRest = Duration.seconds(1)
    private static let longestRest = Duration.seconds(60)
    /// The number of wrong pieces from several sources before all of these sources are dropped.
    private static let toleratedMixtures = 3
    /// The maximum number of offsets that are fetched first.
    private static let mostWanted = 64

    /// The maximum number of concurrent connections.
    package let limit: Int
    private let pieceLength: Int64?
    /// The ranges on disk, without those of current connections.
    package private(set) var onDisk: SegmentRecord
    package private(set) var segments: [UInt64: Segment] = [:]
    package private(set) var standings: [Standing]
    private var failures: [Int: Int] = [:]
    private var mixtures = 0
    /// Offsets that readers wait for, and that the next connections fetch first. The oldest comes first.
    private var wanted: [Int64] = []

    /// - Parameters:
    ///   - sources: The usable sources, among `count`.
    ///   - pieceLength: The length of pieces with digests, if any.
    package init(
        _ record: SegmentRecord, sources: Set<Int>, of count: Int, limit: Int, pieceLength: Int64? = nil
    ) {
        onDisk = record
        self.limit = limit
        self.pieceLength = pieceLength
        standings = (0..<count).map { sources.contains($0) && !record.dropped.contains($0) ? .untried : .dropped }
    }

    package var total: Int64 { onDisk.total }

    package var isComplete: Bool { segments.isEmpty && onDisk.contiguous == total }

    /// The ranges on disk, as stored.
    package var record: SegmentRecord {
        var record = onDisk
        for segment in segments.values { record.insert(held(segment)) }
        return record
    }

    private func held(_ segment: Segment) -> HeldRange {
        HeldRange(segment.offset, segment.reached, source: pieceLength == nil ? nil : segment.source)
    }

    // MARK: Assigning

    /// Adds a connection that fetches everything from `offset`, with the bytes before it on disk, and returns its part.
    package mutating func adopt(_ connection: UInt64, of source: Int, at offset: Int64) -> Range<Int64> {
        onDisk.insert(HeldRange(0, offset, source: pieceLength == nil ? nil : source))
        let end = min(total, boundary(after: offset.addingSaturated(share(of: total - offset) - 1), every: unit))
        segments[connection] = Segment(source: source, offset: offset, end: end, reached: offset)
        return offset..<end
    }

    /// The assignment of a new connection to a source: bytes that a reader waits for, otherwise the first bytes neither
    /// stored nor in flight, otherwise the second half of the longest remaining segment.
    ///
    /// - Parameter positions: The positions of connections, on disk or not.
    /// - Returns: `nil` if no assignment is worthwhile.
    package mutating func assign(
        _ connection: UInt64, to source: Int, positions: [UInt64: Int64] = [:]
    ) -> Assignment? {
        guard segments.count < limit, standings.indices.contains(source), standings[source] != .dropped else {
            return nil
        }
        let assignment: Assignment
        let gaps = gaps
        if let gap = takeWanted(gaps) ?? gaps.first {
            let rest = gaps.reduce(0) { $0 + Int64($1.count) }
            let end = boundary(after: gap.lowerBound.addingSaturated(share(of: rest) - 1), every: unit)
            assignment = Assignment(bytes: gap.lowerBound..<min(gap.upperBound, end))
        } else {
            guard let stolen = takeFromSlowest(positions) else { return nil }
            assignment = stolen
        }
        segments[connection] = Segment(
            source: source, offset: assignment.bytes.lowerBound, end: assignment.bytes.upperBound,
            reached: assignment.bytes.lowerBound)
        return assignment
    }

    /// The rest of a gap from an offset that a reader waits for; `nil` if no gap has such an offset.
    private mutating func takeWanted(_ gaps: [Range<Int64>]) -> Range<Int64>? {
        while !wanted.isEmpty {
            let offset = wanted.removeFirst()
            guard let gap = gaps.first(where: { $0.contains(offset) }) else { continue }
            return max(gap.lowerBound, offset / unit * unit)..<gap.upperBound
        }
        return nil
    }

    /// Makes an offset the next one to be fetched, because a reader waits for it.
    ///
    /// - Returns: Connections that end early for that, each with its new end.
    package mutating func want(_ offset: Int64, positions: [UInt64: Int64] = [:]) -> [(connection: UInt64, end: Int64)]
    {
        guard (0..<total).contains(offset), !wanted.contains(offset),
            !onDisk.held.contains(where: { ($0.offset..<$0.end).contains(offset) })
        else { return [] }
        var shortened: [(connection: UInt64, end: Int64)] = []
        func end(of number: UInt64, _ segment: Segment) -> Int64 {
            boundary(after: max(segment.reached, positions[number] ?? 0), every: unit)
        }
        func shorten(_ number: UInt64, to end: Int64) {
            segments[number]?.end = end
            shortened.append((number, end))
        }
        if let (number, segment) = segments.first(where: { ($0.value.offset..<$0.value.end).contains(offset) }) {
            let end = max(end(of: number, segment), offset / unit * unit)
            // The connection itself is about to fetch it.
            guard offset >= end else { return [] }
            shorten(number, to: end)
        }
        if wanted.count == Self.mostWanted { wanted.removeFirst() }
        wanted.append(offset)
        guard segments.count >= limit else { return shortened }
        let rests = segments.map { (number: $0, end: end(of: $0, $1), rest: $1.end - end(of: $0, $1)) }
        if let longest = rests.max(by: { ($0.rest, $1.number) < ($1.rest, $0.number) }), longest.rest > 0 {
            shortened.removeAll { $0.connection == longest.number }
            shorten(longest.number, to: longest.end)
        }
        return shortened
    }

    private mutating func takeFromSlowest(_ positions: [UInt64: Int64]) -> Assignment? {
        let rests = segments.map { number, segment in
            (number, segment, position: min(segment.end, max(segment.reached, positions[number] ?? 0)))
        }
        let slowest = rests.max { ($0.1.end - $0.position, $1.0) < ($1.1.end - $1.position, $0.0) }
        guard let (number, segment, position) = slowest, segment.end - position >= 2 * Self.grain else { return nil }
        let middle = position + (segment.end - position) / 2
        let cuts = [unit, Self.grain].map { boundary(after: middle - 1, every: $0) }
        guard let cut = cuts.first(where: { $0 < segment.end }) else { return nil }
        segments[number]?.end = cut
        return Assignment(bytes: cut..<segment.end, shortened: number)
    }

    /// Bytes that are neither stored nor in flight.
    private var gaps: [Range<Int64>] {
        let taken = onDisk.held.map { ($0.offset, $0.end) } + segments.values.map { ($0.offset, $0.end) }
        var reached: Int64 = 0
        var gaps: [Range<Int64>] = []
        for (offset, end) in taken.sorted(by: { $0 < $1 }) {
            if offset > reached { gaps.append(reached..<offset) }
            reached = max(reached, end)
        }
        if reached < total { gaps.append(reached..<total) }
        return gaps
    }

    /// One connection's share of `rest`: shares shrink towards the end, so that all connections end together.
    private func share(of rest: Int64) -> Int64 {
        limit == 1 ? max(1, rest) : max(Self.grain, min(Self.longest, rest / Int64(2 * limit)))
    }

    private var unit: Int64 { pieceLength ?? Self.grain }

    private func boundary(after offset: Int64, every unit: Int64) -> Int64 {
        let (end, overflow) = (offset / unit + 1).multipliedReportingOverflow(by: unit)
        return overflow ? .max : end
    }

    // MARK: Progress

    /// Sets the durable offset of a connection.
    package mutating func reach(_ connection: UInt64, _ offset: Int64) {
        guard let segment = segments[connection] else { return }
        segments[connection]?.reached = max(segment.reached, min(offset, segment.end))
    }

    /// Removes a connection: its bytes that are not on disk become free, and all of its bytes if its source is dropped.
    ///
    /// - Returns: The end of the usable bytes that it fetched.
    @discardableResult
    package mutating func end(_ connection: UInt64) -> Int64? {
        guard let segment = segments.removeValue(forKey: connection) else { return nil }
        guard standings[segment.source] != .dropped else { return segment.offset }
        onDisk.insert(held(segment))
        return segment.reached
    }

    /// Records that the pieces up to this offset are verified.
    package mutating func verify(upTo offset: Int64) {
        guard let pieceLength else { return }
        let offset = offset == total ? total : offset / pieceLength * pieceLength
        let record = onDisk
        for range in record.held where range.source != nil && range.offset < offset {
            onDisk.insert(HeldRange(range.offset, min(offset, range.end)))
        }
    }

    /// Frees a wrong piece, and drops the source that sent it.
    ///
    /// If several sources sent it, the culprit is unknown: the piece is fetched again, some times.
    ///
    /// - Returns: Connections to dropped sources.
    package mutating func reject(_ piece: Range<Int64>) -> [UInt64] {
        let senders = Set(
            onDisk.held.lazy.filter { $0.offset < piece.upperBound && $0.end > piece.lowerBound }.map(\.source))
        onDisk.remove(piece.lowerBound, piece.upperBound)
        if senders.count != 1 || senders.contains(nil) { mixtures += 1 }
        let isHopeless = mixtures > Self.toleratedMixtures
        let liars =
            isHopeless ? Set(standings.indices) : senders.count == 1 ? Set(senders.compactMap { $0 }) : []
        return liars.sorted().flatMap { drop($0) }
    }

    // MARK: Sources

    /// The number of connections of each source.
    private var busy: [Int: Int] { segments.values.reduce(into: [:]) { $0[$1.source, default: 0] += 1 } }

    /// Whether another source could use the place of an ended connection of this source.
    package func leavesPlace(_ source: Int) -> Bool {
        let busy = busy
        return standings.indices.contains { standings[$0] == .sound && busy[$0] ?? 0 < busy[source] ?? 0 }
    }

    /// Sources that may get another connection now, the least busy first.
    package func sources(at now: Timestamp) -> [Int] {
        guard segments.count < limit else { return [] }
        let busy = busy
        return standings.indices.filter { source in
            switch standings[source] {
            case .untried: busy[source] == nil
            case .sound: true
            case .resting(let end): end <= now && busy[source] == nil
            case .dropped: false
            }
        }.sorted { (busy[$0] ?? 0, $0) < (busy[$1] ?? 0, $1) }
    }

    /// Records a valid response of a source.
    package mutating func trust(_ source: Int) {
        guard standings[source] != .dropped else { return }
        standings[source] = .sound
    }

    /// Records bytes from a source: its next failure counts as its first.
    package mutating func praise(_ source: Int) { failures[source] = nil }

    /// Pauses a source, for longer with each failure.
    package mutating func rest(_ source: Int, atLeast wait: Duration = .zero, at now: Timestamp) {
        guard standings[source] != .dropped else { return }
        let count = failures[source, default: 0]
        failures[source] = count + 1
        let pause = min(Self.longestRest, Self.firstRest * (1 << min(count, 6)))
        standings[source] = .resting(until: now + max(wait, pause))
    }

    /// Ends the pauses, so that the next attempt uses these sources again.
    package mutating func endRests() {
        for (source, standing) in standings.enumerated() {
            if case .resting = standing { standings[source] = .untried }
        }
    }

    /// Drops a source for good.
    ///
    /// - Returns: Its connections.
    @discardableResult
    package mutating func drop(_ source: Int) -> [UInt64] {
        standings[source] = .dropped
        if !onDisk.dropped.contains(source) { onDisk.dropped.append(source) }
        return segments.filter { $0.value.source == source }.keys.sorted()
    }

    /// Whether no source is left that could be used, now or later.
    package var isForsaken: Bool { standings.allSatisfy { $0 == .dropped } }
}

extension Int64 {
    /// The sum, or the nearest number if it does not fit.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
