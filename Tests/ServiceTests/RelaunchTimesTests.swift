import Base
import Core
import Testing

@testable import Service
@testable import Transfers

@Suite struct RelaunchTimesTests {
    @Test func `Sessions are due in the order of their times, the earliest of each counting`() {
        let times = RelaunchTimes(clock: .system)
        func at(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }
        times.check(SessionID(1), at: at(30))
        times.check(SessionID(2), at: at(20))
        times.check(SessionID(1), at: at(10))
        times.check(SessionID(2), at: at(40))
        #expect(times.takeDue(at: at(9), limit: 10).due == [])
        #expect(times.takeDue(at: at(9), limit: 10).next == at(10))
        #expect(times.takeDue(at: at(25), limit: 1).due == [SessionID(1)])
        #expect(times.takeDue(at: at(25), limit: 1).due == [SessionID(2)])
        // Replaced times have no effect.
        let rest = times.takeDue(at: at(100), limit: 10)
        #expect(rest.due == [])
        #expect(rest.next == nil)
        times.check(SessionID(1), at: at(50))
        #expect(times.takeDue(at: at(100), limit: 10).due == [SessionID(1)])
    }

    @Test func `The cost of a step does not depend on the number of due sessions`() {
        let times = RelaunchTimes(clock: .system)
        for id in 1...100_000 { times.check(SessionID(Int64(id)), at: Timestamp(milliseconds: 5)) }
        var taken: Set<SessionID> = []
        while true {
            let due = times.takeDue(at: Timestamp(milliseconds: 5), limit: 64).due
            if due.isEmpty { break }
            #expect(due.count <= 64)
            taken.formUnion(due)
        }
        #expect(taken.count == 100_000)
    }
}
