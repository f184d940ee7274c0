import Testing

@testable import Core

@Suite struct CleaningPaceTests {
    @Test func `Cleaning uses a quarter of the writer's time beside other writes, and all of it otherwise`() {
        var share = WriterShare()
        let rests = [(1, 0), (2, 10), (5, 20), (6, 30), (7, 1019), (8, 1020)].map { writes, now in
            share.rest(after: .milliseconds(8), writes: writes, at: now)
        }
        let rest = Duration.milliseconds(24)
        // Its own writes only; then other writes, for a second.
        #expect(rests == [.zero, .zero, rest, rest, rest, .zero])
    }

    @Test func `Writes of the janitor itself do not count as other writes`() {
        var share = WriterShare()
        _ = share.rest(after: .zero, writes: 1, at: 0)
        share.leaveOut(2)
        let rests = [4, 6].map { share.rest(after: .milliseconds(8), writes: $0, at: 0) }
        #expect(rests == [.zero, .milliseconds(24)])
    }

    @Test func `Ends of pauses are ordered and rounded to tenths of a second`() {
        var ends = PauseEnds()
        for answer in 0..<10_000 { ends.insert(Timestamp(milliseconds: 60_000 + Int64(answer % 1000))) }
        ends.insert(Timestamp(milliseconds: 5000))
        #expect(ends.count == 12)
        #expect(ends.next == Timestamp(milliseconds: 5000))
        let hasCome = [4999, 5000].map { ends.removePast(at: Timestamp(milliseconds: $0)) }
        #expect(hasCome == [false, true])
        #expect(ends.next == Timestamp(milliseconds: 60_000))
        let isOver = ends.removePast(at: Timestamp(milliseconds: 61_000))
        #expect(isOver)
        #expect(ends.next == nil)
    }
}
