import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// The consequences of a changed refresh status, when one of them fails or is late.
@Suite struct RefreshDenialTests {
    /// Runs `body` while no event can be stored, so that no task can end.
    private static func withoutEvents(_ stage: LaunchStage, _ body: () async throws -> Void) async throws {
        try await stage.store.database.write { try $0.execute("ALTER TABLE event RENAME TO away") }
        await #expect(throws: (any Error).self) { try await body() }
        try await stage.store.database.write { try $0.execute("ALTER TABLE away RENAME TO event") }
    }

    private static func expectCancelledWhenRepeated(
        _ change: (LaunchStage) async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let stage = try await LaunchStage()
        let (_, task) = try await stage.startTask(in: "d", discretionary: true)
        try await withoutEvents(stage) { try await change(stage) }
        #expect(try await stage.store.tasks.read(task).state == .running, sourceLocation: sourceLocation)
        try await change(stage)
        let cancelled = try await stage.store.tasks.read(task)
        #expect(cancelled.result?.error?.backgroundTaskCancelledReason == 1, sourceLocation: sourceLocation)
        let notices = try await stage.launches().filter { $0.kind == .refreshStatusDidChange }
        #expect(notices.count == 1, sourceLocation: sourceLocation)
    }

    @Test func `The same denial of an app cancels the tasks that the first one could not cancel`() async throws {
        try await Self.expectCancelledWhenRepeated { try await $0.change { $0.backgroundRefreshStatus = .denied } }
    }

    @Test func `The same denial of all apps cancels the tasks that the first one could not cancel`() async throws {
        try await Self.expectCancelledWhenRepeated {
            _ = try await $0.store.apps.setConditions(Conditions(), .denied, at: $0.now)
        }
    }

    @Test(arguments: [failed, .interrupted])
    func `A notice in flight is not sent again after a newer one`(_ verdict: LaunchReport.Verdict) async throws {
        let stage = try await LaunchStage()
        try await stage.change { $0.backgroundRefreshStatus = .denied }
        let older = try await stage.claim()[0]
        try await stage.change { $0.backgroundRefreshStatus = .available }
        let newer = try await stage.claim()[0]
        #expect([older.refreshStatus, newer.refreshStatus] == [.denied, .available])
        try await stage.report(newer, .succeeded(nil))
        try await stage.report(older, verdict)
        #expect(try await stage.launches().map(\.state.name) == ["superseded", "completed"])
        stage.advance(by: .seconds(3600))
        #expect(try await stage.claim().isEmpty)
    }
}
