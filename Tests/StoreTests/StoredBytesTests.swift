import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Store

/// The stored bytes of an app: bodies, and the contents of its finished tasks.
struct StoredBytesTests {
    private func contents(
        _ fixture: StoreFixture, _ session: SessionRecord, _ storage: NewContent.Storage, length: Int64
    ) async throws -> TaskID {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let content = NewContent(
            storage: storage, length: length, digest: ContentDigest(algorithm: .sha256, value: "00"))
        try await fixture.settle(
            Settlement(task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content)))
        return task.id
    }

    private func stored(_ fixture: StoreFixture, _ session: SessionRecord) async throws -> Int64 {
        try await expectSoundLedger(fixture)
        return try await fixture.store.apps.read(session.app).storedBytes
    }

    @Test
    func `A content counts from its settlement until it is claimed, expires or is deleted with its session`()
        async throws
    {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let claimed = try await contents(fixture, session, .file("contents/01/1"), length: 100_000)
        _ = try await contents(fixture, session, .bytes([1, 2, 3]), length: 3)
        #expect(try await stored(fixture, session) == 100_003)
        for _ in 1...2 { _ = try await fixture.store.files.claimContent(of: claimed, at: fixture.now) }
        #expect(try await stored(fixture, session) == 3)
        fixture.advance(.seconds(30 * 24 * 3600))
        try await fixture.clean()
        #expect(try await stored(fixture, session) == 0)

        let other = try await fixture.makeSession("other", app: session.app)
        _ = try await contents(fixture, other, .file("contents/02/2"), length: 500)
        #expect(try await stored(fixture, session) == 500)
        _ = try await fixture.store.sessions.forget(other.id, at: fixture.now)
        #expect(try await stored(fixture, session) == 500)
        try await fixture.clean()
        #expect(try await stored(fixture, session) == 0)
    }

    @Test
    func `A content that was moved to its destination does not count`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await contents(fixture, session, .moved, length: 100_000)
        #expect(try await stored(fixture, session) == 0)
    }

    @Test
    func `An app at its quota gets no new tasks, and its existing ones end`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let waiting = try await fixture.create(fixture.download { $0.clientTaskId = "c" }, in: session)
        func create(_ tasks: [NewTask]) async throws {
            _ = try await fixture.store.tasks.create(
                tasks, in: session.id, limit: .max, storedLimit: 10, at: fixture.now)
        }
        try await create([
            fixture.download(body: .bytes([UInt8](repeating: 0, count: 9), mediaType: nil, publicId: "b"))
        ])
        #expect(try await stored(fixture, session) == 9)
        let two = fixture.download(body: .bytes([1, 2], mediaType: nil, publicId: "c")) { $0.kind = .upload }
        await #expect(throws: DomainError.storedBytesExceeded(index: 1)) {
            try await create([fixture.download(), two])
        }
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(waiting.id))
        #expect(try await stored(fixture, session) == 16)
        await #expect(throws: DomainError.storedBytesExceeded(index: 0)) { try await create([fixture.download()]) }
        // An existing task is returned in any case.
        try await create([fixture.download { $0.clientTaskId = "c" }])
    }
}
