import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// A session that cannot be read is not taken for a deleted one: what changes its launch fails as a whole.
struct UnreadableSessionTests {
    private static func withoutSessions(_ store: Store, _ body: () async throws -> Void) async throws {
        try await store.database.write { try $0.execute("ALTER TABLE session RENAME TO away") }
        await #expect(throws: (any Error).self) { try await body() }
        try await store.database.write { try $0.execute("ALTER TABLE away RENAME TO session") }
    }

    @Test func `A completion fails, and can be repeated`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        let launch = try await stage.launches()[0].launchId
        func complete() async throws {
            _ = try await stage.store.launches.answer(
                launch, app: stage.app, with: .completed(through: nil), epoch: nil, at: stage.now)
        }
        try await Self.withoutSessions(stage.store, complete)
        #expect(try await stage.launches()[0].state.name == "pending")
        try await complete()
        let record = try await stage.store.sessions.read(session)
        #expect(record.openLaunch == nil && record.acknowledgedSeq > 0)
    }

    @Test func `The end of the last attempt fails, and can be repeated`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        for _ in 0..<10 {
            try await stage.report(try await stage.claim()[0], failed)
            if case .pending(_, let due) = try await stage.launches()[0].state { stage.advance(to: due) }
        }
        let last = try await stage.claim()[0]
        try await Self.withoutSessions(stage.store) { _ = try await stage.report(last, failed) }
        #expect(try await stage.store.sessions.read(session).openLaunch != nil)
        try await stage.report(last, failed)
        #expect(try await stage.launches()[0].state.name == "exhausted")
        #expect(try await stage.store.sessions.read(session).openLaunch == nil)
    }

    @Test func `The launch rule fails, and can be repeated`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        try await Self.withoutSessions(stage.store) {
            _ = try await stage.store.launches.askRules(of: [session], at: stage.now)
        }
        _ = try await stage.store.launches.askRules(of: [session], at: stage.now)
    }
}
