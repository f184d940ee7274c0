import Testing

@testable import Core

struct QuarantineTests {
    private let start = Timestamp(milliseconds: 1_800_000_000_000)

    @Test
    func `Two crashes in a row quarantine a task, and the third fails it`() {
        #expect((0...4).map(Quarantine.verdict) == [.goOn, .goOn, .runAlone, .fail, .fail])
        #expect(Quarantine.error.code == .unknown && Quarantine.error.underlying?.code == "crashed-service")
    }

    @Test
    func `One suspect runs at a time, and the other tasks then run for as long`() {
        var turns = SoloTurns()
        #expect(turns.mayBegin(at: start) && turns.next == nil && !turns.isTaken)
        turns.begin(TaskID(1), at: start)
        #expect(turns.isTaken && !turns.mayBegin(at: start) && turns.next == start + Quarantine.trial)
        turns.ended(TaskID(2), at: start + .seconds(1))
        #expect(turns.isTaken)
        turns.ended(TaskID(1), at: start + .seconds(4))
        #expect(!turns.isTaken && turns.next == start + .seconds(8))
        #expect(!turns.mayBegin(at: start + .seconds(7)) && turns.mayBegin(at: start + .seconds(8)))
    }

    @Test
    func `A trial ends after its time, and is not lengthened by a clock that is set back`() {
        var turns = SoloTurns()
        #expect(turns.endTrial(at: start) == nil)
        turns.begin(TaskID(1), at: start)
        #expect(turns.endTrial(at: start + Quarantine.trial - .milliseconds(1)) == nil)
        #expect(turns.endTrial(at: start + Quarantine.trial) == TaskID(1))
        #expect(!turns.isTaken && turns.mayBegin(at: start + Quarantine.trial * 2))
        turns.begin(TaskID(2), at: start)
        #expect(turns.endTrial(at: start - .seconds(3600)) == TaskID(2))
        #expect(turns.mayBegin(at: start - .seconds(3600)))
    }
}
