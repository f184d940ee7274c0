import Core
import Formats
import SQL
import TestSupport
import Testing

@testable import Store

/// Objects in the bucket of contents: each has an upload row or a reference, or is removed.
struct ObjectTests {
    /// Keys of objects to be removed.
    private func useless(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.store.files.uselessUploads(of: Store.Files.contentsBucket, at: fixture.now, limit: 10).map(
            \.key)
    }

    private func isNamed(_ key: String, _ fixture: StoreFixture) async throws -> Bool {
        try await fixture.store.database.read { db in try fixture.store.files.isNamed(object: key, db) }
    }

    /// A completed download whose content is an object.
    private func content(_ key: String, _ fixture: StoreFixture, in session: SessionRecord) async throws -> TaskRecord {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        _ = try await fixture.store.files.beginUpload(
            of: task.id, bucket: Store.Files.contentsBucket, key: key, at: fixture.now)
        #expect(try await useless(fixture) == [])
        let content = NewContent(
            storage: .object(key), length: 100_000, digest: ContentDigest(algorithm: .sha256, value: "d"))
        let settlement = Settlement(
            task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content))
        _ = try await fixture.store.tasks.settle([settlement], at: fixture.now)
        return task
    }

    @Test func `The commit that names an object removes its upload row, and the one that drops it adds a row`()
        async throws
    {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await content("k", fixture, in: session)
        #expect(try await isNamed("k", fixture))
        #expect(try await fixture.store.files.namesObjects())
        #expect(try await useless(fixture) == [])
        #expect(
            try await fixture.store.files.content(of: task.id).storage
                == .objects([StoredObject(key: "k", length: 100_000)]))
        _ = try await fixture.store.files.claimContent(of: task.id, at: fixture.now)
        #expect(try await !isNamed("k", fixture))
        #expect(try await fixture.store.files.isKnown(object: "k"))
        let found = try await fixture.store.files.uselessUploads(
            of: Store.Files.contentsBucket, at: fixture.now, limit: 10)
        #expect(found.map(\.key) == ["k"] && found.map(\.isObject) == [true])
        try await fixture.store.files.forgetUpload(row: found[0].row, id: found[0].id)
        #expect(try await !fixture.store.files.isKnown(object: "k"))
        #expect(try await !fixture.store.files.namesObjects())
    }

    @Test func `The object of an upload that fails is removed, also after the upload seemed abandoned`() async throws {
        let fixture = try await StoreFixture()
        let (store, bucket) = (fixture.store, Store.Files.contentsBucket)
        func begin(_ key: String) async throws -> Int64 {
            try await store.files.beginUpload(
                of: TaskID(0), bucket: bucket, key: key, at: fixture.now, until: fixture.now + .seconds(60))
        }
        let row = try await begin("k")
        #expect(try await useless(fixture) == [])
        try await store.files.abandonUpload(row: row, of: "k", at: fixture.now)
        #expect(try await useless(fixture) == ["k"])
        try await store.files.forgetUpload(row: row, id: nil)

        let gone = try await begin("other")
        try await store.files.forgetUpload(row: gone, id: nil)
        try await store.files.abandonUpload(row: gone, of: "other", at: fixture.now)
        #expect(try await store.files.isKnown(object: "other"))
        fixture.advance(.seconds(30))
        #expect(try await useless(fixture) == ["other"])
    }

    @Test func `A content that arrives after the end of its task is scheduled for removal`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        let content = NewContent(
            storage: .object("late"), length: 100_000, digest: ContentDigest(algorithm: .sha256, value: "d"))
        let settlement = Settlement(
            task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content))
        _ = try await fixture.store.tasks.settle([settlement], at: fixture.now)
        #expect(try await useless(fixture) == ["late"])
    }

    @Test func `An object that is removed or scheduled for removal gets no new reference`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await content("k", fixture, in: session)
        let object = StoredObject(key: "k", length: 100_000)
        func name(_ id: String) async throws {
            _ = try await fixture.store.files.addBody(
                id, app: session.app, storage: .objects([object]), length: 100_000, digest: "d", mediaType: nil,
                isComplete: true, limit: .max, at: fixture.now)
        }
        let body = NewTask.Body.objects([object], digest: "d", mediaType: nil, publicId: "relay")
        func relay() async throws -> TaskRecord {
            var new = fixture.download()
            new.body = body
            return try await fixture.create(new, in: session)
        }
        // A referenced object cannot be removed.
        let row = try await fixture.store.files.beginUpload(
            of: TaskID(0), bucket: Store.Files.contentsBucket, key: "k", at: fixture.now)
        #expect(try await !fixture.store.files.claimRemoval(ofObject: "k", row: row))
        _ = try await fixture.store.files.claimContent(of: task.id, at: fixture.now)
        let found = try await fixture.store.files.uselessUploads(
            of: Store.Files.contentsBucket, at: fixture.now, limit: 10)
        #expect(try await fixture.store.files.claimRemoval(ofObject: "k", row: try #require(found.first).row))
        await #expect(throws: ObjectGone.self) { try await name("while it is removed") }
        await #expect(throws: DomainError.contentNotFound(index: 0)) { _ = try await relay() }
        for upload in found { try await fixture.store.files.forgetUpload(row: upload.row, id: upload.id) }
        await #expect(throws: ObjectGone.self) { try await name("after it was removed") }
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 0)
    }

    @Test func `An object stays while one of its two references exists`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await content("k", fixture, in: session)
        let object = StoredObject(key: "k", length: 100_000)
        _ = try await fixture.store.files.beginUpload(
            of: TaskID(0), bucket: Store.Files.contentsBucket, key: "l", at: fixture.now)
        let body = try await fixture.store.files.addBody(
            "body", app: session.app, storage: .objects([object, StoredObject(key: "l", length: 5)]), length: 100_005,
            digest: "d", mediaType: nil, isComplete: true, limit: .max, at: fixture.now)
        #expect(body.storage == .objects([object, StoredObject(key: "l", length: 5)]))
        _ = try await fixture.store.files.claimContent(of: task.id, at: fixture.now)
        #expect(try await useless(fixture) == [])
        _ = try await fixture.store.files.deleteBody("body", app: session.app, at: fixture.now)
        #expect(try await useless(fixture) == ["k", "l"])
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 0)
    }

    @Test func `Of two concurrent appends at one offset the second is refused`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.store.files.addBody(
            "body", app: session.app, storage: .objects([]), length: 0, digest: nil, mediaType: nil, isComplete: false,
            draftDigest: DraftDigest(), limit: .max, at: fixture.now)
        func append(_ key: String, at offset: Int64, digest: String? = nil) async throws -> BodyRecord? {
            _ = try await fixture.store.files.beginUpload(
                of: TaskID(0), bucket: Store.Files.contentsBucket, key: key, at: fixture.now)
            return try await fixture.store.files.appendBody(
                "body", app: session.app, at: offset, [StoredObject(key: key, length: 3)], digest: digest,
                DraftDigest { $0.rest = key }, limit: .max, at: fixture.now)
        }
        #expect(try await append("a", at: 0)?.length == 3)
        #expect(try await append("b", at: 0) == nil)
        let draft = try await fixture.store.files.body("body", app: session.app)
        #expect(draft.length == 3 && draft.draftDigest?.rest == "a" && !draft.isComplete)
        #expect(draft.storage == .objects([StoredObject(key: "a", length: 3)]))
        let whole = try #require(try await append("c", at: 3, digest: "d"))
        #expect(whole.isComplete && whole.draftDigest == nil && whole.length == 6)
        #expect(try await append("e", at: 6) == nil)
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 6)
    }

    @Test func `An upload of resume data is needed for a day, or by the task that resumes it`()
        async throws
    {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        func cancelled(_ key: String, nonce: [UInt8]) async throws -> MultipartUpload {
            let task = try await fixture.create(fixture.download(), in: session)
            let row = try await fixture.store.files.beginUpload(
                of: task.id, bucket: Store.Files.contentsBucket, key: key, at: fixture.now)
            let upload = MultipartUpload {
                $0.row = row
                $0.key = key
            }
            _ = try await fixture.store.tasks.cancel(
                task.id, keeping: .upload(upload), length: 10, nonce: nonce, at: fixture.now)
            return upload
        }
        let (unused, used) = (try await cancelled("k", nonce: [1]), try await cancelled("l", nonce: [2]))
        #expect(try await fixture.store.tasks.kept(for: [1], app: session.app, at: fixture.now) == .upload(unused))
        var order = fixture.download()
        order.resumeNonce = [2]
        order.progress = TaskProgress()
        order.progress?.kept = .parts(used, nil)
        let next = try await fixture.create(order, in: session)
        #expect(try await useless(fixture) == [])
        fixture.advance(Store.Tasks.resumeDataPeriod)
        #expect(try await useless(fixture) == ["k"])
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: next.id, at: fixture.now)
        #expect(try await Set(useless(fixture)) == ["k", "l"])
    }

    @Test func `An upload of resume data is not needed after its app is deleted`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        let row = try await fixture.store.files.beginUpload(
            of: task.id, bucket: Store.Files.contentsBucket, key: "k", at: fixture.now)
        let upload = MultipartUpload { $0.row = row }
        _ = try await fixture.store.tasks.cancel(
            task.id, keeping: .upload(upload), length: 10, nonce: [1], at: fixture.now)
        try await expectSoundLedger(fixture)
        #expect(try await useless(fixture) == [])
        _ = try await fixture.store.apps.delete(session.app)
        try await fixture.clean()
        #expect(try await useless(fixture) == ["k"])
    }
}
