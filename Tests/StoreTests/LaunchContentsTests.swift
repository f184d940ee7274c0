import Core
import TestSupport
import Testing

@testable import SQL
@testable import Store

/// The contents of a launch with many events.
@Suite struct LaunchContentsTests {
    @Test func `Completions are counted between any acknowledgement and any event`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        var outcomes: [(seq: Int64, outcome: Outcome)] = []
        for number in 0..<40 {
            let outcome = Outcome.allCases[number * 7 % Outcome.allCases.count]
            try await fixture.finished(session, outcome)
            outcomes.append((try await fixture.refresh(session).lastEventSeq, outcome))
        }
        for acknowledged: Int64 in [0, 1, 3, 50, 77, 118] {
            _ = try await fixture.store.sessions.acknowledge(
                through: acknowledged, epoch: nil, in: session.id, at: fixture.now)
            for last: Int64 in [0, 2, 3, 49, 60, 90, 120] {
                let contents = try await fixture.store.launches.contents(of: session.id, through: last, limit: 0)
                var counts = TaskCounts()
                for (seq, outcome) in outcomes where seq > acknowledged && seq <= last { counts[outcome] += 1 }
                #expect(contents.taskCounts == counts, "\(acknowledged), \(last)")
                #expect(contents.pendingEvents == max(0, last - acknowledged))
            }
        }
    }

    @Test(.enabled(if: !TestStore.isOnServer)) func `The cost of many pending events is that of a few`() async throws {
        func cost(_ tasks: Int) async throws -> Int {
            let fixture = try await StoreFixture()
            let session = try await fixture.makeSession()
            try await fixture.create((0..<tasks).map { fixture.download("/\($0)") }, in: session)
            for task in try await fixture.claim() { try await fixture.settle(fixture.completion(task.id)) }
            let store = fixture.store
            return try await store.database.write { db in
                func count() throws -> TaskCounts {
                    try store.launches.completions(of: session.id, after: 0, through: 1_000_000, db)
                }
                #expect(try count().succeeded == tasks)
                let before = db.instructions
                _ = try count()
                return db.instructions - before
            }
        }
        let (few, many) = (try await cost(5), try await cost(500))
        #expect(many < few * 2, "\(few) instructions, \(many)")
    }
}
