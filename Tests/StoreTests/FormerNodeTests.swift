import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// A store that was moved from a server into a file: its rows name nodes that no longer exist.
@Suite struct FormerNodeTests {
    @Test func `A start requeues the tasks of former nodes, and their clients count as detached`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        #expect(try await fixture.claim().map(\.id) == [task.id])
        try await fixture.store.database.write { db in
            try db.execute("UPDATE live SET node = 'old'")
            try db.execute(
                "INSERT INTO presence (session, node, kind) VALUES (?1, 'old', 'stream')", session.id.rawValue)
        }
        _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now)
        #expect(try await !fixture.store.nodes.recoverStrays(at: fixture.now).hasMore)
        #expect(try await fixture.store.tasks.read(task.id).phase == .queued)

        fixture.advance(LaunchRule.grace)
        #expect(try await fixture.claim().map(\.id) == [task.id])
        try await fixture.settle(fixture.completion(task.id))
        #expect(try await fixture.openLaunch(session) != nil)
        try await expectSoundLedger(fixture)
    }
}
