import Core
import SQL
import Testing

@testable import Store

/// Parking and releasing more launches than one transaction handles.
@Suite struct LaunchSettlingTests {
    private static let count = Store.Launches.settledAtOnce * 2 + 50

    @Test func `Many launches are parked in batches, and none is sent from the first on`() async throws {
        let stage = try await Self.stage()
        try await stage.webhook { $0.state = .paused }
        #expect(try await stage.count(in: "parked") == Store.Launches.settledAtOnce)
        #expect(try await stage.claim().isEmpty)
        let agenda = try await stage.store.launches.agenda(at: stage.now)
        #expect(agenda.hasUnsettled && !agenda.hasDueLaunches)
        #expect(try await stage.settle() == [Store.Launches.settledAtOnce * 2, Self.count])
        #expect(try await stage.count(in: "parked") == Self.count)
        #expect(try await stage.claim().isEmpty)
        #expect(try await !stage.store.launches.agenda(at: stage.now).hasUnsettled)
    }

    @Test func `Many launches are released in batches, one after the other`() async throws {
        let stage = try await Self.stage()
        try await stage.webhook { $0.state = .disabled }
        _ = try await stage.settle()
        stage.advance(by: .seconds(3600))
        try await stage.webhook { $0.state = .enabled }
        #expect(try await stage.count(in: "pending") == Store.Launches.settledAtOnce)
        // No launch is sent until all have their times.
        #expect(try await stage.claim().isEmpty)
        _ = try await stage.settle()
        #expect(try await stage.count(in: "pending") == Self.count)
        let due = try await stage.dueTimes()
        #expect(due == (0..<Self.count).map { stage.now + .milliseconds(200 * $0) })
        #expect(try await stage.claim().count == 1)
    }

    @Test func `The last of several changes of a webhook applies`() async throws {
        let stage = try await Self.stage()
        try await stage.webhook { $0.state = .paused }
        try await stage.webhook { $0.state = .enabled }
        _ = try await stage.settle()
        #expect(try await stage.count(in: "pending") == Self.count)
        // A launch that was never parked keeps its time.
        #expect(try await stage.claim().count == 4)
        try await stage.webhook { $0.state = .paused }
        try await stage.webhook { $0.url = nil }
        _ = try await stage.settle()
        #expect(try await stage.count(in: "parked") >= Self.count - 4)
        #expect(try await stage.launches().allSatisfy { $0.state.name != "pending" })
    }

    @Test func `A new launch is parked or sent while the others are settled`() async throws {
        let stage = try await Self.stage()
        try await stage.webhook { $0.state = .paused }
        try await stage.finishTask(in: "new")
        _ = try await stage.settle()
        #expect(try await stage.count(in: "parked") == Self.count + 1)
        try await stage.webhook { $0.state = .enabled }
        try await stage.finishTask(in: "newer")
        _ = try await stage.settle()
        let claimed = try await stage.claim().map(\.sessionIdentifier)
        #expect(claimed.contains("newer"))
    }

    @Test func `A start continues the batches of the last process`() async throws {
        let stage = try await Self.stage()
        try await stage.webhook { $0.state = .paused }
        stage.store.close()
        let store = try await LaunchStage.open(stage.folder)
        defer { store.close() }
        _ = try await store.launches.recover(at: stage.now)
        #expect(try await LaunchStage.count(in: "parked", store) == Self.count)
    }

    @Test func `A 410 among many attempts disables the webhook at once`() async throws {
        let stage = try await Self.stage()
        let launch = try await stage.claim(limit: 1)[0]
        try await stage.report(launch, .gone)
        #expect(try await stage.count(in: "parked") == Store.Launches.settledAtOnce)
        #expect(try await stage.claim().isEmpty)
        _ = try await stage.settle()
        #expect(try await stage.count(in: "parked") == Self.count)
    }

    @Test func `Failures of an earlier URL, a 410 among them, do not count against the current one`() async throws {
        let stage = try await LaunchStage()
        for name in ["a", "b"] { try await stage.finishTask(in: name) }
        let claimed = try await stage.claim()
        try #require(claimed.count == 2)
        try await stage.webhook { $0.url = "https://new.example/hook" }
        try await stage.report(claimed[0], .gone)
        try await stage.report(claimed[1], failed)
        #expect(try await stage.store.apps.read(stage.app).webhook.state == .enabled)
        let retry = LaunchState.pending(attempts: 1, nextAttemptAt: stage.now + .seconds(5))
        #expect(try await stage.launches().map(\.state) == [retry, retry])
        let health = try await stage.store.database.read { db in try stage.store.apps.health(of: stage.app, db) }
        #expect(health == WebhookHealth())
        // The current URL's own 410 counts.
        stage.advance(by: .seconds(5))
        try await stage.report(try await stage.claim()[0], .gone)
        #expect(try await stage.store.apps.read(stage.app).webhook.state == .disabled)
    }

    private static func stage() async throws -> LaunchStage {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.crowd(launches: count - 1, apps: 0)
        return stage
    }
}

extension LaunchStage {
    /// Settles until the end.
    ///
    /// - Returns: The number of parked launches after each batch.
    fileprivate func settle() async throws -> [Int] {
        var parked: [Int] = []
        while try await store.launches.agenda(at: now).hasUnsettled {
            _ = try await store.launches.settle(at: now)
            parked.append(try await count(in: "parked"))
        }
        return parked
    }

    fileprivate func count(in state: String) async throws -> Int { try await Self.count(in: state, store) }

    fileprivate static func count(in state: String, _ store: Store) async throws -> Int {
        try await store.database.read { db in
            try db.first("SELECT count(*) FROM launch WHERE state = ?1", state) { $0.int(0) } ?? 0
        }
    }

    fileprivate func dueTimes() async throws -> [Timestamp] {
        try await store.database.read { db in
            try db.all("SELECT due_at FROM launch ORDER BY id") { Timestamp(milliseconds: $0.integer(0)) }
        }
    }
}
