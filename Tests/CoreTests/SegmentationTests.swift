import Formats
import TestSupport
import Testing

@testable import Core

private let mebibyte: Int64 = 1 << 20

private func plan(
    _ total: Int64, sources: Int = 1, limit: Int = 4, pieces: Int64? = nil, held: [HeldRange] = []
) -> Segmentation {
    var record = SegmentRecord(total: total)
    record.held = held
    return Segmentation(record, sources: Set(0..<sources), of: sources, limit: limit, pieceLength: pieces)
}

struct SegmentationTests {
    @Test
    func `The bytes are assigned in order, in shares that shrink towards the end`() {
        var plan = plan(64 * mebibyte)
        let first = plan.adopt(1, of: 0, at: 0)
        #expect(first == 0..<(8 * mebibyte))
        let next = [2, 3, 4].map { plan.assign($0, to: 0)?.bytes }
        #expect(next[0] == (8 * mebibyte)..<(15 * mebibyte))
        #expect(next[1]?.lowerBound == 15 * mebibyte)
        let counts: [Int] = next.compactMap { $0?.count }
        #expect(counts == counts.sorted(by: >))
        #expect(plan.assign(5, to: 0) == nil, "no more than the limit")
    }

    @Test
    func `If no bytes are left, the connection with the most releases its second half`() {
        var plan = plan(16 * mebibyte, limit: 2)
        _ = plan.adopt(1, of: 0, at: 0)
        _ = plan.assign(2, to: 0)
        plan.reach(1, 4 * mebibyte)
        plan.end(1)
        while let assignment = plan.assign(3, to: 0), assignment.shortened == nil {
            plan.reach(3, assignment.bytes.upperBound)
            plan.end(3)
        }
        let stolen = plan.segments[3]
        #expect(plan.segments[2]?.end == stolen?.offset)
        #expect(plan.segments[2].map { $0.end - $0.offset } ?? 0 > 0)
    }

    @Test
    func `A connection that is nearly done keeps its range`() {
        var plan = plan(4 * mebibyte, limit: 2)
        _ = plan.adopt(1, of: 0, at: 0)
        plan.reach(1, mebibyte)
        plan.end(1)
        let rest = plan.assign(2, to: 0)
        #expect(rest?.bytes == mebibyte..<(2 * mebibyte))
        _ = plan.assign(3, to: 0)
        plan.end(2)
        #expect(plan.assign(4, to: 0, positions: [3: 3 * mebibyte])?.bytes.lowerBound == mebibyte)
        #expect(plan.assign(5, to: 0) == nil)
    }

    @Test
    func `The bytes that a reader waits for are fetched next, in the order of the readers`() {
        var plan = plan(64 * mebibyte)
        _ = plan.adopt(1, of: 0, at: 0)
        #expect(plan.want(60 * mebibyte + 5).isEmpty, "another connection may begin at once")
        #expect(plan.want(40 * mebibyte).isEmpty)
        #expect(plan.want(60 * mebibyte + 5).isEmpty)
        #expect(plan.assign(2, to: 0)?.bytes.lowerBound == 60 * mebibyte)
        #expect(plan.assign(3, to: 0)?.bytes.lowerBound == 40 * mebibyte)
        #expect(plan.assign(4, to: 0)?.bytes.lowerBound == 8 * mebibyte, "then the first bytes again")
    }

    @Test
    func `If no connection is free, the one with the longest segment is shortened`() {
        var plan = plan(64 * mebibyte, limit: 2)
        _ = plan.adopt(1, of: 0, at: 0)
        let second = plan.assign(2, to: 0)?.bytes
        #expect(second == 16 * mebibyte..<28 * mebibyte)
        let shortened = plan.want(60 * mebibyte, positions: [1: 2 * mebibyte + 1, 2: 17 * mebibyte])
        #expect(shortened.map(\.connection) == [1] && shortened.map(\.end) == [3 * mebibyte])
        #expect(plan.want(60 * mebibyte, positions: [:]).isEmpty, "once")
        plan.reach(1, 3 * mebibyte)
        plan.end(1)
        #expect(plan.assign(3, to: 0)?.bytes.lowerBound == 60 * mebibyte)
    }

    @Test
    func `A connection leaves the bytes that a reader waits for to another, unless it is about to fetch them`() {
        var plan = plan(64 * mebibyte)
        _ = plan.adopt(1, of: 0, at: 0)
        #expect(plan.want(mebibyte / 2).isEmpty)
        let shortened = plan.want(6 * mebibyte + 7, positions: [1: 100])
        #expect(shortened.map(\.connection) == [1] && shortened.map(\.end) == [6 * mebibyte])
        #expect(plan.assign(2, to: 0)?.bytes == 6 * mebibyte..<14 * mebibyte)
        plan.reach(1, 6 * mebibyte)
        #expect(plan.want(1000).isEmpty, "it has arrived")
        #expect(plan.want(64 * mebibyte).isEmpty && plan.want(-1).isEmpty, "no part of the content")
        #expect(plan.assign(3, to: 0)?.bytes.lowerBound == 14 * mebibyte)
    }

    @Test
    func `The bytes that a reader waits for begin at a piece, and requests beyond a number are dropped`() {
        var plan = plan(640 * mebibyte, limit: 200, pieces: 3 * mebibyte)
        for offset in 1...70 { #expect(plan.want(Int64(offset) * 9 * mebibyte).isEmpty) }
        #expect(plan.assign(1, to: 0)?.bytes.lowerBound == 7 * 9 * mebibyte)
        _ = plan.want(500 * mebibyte)
        for connection in 2...64 { _ = plan.assign(UInt64(connection), to: 0) }
        #expect(plan.assign(65, to: 0)?.bytes.lowerBound == 498 * mebibyte)
    }

    @Test
    func `The durable bytes of an ended connection stay, and the rest is reassigned`() {
        var plan = plan(64 * mebibyte)
        let bytes = plan.adopt(1, of: 0, at: 0)
        plan.reach(1, 1000)
        plan.end(1)
        #expect(plan.record.held == [HeldRange(0, 1000)])
        #expect(plan.assign(2, to: 0)?.bytes.lowerBound == 1000)
        #expect(plan.segments[2]?.end ?? 0 <= bytes.upperBound + mebibyte)
    }

    @Test
    func `Each piece comes from one source if possible`() {
        var plan = plan(64 * mebibyte, sources: 2, pieces: 3 * mebibyte)
        var ends: [Int64] = [plan.adopt(1, of: 0, at: 0).upperBound]
        for connection in 2...4 {
            guard let bytes = plan.assign(UInt64(connection), to: 1)?.bytes else { break }
            ends.append(bytes.upperBound)
        }
        #expect(ends.allSatisfy { $0 % (3 * mebibyte) == 0 || $0 == 64 * mebibyte })
    }

    @Test
    func `A source of a wrong piece is dropped, and the piece is fetched elsewhere`() {
        var plan = plan(4 * mebibyte, sources: 2, limit: 2, pieces: mebibyte)
        plan.trust(0)
        plan.trust(1)
        let first = plan.adopt(1, of: 0, at: 0)
        _ = plan.assign(2, to: 1)
        plan.reach(1, first.upperBound)
        plan.end(1)
        let next = plan.assign(3, to: 0)
        #expect(plan.reject(0..<mebibyte) == [3])
        plan.end(3)
        #expect(plan.standings[0] == .dropped)
        #expect(plan.record.dropped == [0])
        #expect(plan.sources(at: now) == [1])
        #expect(plan.assign(4, to: 1)?.bytes.lowerBound == 0)
        #expect(next != nil)
    }

    @Test
    func `A wrong piece of two sources drops neither, unless it is wrong repeatedly`() {
        var plan = plan(2 * mebibyte, sources: 2, limit: 1, pieces: 2 * mebibyte)
        for round in 0...3 {
            _ = plan.assign(UInt64(2 * round), to: 0)
            plan.reach(UInt64(2 * round), mebibyte)
            plan.end(UInt64(2 * round))
            _ = plan.assign(UInt64(2 * round + 1), to: 1)
            plan.reach(UInt64(2 * round + 1), 2 * mebibyte)
            plan.end(UInt64(2 * round + 1))
            #expect(plan.isComplete)
            #expect(!plan.isForsaken)
            #expect(plan.reject(0..<(2 * mebibyte)).isEmpty)
        }
        #expect(plan.isForsaken)
    }

    @Test
    func `An untried or rested source gets a small range at first`() {
        var plan = plan(64 * mebibyte, sources: 2)
        #expect(plan.sources(at: now) == [0, 1])
        _ = plan.assign(1, to: 0)
        #expect(plan.sources(at: now) == [1])
        plan.trust(0)
        #expect(plan.sources(at: now) == [1, 0])
        plan.rest(1, at: now)
        #expect(plan.sources(at: now) == [0])
        #expect(plan.sources(at: .after(1)) == [1, 0])
        plan.rest(1, at: now)
        #expect(plan.sources(at: .after(1.5)) == [0], "the second rest is longer")
    }

    @Test
    func `The slot of an ended connection goes to a source that has fewer`() {
        var plan = plan(640 * mebibyte, sources: 3, limit: 5)
        for connection in 1...4 { _ = plan.assign(UInt64(connection), to: 0) }
        _ = plan.assign(5, to: 1)
        plan.trust(0)
        plan.end(1)
        #expect(!plan.leavesPlace(0), "nothing is known of the others yet")
        plan.trust(1)
        #expect(plan.leavesPlace(0))
        #expect(!plan.leavesPlace(1))
        _ = plan.assign(6, to: 1)
        plan.end(2)
        #expect(!plan.leavesPlace(0))
        plan.drop(1)
        #expect(!plan.leavesPlace(0))
    }

    @Test
    func `The end of a connection returns its useful ranges`() {
        var plan = plan(640 * mebibyte, sources: 2, pieces: mebibyte)
        for connection in 1...3 { _ = plan.assign(UInt64(connection), to: connection / 3) }
        let third = plan.segments[3]?.offset ?? 0
        plan.reach(1, 1000)
        plan.reach(3, third + 1000)
        #expect(plan.end(1) == 1000)
        plan.drop(1)
        #expect(plan.end(3) == third)
        #expect(plan.end(3) == nil)
    }

    @Test
    func `The record has the durable bytes of all connections`() {
        var plan = plan(64 * mebibyte)
        _ = plan.adopt(1, of: 0, at: 500)
        _ = plan.assign(2, to: 0)
        plan.reach(1, 700)
        plan.reach(2, 10 * mebibyte)
        let record = plan.record
        #expect(record.held == [HeldRange(0, 700), HeldRange(9 * mebibyte, 10 * mebibyte)])
        #expect(record.contiguous == 700)
        #expect(record.count == 700 + mebibyte)
        #expect(record.isSound)
        let again = Segmentation(record, sources: [0], of: 1, limit: 4)
        #expect(again.record == record)
    }

    @Test
    func `An inconsistent record is rejected`() {
        func isSound(_ held: [HeldRange]) -> Bool {
            var record = SegmentRecord(total: 100)
            record.held = held
            return record.isSound
        }
        #expect(isSound([HeldRange(0, 10), HeldRange(20, 100)]))
        #expect(!isSound([HeldRange(0, 10), HeldRange(5, 20)]))
        #expect(!isSound([HeldRange(0, 101)]))
        #expect(!isSound([HeldRange(10, 10)]))
        #expect(!isSound([HeldRange(-5, 10)]))
    }

    /// Walks at random through the events of connections, with a model of the file: the last writer of each block.
    @Test(arguments: 0..<400)
    func `In a random walk every byte arrives, none from a dropped source`(seed: UInt64) throws {
        var random = SeededGenerator(state: seed)
        let block: Int64 = 64 * 1024
        let total = Int64.random(in: 2 * mebibyte...40 * mebibyte, using: &random) / block * block
        let count = Int.random(in: 1...4, using: &random)
        let lengths = [nil, nil, nil, mebibyte, 3 * mebibyte, 16 * mebibyte]
        let pieces = lengths[Int.random(in: 0..<6, using: &random)]
        let liar = pieces != nil && count > 1 ? Int.random(in: 0..<count, using: &random) : -1
        let limit = Int.random(in: 1...16, using: &random)
        var plan = plan(total, sources: count, limit: limit, pieces: pieces)
        var writers = [Int?](repeating: nil, count: Int(total / block))
        var positions: [UInt64: Int64] = [:]
        var number: UInt64 = 0
        var moment: Double = 0
        var steps = 0
        while !plan.isComplete || pieces != nil && writers.contains(liar) {
            steps += 1
            guard steps < 100_000 else { throw Endless() }
            if plan.isForsaken {
                #expect(liar >= 0, "who does not lie is not dropped")
                return
            }
            moment += 0.1
            if let source = plan.sources(at: .after(moment)).first, Int.random(in: 0..<3, using: &random) > 0 {
                number += 1
                if let assignment = plan.assign(number, to: source, positions: positions) {
                    positions[number] = assignment.bytes.lowerBound
                    #expect(!assignment.bytes.isEmpty)
                    if Int.random(in: 0..<10, using: &random) > 0 { plan.trust(source) }
                }
            }
            let busy = plan.segments.sorted { $0.key < $1.key }
            let ranges = busy.map(\.value).sorted { $0.offset < $1.offset }
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.end <= $1.offset }, "two fetch the same")
            #expect(ranges.count <= plan.limit)
            guard let (connection, segment) = busy.randomElement(using: &random) else {
                if pieces != nil, plan.isComplete, let piece = wrongPiece(writers, liar, pieces, total, block) {
                    for other in plan.reject(piece) { plan.end(other) }
                }
                continue
            }
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                plan.rest(segment.source, at: .after(moment))
                plan.end(connection)
                positions[connection] = nil
            case 1:
                // A kill: only the stored record remains.
                let record = plan.record
                #expect(record.isSound)
                plan = Segmentation(record, sources: Set(0..<count), of: count, limit: plan.limit, pieceLength: pieces)
                positions = [:]
            default:
                let start = positions[connection] ?? segment.offset
                let end = min(segment.end, start + block * Int64.random(in: 1...32, using: &random))
                for index in Int(segment.offset / block)..<Int((end + block - 1) / block) {
                    if writers[index] == nil || Int64(index) * block >= start { writers[index] = segment.source }
                }
                positions[connection] = end
                plan.reach(connection, end)
                plan.praise(segment.source)
                if end >= segment.end {
                    plan.end(connection)
                    positions[connection] = nil
                }
            }
        }
        #expect(plan.record.count == total)
        #expect(writers.allSatisfy { $0 != nil })
    }

    private struct Endless: Error {}

    private func wrongPiece(
        _ writers: [Int?], _ liar: Int, _ length: Int64?, _ total: Int64, _ block: Int64
    ) -> Range<Int64>? {
        guard let length, let index = writers.firstIndex(of: liar) else { return nil }
        let start = Int64(index) * block / length * length
        return start..<min(total, start + length)
    }
}

struct SegmentVerdictTests {
    private let point = ResumePoint {
        $0.entityTag = "\"a\""
        $0.totalLength = 100
    }

    private func verdict(_ status: Int, _ fields: [(String, String)]) -> ResumeVerdict {
        ResumeVerdict.judge(head: head(status, fields), segment: 10..<20, of: 100, point)
    }

    @Test
    func `Only the requested bytes are accepted`() {
        #expect(verdict(206, [("Content-Range", "bytes 10-19/100"), ("ETag", "\"a\"")]) == .append(at: 10))
        #expect(
            verdict(206, [("Content-Range", "bytes 10-19/100"), ("Content-Length", "9")])
                == .askAgainFromZero(.lengthMismatch))
        #expect(verdict(206, [("Content-Range", "bytes 0-19/100")]) == .askAgainFromZero(.contentRangeMismatch))
        #expect(verdict(206, [("Content-Range", "bytes 10-18/100")]) == .askAgainFromZero(.contentRangeMismatch))
        #expect(verdict(206, [("Content-Range", "bytes 10-19/101")]) == .askAgainFromZero(.totalChanged))
        #expect(
            verdict(206, [("Content-Range", "bytes 10-19/100"), ("ETag", "\"b\"")])
                == .askAgainFromZero(.validatorChanged))
        #expect(verdict(206, []) == .askAgainFromZero(.contentRangeMismatch))
    }

    @Test
    func `A 200 to a range request is a change, an error status is not`() {
        #expect(verdict(200, [("ETag", "\"a\"")]) == .restartWithThisBody)
        #expect(verdict(412, []) == .askAgainFromZero(.preconditionFailed))
        #expect(verdict(416, []) == .askAgainFromZero(.rangeNotSatisfiable))
        #expect(verdict(503, []) == .notADownload(status: 503))
    }

    @Test
    func `The number of pieces must fit the length of the content`() {
        let pieces = PieceDigests(length: 10, algorithm: .sha256, values: ["", "", ""])
        #expect([20, 21, 30, 31, 0].map { pieces.fits($0) } == [false, true, true, false, false])
    }

    @Test
    func `The number of automatic segments grows with the content`() {
        #expect(SegmentCount.automatic.connections(for: 1) == 1)
        #expect(SegmentCount.automatic.connections(for: 48 << 20) == 3)
        #expect(SegmentCount.automatic.connections(for: 1 << 40) == 8)
        #expect(SegmentCount.count(5).connections(for: 1) == 5)
    }
}
