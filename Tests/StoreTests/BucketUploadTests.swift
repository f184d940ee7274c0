import Core
import Formats
import TestSupport
import Testing

@testable import Store

/// Rows of multipart uploads: each is completed or aborted.
struct BucketUploadTests {
    private func useless(_ fixture: StoreFixture) async throws -> [Int64] {
        try await fixture.store.files.uselessUploads(of: "b", at: fixture.now, limit: 10).map(\.row)
    }

    private func note(_ id: String, _ row: Int64, _ fixture: StoreFixture) async throws -> Bool {
        try await fixture.store.files.note(upload: id, row: row, bucket: "b", key: "k", at: fixture.now)
    }

    @Test func `Two unnamed uploads of an object that are to be aborted do not wait for each other`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        var rows: [Int64] = []
        for _ in 0..<2 {
            rows.append(try await fixture.store.files.beginUpload(of: task.id, bucket: "b", key: "k", at: fixture.now))
        }
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        #expect(try await useless(fixture) == rows)
        for (row, other) in [(rows[0], rows[1]), (rows[1], rows[0])] {
            try await fixture.store.files.postponeUpload(row: row, until: fixture.now + .seconds(5))
            let known = try await fixture.store.files.uploads(of: "k", bucket: "b", besides: other, at: fixture.now)
            #expect(known == [], "the other attempt is only postponed")
        }
    }

    @Test func `Only the newest upload of an unfinished task is needed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        let first = try await fixture.store.files.beginUpload(of: task.id, bucket: "b", key: "k", at: fixture.now)
        #expect(try await useless(fixture) == [])
        #expect(try await note("u1", first, fixture))
        let second = try await fixture.store.files.beginUpload(of: task.id, bucket: "b", key: "k", at: fixture.now)
        #expect(try await useless(fixture) == [first])
        func known(_ bucket: String, besides row: Int64) async throws -> Set<String>? {
            try await fixture.store.files.uploads(of: "k", bucket: bucket, besides: row, at: fixture.now)
        }
        #expect(try await known("b", besides: second) == ["u1"])
        #expect(try await known("b", besides: first) == nil, "the needed one has no name yet")
        #expect(try await known("c", besides: first) == [])
        let found = try #require(try await fixture.store.files.uselessUploads(of: "b", at: fixture.now, limit: 1).first)
        #expect(found == UselessUpload(row: first, key: "k", id: "u1", begunAt: fixture.now, attempts: 0))
        #expect(try await fixture.store.files.uselessUploads(of: "c", at: fixture.now, limit: 1) == [])
        try await fixture.store.files.forgetUpload(row: first, id: "u1")
        #expect(try await useless(fixture) == [])
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        #expect(try await useless(fixture) == [second])
    }

    @Test func `An upload that is no longer needed when it begins is aborted`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        let row = try await fixture.store.files.beginUpload(of: task.id, bucket: "b", key: "k", at: fixture.now)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        #expect(try await !note("u1", row, fixture))
        #expect(try await useless(fixture) == [row])
        // The janitor did not find it, and deleted the row.
        try await fixture.store.files.forgetUpload(row: row, id: "u1")
        #expect(try await !note("u2", row, fixture))
        let left = try await fixture.store.files.uselessUploads(of: "b", at: fixture.now, limit: 10)
        #expect(left.map(\.id) == ["u2"] && left.map(\.key) == ["k"])
    }

    @Test func `An upload that gets its id during the search is not forgotten`() async throws {
        let fixture = try await StoreFixture()
        let row = try await fixture.store.files.beginUpload(of: TaskID(99), bucket: "b", key: "k", at: fixture.now)
        #expect(try await !note("u1", row, fixture))
        try await fixture.store.files.forgetUpload(row: row, id: nil)
        #expect(try await useless(fixture) == [row])
        try await fixture.store.files.forgetUpload(row: row, id: "u1")
        #expect(try await useless(fixture) == [])
    }

    @Test func `An upload that cannot be aborted is retried later`() async throws {
        let fixture = try await StoreFixture()
        let row = try await fixture.store.files.beginUpload(of: TaskID(99), bucket: "b", key: "k", at: fixture.now)
        #expect(try await useless(fixture) == [row])
        try await fixture.store.files.postponeUpload(row: row, until: fixture.now + .seconds(5))
        #expect(try await useless(fixture) == [])
        fixture.advance(.seconds(5))
        #expect(
            try await fixture.store.files.uselessUploads(of: "b", at: fixture.now, limit: 10).map(\.attempts) == [1])
    }

    @Test func `Progress is kept until the task is completed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        var progress = TaskProgress()
        let upload = MultipartUpload {
            $0.parts = ["\"a\""]
            $0.digests = [MultipartUpload.DigestState(.sha256, state: "00")]
            $0.whole = MultipartUpload.Whole { $0.length = 5 }
        }
        progress.kept = .parts(upload, nil)
        #expect(try await fixture.store.tasks.keep(progress, of: task.id))
        #expect(try await fixture.store.tasks.read(task.id).progress == progress)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        #expect(try await !fixture.store.tasks.keep(progress, of: task.id))
    }
}
