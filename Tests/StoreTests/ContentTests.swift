import Core
import Formats
import TestSupport
import Testing

@testable import Store

struct ContentTests {
    @Test
    func `Content is kept for a day after its event was acknowledged`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.finished(session)
        #expect(task.content?.expiresAt == fixture.now + .seconds(30 * 24 * 3600))
        fixture.advance(.seconds(100))
        _ = try await fixture.store.sessions.acknowledge(through: 2, epoch: nil, in: session.id, at: fixture.now)
        #expect(try await fixture.store.tasks.read(task.id).content?.expiresAt == task.content?.expiresAt)
        _ = try await fixture.store.sessions.acknowledge(through: 3, epoch: nil, in: session.id, at: fixture.now)
        #expect(try await fixture.store.tasks.read(task.id).content?.expiresAt == fixture.now + .seconds(24 * 3600))
        fixture.advance(.seconds(24 * 3600))
        #expect(try await fixture.clean().unreadContents == 0)
        #expect(try await fixture.store.files.content(of: task.id).record.isExpired)
        #expect(try await fixture.store.files.content(of: task.id).storage == nil)
    }

    @Test
    func `Unacknowledged content expires after a month and is counted`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        fixture.advance(.seconds(30 * 24 * 3600))
        #expect(try await fixture.clean().unreadContents == 1)
        #expect(try await fixture.kinds(session).count == 3)
    }

    @Test
    func `A claim frees content and file at once, and a repetition changes nothing`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let file = NewContent(
            storage: .file("contents/01/1"), length: 100_000, digest: ContentDigest(algorithm: .sha256, value: "00"))
        try await fixture.settle(
            Settlement(task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), file)))
        #expect(try await fixture.store.files.content(of: task.id).storage == .file("contents/01/1"))
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 100_000)
        try await expectSoundLedger(fixture)
        #expect(try await fixture.store.files.isNeeded(file: "contents/01/1"))
        #expect(
            try await fixture.store.files.claimContent(of: task.id, at: fixture.now).filesToRemove == ["contents/01/1"])
        #expect(try await fixture.store.files.claimContent(of: task.id, at: fixture.now).filesToRemove.isEmpty)
        #expect(try await !fixture.store.files.isNeeded(file: "contents/01/1"))
        try await expectSoundLedger(fixture)
        let unknown = try await fixture.create(fixture.download(), in: session)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.files.claimContent(of: unknown.id, at: fixture.now)
        }
    }
}

struct BodyTests {
    private func add(
        _ fixture: StoreFixture, _ app: AppID, _ publicId: String, length: Int64 = 3, limit: Int64 = .max
    ) async throws -> BodyRecord {
        try await fixture.store.files.addBody(
            publicId, app: app, storage: .file("bodies/00/\(publicId)"), length: length, digest: "aa",
            mediaType: "text/plain", isComplete: true, limit: limit, at: fixture.now)
    }

    @Test
    func `A body is kept while tasks need it, then for a day`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await add(fixture, session.app, "body_1")
        let tasks = try await fixture.create(
            [fixture.download(body: .stored("body_1")), fixture.download(body: .stored("body_1"))], in: session
        ).map(\.task.id)
        var body = try await fixture.store.files.body("body_1", app: session.app)
        #expect((body.uses, body.expiresAt) == (2, nil))
        try await expectSoundLedger(fixture)
        fixture.advance(.seconds(2 * 24 * 3600))
        try await fixture.clean()
        for task in tasks {
            _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task, at: fixture.now)
        }
        body = try await fixture.store.files.body("body_1", app: session.app)
        #expect((body.uses, body.expiresAt) == (0, fixture.now + .seconds(24 * 3600)))
        fixture.advance(.seconds(24 * 3600))
        #expect(try await fixture.clean().filesToRemove == ["bodies/00/body_1"])
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 0)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.files.body("body_1", app: session.app)
        }
    }

    @Test
    func `A deleted body is hidden from clients at once and removed with its last task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await add(fixture, session.app, "body_1")
        let task = try await fixture.create(fixture.download(body: .stored("body_1")), in: session)
        #expect(
            try await fixture.store.files.deleteBody("body_1", app: session.app, at: fixture.now).filesToRemove.isEmpty)
        await #expect(throws: DomainError.notFound) { try await fixture.store.files.body("body_1", app: session.app) }
        await #expect(throws: DomainError.bodyNotFound(index: 0)) {
            try await fixture.create([fixture.download(body: .stored("body_1"))], in: session)
        }
        let taken = try #require(try await fixture.claim().first)
        #expect(try await fixture.store.tasks.withBody(taken).body?.storage == .file("bodies/00/body_1"))
        let end = try await fixture.settle(fixture.completion(task.id))
        #expect(end.filesToRemove == ["bodies/00/body_1"])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Stored bytes are counted, with tasks' own bodies, and limited`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await add(fixture, session.app, "body_1", length: 90, limit: 100)
        await #expect(throws: DomainError.storedBytesExceeded(index: nil)) {
            try await add(fixture, session.app, "body_2", length: 11, limit: 100)
        }
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 90)
        try await fixture.create(
            [
                fixture.download(body: .bytes([1, 2, 3], mediaType: nil, publicId: "body_3")),
                fixture.download(body: .file("bodies/00/body_4", length: 7, digest: "aa", publicId: "body_4")),
            ], in: session)
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 100)
        try await expectSoundLedger(fixture)
        _ = try await fixture.store.tasks.command(
            .cancel(reason: nil), TaskFilter(), in: session.id, after: 0, limit: 10, at: fixture.now)
        for name in ["body_3", "body_4"] {
            _ = try await fixture.store.files.deleteBody(name, app: session.app, at: fixture.now)
        }
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 90)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Bodies of another app and drafts cannot be used by tasks`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let other = try await fixture.makeApp()
        _ = try await add(fixture, other, "body_1")
        _ = try await fixture.store.files.addBody(
            "body_2", app: session.app, storage: .file("f"), length: 1, digest: nil, mediaType: nil, isComplete: false,
            expectedLength: 5, limit: .max, at: fixture.now)
        for name in ["body_1", "body_2"] {
            await #expect(throws: DomainError.bodyNotFound(index: 0)) {
                try await fixture.create([fixture.download(body: .stored(name))], in: session)
            }
        }
        await #expect(throws: DomainError.notFound, "another append came first") {
            try await fixture.store.files.advanceBody(
                "body_2", app: session.app, from: 0, to: 3, digest: nil, limit: .max, at: fixture.now)
        }
        let done = try await fixture.store.files.advanceBody(
            "body_2", app: session.app, from: 1, to: 5, digest: "bb", limit: .max, at: fixture.now)
        #expect(done.isComplete)
        try await fixture.create([fixture.download(body: .stored("body_2"))], in: session)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.files.advanceBody(
                "body_2", app: session.app, from: 5, to: 6, digest: nil, limit: .max, at: fixture.now)
        }
        try await expectSoundLedger(fixture)
    }
}
