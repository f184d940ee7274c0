import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// The number of round trips to a server. Other nodes wait for their turn meanwhile.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct RoundTripTests {
    private let database: PostgreSQLDatabase
    private let commits = Locked<[Int]>([])
    private let fixture: StoreFixture

    init() async throws {
        database = try await SharedPostgreSQL.database()
        let commits = commits
        fixture = try StoreFixture(
            at: .server(PostgreSQLServer(database.connection), node: "test"),
            onCommit: { commit in commits.withLock { $0.append(commit.roundTrips) } })
    }

    /// The round trips of each commit since the last call.
    private func counted() async throws -> [Int] {
        // A commit is reported before the next closure runs.
        try await fixture.store.database.write { _ in }
        return commits.withLock { $0.takeAll() }
    }

    @Test func `Settlements and claims take two round trips, launch rule included`()
        async throws
    {
        let sessions = [try await fixture.makeSession(), try await fixture.makeSession()]
        for session in sessions { try await fixture.create((0..<30).map { _ in fixture.download() }, in: session) }
        var (cursor, running) = (QueueCursor(), [TaskID]())
        var trips: [Int] = []
        for _ in 0..<3 {
            _ = try await counted()
            let taken = try await fixture.store.tasks.advance(
                settling: running.map { fixture.completion($0) }, of: Set(sessions.map(\.id)), after: cursor,
                through: .everything, at: fixture.now
            ) { .tasks($0.lanes.map { ($0.id, 10) }) }
            (cursor, running) = (taken.cursor, (taken.claimed ?? []).map(\.id))
            #expect(running.count == 20)
            trips += try await counted()
        }
        // The first scan does not know the apps with queued tasks.
        #expect(trips == [3, 2, 2])
    }

    @Test func `Rows are found by index even if the server has not analysed their table`() async throws {
        let session = try await fixture.makeSession()
        try await fixture.create((0..<2000).map { _ in fixture.download() }, in: session)
        let plan = try await fixture.store.database.write { db in
            try db.all("EXPLAIN SELECT lane FROM live WHERE node < 'n'") { $0.text(0) }
        }
        #expect(plan.contains { $0.contains("Index Scan using live_node") }, "\(plan)")
    }
}
