/// Which bytes of a content are here, which connection fetches which of the rest, and what is known of the sources.
///
/// Who makes the connections numbers them. Each fetches consecutive bytes of one source; together they never fetch a byte
/// twice, but what was lost. The first bytes go out first, so that the content can be digested in order behind them.
package struct Segmentation: Hashable, Sendable {
    /// What one connection fetches.
    package struct Segment: Hashable, Sendable {
        package let source: Int
        package let offset: Int64
        package fileprivate(set) var end: Int64
        /// Up to where it is on disk.
        package fileprivate(set) var reached: Int64
    }

    package enum Standing: Hashable, Sendable {
        /// Nothing is known of it: it is asked over one connection.
        case untried
        case sound
        /// It failed, and is left alone for a while.
        case resting(until: Timestamp)
        /// It sent something else than the others, or cannot serve segments: it is not asked again.
        case dropped
    }

    /// What a connection is to fetch.
    package struct Assignment: Hashable, Sendable {
        package let bytes: Range<Int64>
        /// The connection that had these bytes, and ends where they begin.
        package var shortened: UInt64?
    }

    /// Fewer bytes are not worth a connection of their own, and where segments touch.
    package static let grain: Int64 = 1 << 20
    /// As much as a connection is given at once, so that bytes come nearly in order.
    private static let longest: Int64 = 16 << 20
    private static let firstRest = Duration.seconds(1)
    private static let longestRest = Duration.seconds(60)
    /// How often pieces that more than one source sent may be wrong before all of them are dropped.
    private static let toleratedMixtures = 3

    /// Connections at a time.
    package let limit: Int
    private let pieceLength: Int64?
    /// Without what connections under way have brought to disk.
    package private(set) var onDisk: SegmentRecord
    package private(set) var segments: [UInt64: Segment] = [:]
    package private(set) var standings: [Standing]
    private var failures: [Int: Int] = [:]
    private var mixtures = 0

    /// - Parameters:
    ///   - sources: The sources that may be asked, among `count`.
    ///   - pieceLength: Where the pieces have digests.
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

    /// What is on disk, as it is stored.
    package var record: SegmentRecord {
        var record = onDisk
        for segment in segments.values { record.insert(held(segment)) }
        return record
    }

    private func held(_ segment: Segment) -> HeldRange {
        HeldRange(segment.offset, segment.reached, source: pieceLength == nil ? nil : segment.source)
    }

    // MARK: Handing out

    /// Takes a connection that fetches the whole from `offset` on, what is before it being on disk, and gives it its part.
    package mutating func adopt(_ connection: UInt64, of source: Int, at offset: Int64) -> Range<Int64> {
        onDisk.insert(HeldRange(0, offset, source: pieceLength == nil ? nil : source))
        let end = min(total, boundary(after: offset.addingSaturated(share(of: total - offset) - 1), every: unit))
        segments[connection] = Segment(source: source, offset: offset, end: end, reached: offset)
        return offset..<end
    }

    /// What a new connection to a source fetches: the first bytes that are neither stored nor in flight. Where there are none, the
    /// second half of what is left to the connection with the most.
    ///
    /// - Parameter positions: How far connections are, on disk or not.
    /// - Returns: Nil where nothing is worth it.
    package mutating func assign(
        _ connection: UInt64, to source: Int, positions: [UInt64: Int64] = [:]
    ) -> Assignment? {
        guard segments.count < limit, standings.indices.contains(source), standings[source] != .dropped else {
            return nil
        }
        let assignment: Assignment
        let gaps = gaps
        if let gap = gaps.first {
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

    /// How much of `rest` one connection gets: shares shrink towards the end, so that all end together.
    private func share(of rest: Int64) -> Int64 {
        limit == 1 ? max(1, rest) : max(Self.grain, min(Self.longest, rest / Int64(2 * limit)))
    }

    private var unit: Int64 { pieceLength ?? Self.grain }

    private func boundary(after offset: Int64, every unit: Int64) -> Int64 {
        let (end, overflow) = (offset / unit + 1).multipliedReportingOverflow(by: unit)
        return overflow ? .max : end
    }

    // MARK: What comes

    /// Notes how far a connection's bytes are on disk.
    package mutating func reach(_ connection: UInt64, _ offset: Int64) {
        guard let segment = segments[connection] else { return }
        segments[connection]?.reached = max(segment.reached, min(offset, segment.end))
    }

    /// Forgets a connection: what it has not brought to disk is for others, and all of it where its source is dropped.
    ///
    /// - Returns: Up to where what it brought is of use.
    @discardableResult
    package mutating func end(_ connection: UInt64) -> Int64? {
        guard let segment = segments.removeValue(forKey: connection) else { return nil }
        guard standings[segment.source] != .dropped else { return segment.offset }
        onDisk.insert(held(segment))
        return segment.reached
    }

    /// The pieces up to here are what they should be.
    package mutating func verify(upTo offset: Int64) {
        guard let pieceLength else { return }
        let offset = offset == total ? total : offset / pieceLength * pieceLength
        let record = onDisk
        for range in record.held where range.source != nil && range.offset < offset {
            onDisk.insert(HeldRange(range.offset, min(offset, range.end)))
        }
    }

    /// Takes back a piece that is not what it should be, and drops the source that sent it.
    ///
    /// Of several sources one cannot tell which it was: the piece is fetched once more, some times.
    ///
    /// - Returns: Connections to sources that are dropped.
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

    /// Connections that each source has.
    private var busy: [Int: Int] { segments.values.reduce(into: [:]) { $0[$1.source, default: 0] += 1 } }

    /// Whether another source could do with the place of a connection of this one that has ended.
    package func leavesPlace(_ source: Int) -> Bool {
        let busy = busy
        return standings.indices.contains { standings[$0] == .sound && busy[$0] ?? 0 < busy[source] ?? 0 }
    }

    /// Sources that may get one more connection now, the least busy first.
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

    /// A source answered as it should.
    package mutating func trust(_ source: Int) {
        guard standings[source] != .dropped else { return }
        standings[source] = .sound
    }

    /// Bytes came from a source: its next failure is its first.
    package mutating func praise(_ source: Int) { failures[source] = nil }

    /// Leaves a source alone for a while, ever longer.
    package mutating func rest(_ source: Int, atLeast wait: Duration = .zero, at now: Timestamp) {
        guard standings[source] != .dropped else { return }
        let count = failures[source, default: 0]
        failures[source] = count + 1
        let pause = min(Self.longestRest, Self.firstRest * (1 << min(count, 6)))
        standings[source] = .resting(until: now + max(wait, pause))
    }

    /// Lets the next attempt ask the resting sources again.
    package mutating func endRests() {
        for (source, standing) in standings.enumerated() {
            if case .resting = standing { standings[source] = .untried }
        }
    }

    /// Asks a source no more.
    ///
    /// - Returns: Its connections.
    @discardableResult
    package mutating func drop(_ source: Int) -> [UInt64] {
        standings[source] = .dropped
        if !onDisk.dropped.contains(source) { onDisk.dropped.append(source) }
        return segments.filter { $0.value.source == source }.keys.sorted()
    }

    /// Whether no source is left that could be asked, now or later.
    package var isForsaken: Bool { standings.allSatisfy { $0 == .dropped } }
}

extension Int64 {
    fileprivate func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
