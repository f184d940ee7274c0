import Base
import Core
import Formats
import Testing

@testable import Store

/// Contents above 64 KiB, which are stored once for each app.
struct SharedContentTests {
    private let fixture: StoreFixture

    init() async throws { fixture = try await StoreFixture() }

    private static let length: Int64 = 100_000

    /// A task whose content is its own file, with the same bytes as all others.
    private func finished(
        in session: SessionRecord, digest: String = "ab", length: Int64 = length,
        file: (TaskID) -> String = { "contents/00/\($0.rawValue)" }
    ) async throws -> (task: TaskRecord, aftermath: Aftermath) {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let content = NewContent(
            storage: .file(file(task.id)), length: length, digest: ContentDigest(algorithm: .sha256, value: digest)
        )
        let aftermath = try await fixture.settle(
            Settlement(task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content)))
        return (try await fixture.store.tasks.read(task.id), aftermath)
    }

    private func file(_ task: TaskRecord) async throws -> String? {
        guard case .file(let path)? = try await fixture.store.files.content(of: task.id).storage else { return nil }
        return path
    }

    @Test func `Equal contents of an app share one file, which the last reference frees`() async throws {
        let session = try await fixture.makeSession()
        let (first, none) = try await finished(in: session)
        let (second, aftermath) = try await finished(in: session)
        let path = try #require(try await file(first))
        #expect(none.filesToRemove == [])
        #expect(try await file(second) == path && aftermath.filesToRemove == ["contents/00/\(second.id.rawValue)"])
        var app = try await fixture.store.apps.read(session.app)
        #expect(app.storedBytes == 2 * Self.length && app.storedBytesOnDisk == Self.length)
        try await expectSoundLedger(fixture)

        #expect(try await fixture.store.files.claimContent(of: first.id, at: fixture.now).filesToRemove == [])
        #expect(try await file(second) == path)
        #expect(try await fixture.store.files.isNeeded(file: path))
        app = try await fixture.store.apps.read(session.app)
        #expect(app.storedBytes == Self.length && app.storedBytesOnDisk == Self.length)
        #expect(try await fixture.store.files.claimContent(of: second.id, at: fixture.now).filesToRemove == [path])
        #expect(try await !fixture.store.files.isNeeded(file: path))
        #expect(try await fixture.store.apps.read(session.app).storedBytesOnDisk == 0)
        try await expectSoundLedger(fixture)
    }

    @Test func `Equal contents of one commit share one file`() async throws {
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task.id)
        _ = try await fixture.claim()
        let settlements = tasks.map { id in
            let content = NewContent(
                storage: .file("contents/00/\(id.rawValue)"), length: Self.length,
                digest: ContentDigest(algorithm: .sha256, value: "ab"))
            return Settlement(task: id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content))
        }
        let aftermath = try await fixture.store.tasks.settle(settlements, at: fixture.now)
        #expect(aftermath.filesToRemove == ["contents/00/\(tasks[1].rawValue)"])
        #expect(try await fixture.store.apps.read(session.app).storedBytesOnDisk == Self.length)
        try await expectSoundLedger(fixture)
    }

    @Test func `Other apps and other bytes have their own file`() async throws {
        let session = try await fixture.makeSession()
        let (first, _) = try await finished(in: session)
        let (other, _) = try await finished(in: session, digest: "cd")
        let (foreign, _) = try await finished(in: try await fixture.makeSession())
        #expect(try await Set([file(first), file(other), file(foreign)]).count == 3)
        try await expectSoundLedger(fixture)
    }

    @Test func `A deleted session frees the file of an empty content`() async throws {
        let session = try await fixture.makeSession()
        // The rest of a download that was answered with 204, for instance.
        let (task, _) = try await finished(in: session, length: 0)
        let path = try #require(try await file(task))
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        #expect(try await fixture.clean().filesToRemove.contains(path))
    }

    @Test func `A deleted session frees only contents of no other task`() async throws {
        let app = try await fixture.makeApp()
        let gone = try await fixture.makeSession(app: app)
        let (first, _) = try await finished(in: gone)
        let kept = try await fixture.makeSession(app: app)
        let (second, _) = try await finished(in: kept)
        let path = try #require(try await file(first))
        _ = try await fixture.store.sessions.forget(gone.id, at: fixture.now)
        #expect(try await !fixture.clean().filesToRemove.contains(path))
        #expect(try await file(second) == path)
        #expect(try await fixture.store.apps.read(app).storedBytesOnDisk == Self.length)
        try await expectSoundLedger(fixture)
    }
}
