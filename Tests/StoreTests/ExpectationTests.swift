import Core
import Testing

@testable import Store

/// Changes that require an expected revision, which is checked in their own commit.
struct ExpectationTests {
    @Test func `A change of a whole session requires the expected revision`() async throws {
        let fixture = try await StoreFixture()
        let store = fixture.store
        let session = try await fixture.makeSession()
        let failed = try await fixture.finished(session, .failed)
        let seen = try await fixture.refresh(session)
        let retry = fixture.download { $0.retryOf = failed.number }
        // Another client changed it first.
        _ = try await store.sessions.change(session.id, description: "new", bandwidthLimit: nil, ifRevision: nil)
        let before = try await fixture.refresh(session)
        let stale = seen.revision
        let changes: [@Sendable () async throws -> Void] = [
            {
                _ = try await store.sessions.acknowledge(
                    through: 1, epoch: nil, in: session.id, ifRevision: stale, at: fixture.now)
            },
            { _ = try await store.sessions.invalidate(session.id, ifRevision: stale, at: fixture.now) },
            { _ = try await store.sessions.forget(session.id, ifRevision: stale, at: fixture.now) },
            { try await store.sessions.reset(session.id, ifRevision: stale) },
            {
                _ = try await store.files.claimContents(
                    TaskFilter(), in: session.id, after: 0, limit: 10, ifRevision: stale, at: fixture.now)
            },
            {
                _ = try await store.tasks.retry(
                    [retry], in: session.id, limit: .max, storedLimit: .max, ifRevision: stale, at: fixture.now)
            },
            {
                _ = try await store.sessions.open(
                    session.identifier, app: session.app, configuration: nil, description: nil, onlyCreates: false,
                    expecting: .isUnchanged(seen.id, revision: seen.revision), at: fixture.now)
            },
        ]
        for change in changes { await #expect(throws: DomainError.revisionMismatch) { try await change() } }
        let after = try await fixture.refresh(session)
        #expect(after.revision == before.revision && after.acknowledgedSeq == 0 && after.state == .active)
        #expect(try await store.tasks.read(failed.id).content?.isExpired == false)
        #expect(try await store.tasks.list(in: session.id, TaskFilter(), after: 0, limit: 10).count == 1)

        let result = try await store.tasks.retry(
            [retry], in: session.id, limit: .max, storedLimit: .max, ifRevision: before.revision, at: fixture.now)
        #expect(result.0.count == 1)
        try await store.sessions.reset(session.id, ifRevision: before.revision)
        let (ended, _) = try await store.sessions.invalidate(
            session.id, ifRevision: fixture.refresh(session).revision, at: fixture.now)
        #expect(ended.state == .invalidating)
        _ = try await store.sessions.forget(session.id, ifRevision: ended.revision, at: fixture.now)
        // The expected session is gone, and no new session matches.
        for expected in [SessionCondition.isUnchanged(ended.id, revision: ended.revision), .exists] {
            await #expect(throws: DomainError.revisionMismatch) {
                try await store.sessions.open(
                    session.identifier, app: session.app, configuration: nil, description: nil, onlyCreates: false,
                    expecting: expected, at: fixture.now)
            }
        }
    }

    @Test func `A task's command requires the expected revision of the task and the session`() async throws {
        let fixture = try await StoreFixture()
        let store = fixture.store
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        let stale = task.revision - 1
        await #expect(throws: DomainError.revisionMismatch) {
            try await store.tasks.command(.suspend, task: task.id, ifRevision: stale, at: fixture.now)
        }
        await #expect(throws: DomainError.revisionMismatch) {
            try await store.tasks.hold(task.id, ifRevision: stale, at: fixture.now)
        }
        func cancelAll(_ revision: Int64) async throws {
            _ = try await store.tasks.command(
                .cancel(reason: nil), TaskFilter(), in: session.id, after: 0, limit: 10, ifRevision: revision,
                at: fixture.now)
        }
        await #expect(throws: DomainError.revisionMismatch) { try await cancelAll(session.revision - 1) }
        #expect(try await store.tasks.read(task.id).phase == .queued)
        let suspended = try await store.tasks.command(
            .suspend, task: task.id, ifRevision: task.revision, at: fixture.now
        ).0
        #expect(suspended.phase == .suspended)
        try await cancelAll(fixture.refresh(session).revision)
        #expect(try await store.tasks.read(task.id).outcome == .cancelled)
    }

    @Test func `A claim requires an unexpired content, or the expected revision of its task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.finished(session)
        func claim(_ expected: ClaimCondition) async throws {
            _ = try await fixture.store.files.claimContent(of: task.id, expecting: expected, at: fixture.now)
        }
        await #expect(throws: DomainError.revisionMismatch) { try await claim(.revision(task.revision - 1)) }
        #expect(try await !fixture.store.files.content(of: task.id).record.isExpired)
        try await claim(.unexpired)
        #expect(try await fixture.store.files.content(of: task.id).record.isExpired)
        await #expect(throws: DomainError.revisionMismatch) { try await claim(.unexpired) }
        try await claim(.revision(task.revision))
    }
}
