import Buckets
import Core
import Files
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// Refusals of the bucket of contents, and objects that look like refusals.
struct ContentsFaultTests {
    @Test(arguments: ["NoSuchKey", "InternalError"])
    func `An object that looks like a store's error is read unchanged`(_ code: String) async throws {
        let store = try ObjectStore()
        let bytes = Array("<Error><Code>\(code)</Code><Message>none</Message></Error>".utf8)
        store.put("p/k", bytes)
        let client = try BucketClient.stage(store)
        #expect(try await client.read("k", 0..<Int64(bytes.count)) == bytes)
        #expect(store.requests(.get).count == 1)
    }

    @Test func `A node without access to the bucket claims nothing and reports so, until it has access`() async throws {
        let store = try ObjectStore()
        store.refuseAll(403, "SignatureDoesNotMatch")
        let contents = try BucketClient.stage(store).asContents
        try await ServiceStage.run(configured: { $0.contents = contents }) { stage in
            let length = 100_000
            stage.origin.serve("/a", .generated(seed: 1, length: length))
            let session = try await stage.session()
            let task = try await stage.create("/a", in: session)
            try await eventually("the node is not ready") {
                await stage.service.unreadiness()?.error == .contentsUnavailable
            }
            try await stays("nothing is asked of the origin", for: .milliseconds(500)) {
                stage.origin.requests.isEmpty
            }
            let reasons = stage.service.waitingReasons(
                of: try await stage.service.task(task.number, in: session.id), in: session)
            #expect(reasons.map(\.kind) == [.disk], "\(reasons)")
            store.refuseNothing()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded && done.result?.progress.attempts.attempts == 1)
            #expect(await stage.service.unreadiness() == nil)
        }
    }

    @Test(arguments: [
        (ObjectStore.Step.put, 100_000), (.create, 9 << 20), (.part, 9 << 20), (.complete, 9 << 20),
    ])
    func `A fault that only the operator can mend is waited out, and charges no task`(
        _ step: ObjectStore.Step, _ length: Int
    ) async throws {
        let store = try ObjectStore()
        let contents = try BucketClient.stage(store).asContents
        try await ServiceStage.run(configured: { $0.contents = contents }) { stage in
            stage.origin.serve("/a", .generated(seed: 1, length: length))
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(maximumAttempts: 1, initialDelay: 0.05))
            }
            store.next(step, [.refuse(403, "AccessDenied"), .refuse(404, "NoSuchBucket")])
            let done = try await stage.completed(try await stage.create("/a", in: session))
            #expect(done.outcome == .succeeded, "\(String(describing: done.result?.error))")
            // If the last step was refused, all bytes had arrived: there was no other attempt, and the first is not
            // charged.
            #expect(done.result?.progress.attempts.attempts == (step == .complete ? 0 : 1))
            let object = try #require(store.objects.first { $0.key.contains("/contents/") })
            #expect(object.value.bytes == Content.bytes(seed: 1, length: length))
        }
    }

    @Test func `An upload with a body that the bucket refuses is not charged`() async throws {
        let store = try ObjectStore()
        let contents = try BucketClient.stage(store).asContents
        try await ServiceStage.run(configured: { $0.contents = contents }) { stage in
            stage.origin.serve("/up", .upload())
            let bytes = Content.bytes(seed: 2, length: 100_000)
            store.put("p/ours/bodies/b", bytes)
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(maximumAttempts: 1, initialDelay: 0.05))
            }
            _ = try await stage.service.store.files.beginUpload(
                of: TaskID(0), bucket: Store.Files.contentsBucket, key: "ours/bodies/b", at: stage.service.clock.now)
            let body = try await stage.service.store.files.addBody(
                "body_b", app: stage.app, storage: .objects([StoredObject(key: "ours/bodies/b", length: 100_000)]),
                length: 100_000, digest: Content.sha256(of: bytes), mediaType: nil, isComplete: true,
                expectedLength: nil, draftDigest: nil, limit: .max, at: stage.service.clock.now, recording: nil)
            store.next(.get, [.refuse(403, "AccessDenied")])
            let task = try await stage.create(
                stage.order("/up", kind: .upload, body: .stored(body.publicId)), in: session)[0]
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(stage.origin.requests("/up").last?.bodySHA256 == Content.sha256(of: bytes))
        }
    }

    @Test func `The lease of a body in flight lasts as long as its node`() async throws {
        let store = try ObjectStore()
        var contents = try BucketClient.stage(store).asContents
        contents.bodyLease = .milliseconds(800)
        try await ServiceStage.run(configured: { [contents] in $0.contents = contents }) { [contents] stage in
            let service = stage.service
            var upload = ObjectUpload(
                contents.newKey(ofBody: "body_1"), for: stage.app, expected: nil, contents, service.store,
                service.folder.disk)
            try await upload.write(Content.bytes(seed: 1, length: 9 << 20))
            try await stays("no node removes it as useless", for: .seconds(2)) {
                try await service.store.files.uselessUploads(
                    of: Store.Files.contentsBucket, at: service.clock.now, limit: 1
                )
                .isEmpty
            }
            await upload.abandon()
        }
    }

    @Test func `The upload of a dead node's body is aborted after a minute`() async throws {
        let store = try ObjectStore()
        let contents = try BucketClient.stage(store).asContents
        try await ServiceStage.run(configured: { $0.contents = contents }) { stage in
            let service = stage.service
            var upload = ObjectUpload(
                contents.newKey(ofBody: "body_1"), for: stage.app, expected: nil, contents, service.store,
                service.folder.disk)
            try await upload.write(Content.bytes(seed: 1, length: 9 << 20))
            func useless(after time: Duration) async throws -> Int {
                try await service.store.files.uselessUploads(
                    of: Store.Files.contentsBucket, at: service.clock.now + time, limit: 10
                ).count
            }
            #expect(contents.writers.rows.count == 1)
            #expect(try await useless(after: .seconds(45)) == 0)
            #expect(try await useless(after: .seconds(75)) == 1)
            await upload.abandon()
            #expect(contents.writers.rows.isEmpty)
        }
    }
}

extension ServiceStage {
    fileprivate func create(_ path: String, in session: SessionRecord) async throws -> TaskRecord {
        try await create(.download, "GET", origin.url(path), in: session)
    }
}
