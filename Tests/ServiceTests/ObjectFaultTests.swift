import Buckets
import Core
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// The consequences of a store's error codes, and the remains of a cancelled download in a bucket.
struct ObjectFaultTests {
    private static let length = (8 << 20) + 321

    private static func run(
        _ store: ObjectStore, _ body: (ServiceStage) async throws -> Void
    ) async throws {
        let client = try BucketClient.stage(store)
        try await ServiceStage.run(configured: { $0.buckets = ["b": client] }, body)
    }

    private static func download(
        _ length: Int, _ stage: ServiceStage, replace: Bool = true
    ) async throws -> TaskRecord {
        stage.origin.serve("/a", .generated(seed: 1, length: length))
        return try await stage.create(.download, "GET", stage.origin.url("/a"), in: stage.session()) {
            $0.writeObject(replace: replace)
        }
    }

    @Test(arguments: ["InvalidPart", "InvalidPartOrder", "EntityTooSmall"])
    func `A content whose parts the store has lost is fetched again`(_ code: String) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            store.next(.complete, [.refuse(400, code)])
            let done = try await stage.completed(try await Self.download(Self.length, stage))
            #expect(done.outcome == .succeeded, "\(String(describing: done.result?.error))")
            #expect(stage.origin.requests("/a").count == 2 && store.requests(.create).count == 2)
            #expect(store.objects["p/k"]?.bytes == Content.bytes(seed: 1, length: Self.length))
        }
    }

    @Test(arguments: [
        (ObjectStore.Step.put, "BadDigest"), (.put, "IncompleteBody"), (.part, "XAmzContentSHA256Mismatch"),
        (.part, "BadDigest"),
    ])
    func `Bytes that were damaged in transit are sent once more`(
        _ step: ObjectStore.Step, _ code: String
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            store.next(step, [.refuse(400, code)])
            let length = step == .put ? 1000 : Self.length
            let done = try await stage.completed(try await Self.download(length, stage))
            #expect(done.outcome == .succeeded, "\(String(describing: done.result?.error))")
            #expect(stage.origin.requests("/a").count == 1)
            #expect(store.objects["p/k"]?.bytes == Content.bytes(seed: 1, length: length))
        }
    }

    @Test(arguments: [1000, Self.length]) func `After a conflict with another writer the write is repeated`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            store.next(length == 1000 ? .put : .complete, [.refuse(409, "ConditionalRequestConflict")])
            let done = try await stage.completed(try await Self.download(length, stage, replace: false))
            #expect(done.outcome == .succeeded, "\(String(describing: done.result?.error))")
            #expect(stage.origin.requests("/a").count == 1)
        }
    }

    /// The time of the response to an upload's creation, relative to the janitor's unsuccessful search in the bucket.
    enum Answer: CaseIterable { case whileItSearches, afterItsSearch }

    private static func open(_ creation: Gate, _ answer: Answer, searching search: Gate, _ stage: ServiceStage)
        async throws
    {
        switch answer {
        case .whileItSearches:
            creation.open()
            try await eventually("the upload is noted") { try await uploadsToAbort(stage).contains { $0.id != nil } }
            search.open()
        case .afterItsSearch:
            search.open()
            try await eventually("it found nothing") { try await uploadsToAbort(stage).isEmpty }
            creation.open()
        }
    }

    private static func uploadsToAbort(_ stage: ServiceStage) async throws -> [UselessUpload] {
        try await stage.service.store.files.uselessUploads(
            of: "b", at: stage.service.clock.now + .seconds(3600), limit: 9)
    }

    @Test(arguments: Answer.allCases)
    func `An upload that begins after its task's cancellation is aborted, without a part`(
        _ answer: Answer
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            let (creation, search) = (Gate(), Gate())
            store.next(.create, [.hold(creation)])
            store.next(.list, [.hold(search)])
            let task = try await Self.download(Self.length, stage)
            try await eventually("the upload begins") { creation.waiting == 1 }
            _ = try await stage.service.command(.cancel(reason: nil), task: task.id)
            try await eventually("the janitor looks for it") { search.waiting == 1 }
            try await Self.open(creation, answer, searching: search, stage)
            try await eventually("the upload was aborted") { store.requests(.abort).count > 0 }
            try await eventually("nothing is left to abort") { try await Self.uploadsToAbort(stage).isEmpty }
            #expect(store.uploads == 0 && store.requests(.part).isEmpty)
            #expect(try await stage.completed(task).outcome == .cancelled)
        }
    }

    @Test(arguments: Answer.allCases)
    func `An upload of the same object that begins during the search is not aborted`(
        _ answer: Answer
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            let (creation, search, part) = (Gate(), Gate(), Gate())
            store.next(.create, [.hold(creation)])
            store.next(.list, [.hold(search)])
            store.next(.part, [.hold(part)])
            let first = try await Self.download(Self.length, stage)
            try await eventually("the first upload begins") { creation.waiting == 1 }
            _ = try await stage.service.command(.cancel(reason: nil), task: first.id)
            try await eventually("the janitor looks for it") { search.waiting == 1 }
            let second = try await Self.download(Self.length, stage)
            try await eventually("the second upload has a part") { part.waiting == 1 }
            try await Self.open(creation, answer, searching: search, stage)
            try await eventually("the first upload was aborted") { store.requests(.abort).count > 0 }
            try await eventually("nothing is left to abort") { try await Self.uploadsToAbort(stage).isEmpty }
            part.open()
            #expect(try await stage.completed(second).outcome == .succeeded)
            #expect(store.requests(.abort).count == 1 && store.requests(.create).count == 2)
        }
    }

    @Test(arguments: [ObjectStore.Turn.refuse(503, "SlowDown"), .close])
    func `A small object of a cancelled task is not written`(
        _ turn: ObjectStore.Turn
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            store.next(.put, Array(repeating: turn, count: 4))
            let task = try await Self.download(1000, stage)
            try await eventually("it is written") { store.requests(.put).count > 0 }
            _ = try await stage.service.command(.cancel(reason: nil), task: task.id)
            try await stays("there is no object", for: .seconds(6)) { store.objects["p/k"] == nil }
        }
    }

    @Test(arguments: [1000, Self.length]) func `A delayed write overwrites no newer object`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        store.put("p/k", [0])
        try await Self.run(store) { stage in
            let gate = Gate()
            store.next(length == 1000 ? .put : .complete, [.hold(gate)])
            let task = try await Self.download(length, stage)
            try await eventually("the object is being made") { gate.waiting == 1 }
            _ = try await stage.service.command(.cancel(reason: nil), task: task.id)
            store.put("p/k", [1, 2, 3])
            gate.open()
            try await eventually("the late write was refused") { gate.waiting == 0 }
            try await stays("the newer object stays", for: .seconds(1)) { store.objects["p/k"]?.bytes == [1, 2, 3] }
        }
    }

    @Test(arguments: [1000, Self.length]) func `A resumed task overwrites an object that was written meanwhile`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            let gate = Gate()
            store.next(length == 1000 ? .put : .complete, [.hold(gate)])
            let task = try await Self.download(length, stage)
            try await eventually("the object is being made") { gate.waiting == 1 }
            store.put("p/k", [1, 2, 3])
            gate.open()
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(store.objects["p/k"]?.bytes == Content.bytes(seed: 1, length: length))
            #expect(stage.origin.requests("/a").count == 1)
        }
    }

    @Test(arguments: [1000, Self.length]) func `A task without replace fails if an object was written meanwhile`(
        _ length: Int
    ) async throws {
        let store = try ObjectStore()
        try await Self.run(store) { stage in
            let gate = Gate()
            store.next(length == 1000 ? .put : .complete, [.hold(gate)])
            let task = try await Self.download(length, stage, replace: false)
            try await eventually("the object is being made") { gate.waiting == 1 }
            store.put("p/k", [1, 2, 3])
            gate.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .failed, "\(String(describing: done.result?.error))")
            #expect(store.objects["p/k"]?.bytes == [1, 2, 3])
        }
    }

    @Test func `A store that ignores conditions is written nevertheless`() async throws {
        let store = try ObjectStore()
        store.ignoreConditions()
        try await Self.run(store) { stage in
            #expect(try await stage.completed(try await Self.download(1000, stage)).outcome == .succeeded)
            let put = try #require(store.requests(.put).first)
            #expect(put.fields["If-Match"] == nil && put.fields["If-None-Match"] == nil)
        }
    }

    @Test func `The cost of a kill is counted, and limited by the connection's buffers`() async throws {
        let store = try ObjectStore()
        let (folder, origin, gate) = (TemporaryFolder(), try OriginServer(), Gate())
        let (part, length) = (8 << 20, 40 << 20)
        origin.serve("/a", .generated(seed: 1, length: length))
        let client = try BucketClient.stage(store)
        store.next(.part, [.well, .hold(gate)])
        let stage = try await ServiceStage.start(folder: folder, origin: origin) { $0.buckets = ["b": client] }
        let task = try await stage.create(.download, "GET", origin.url("/a"), in: stage.session()) { $0.writeObject() }
        try await eventually("the second part is on its way") { gate.waiting == 1 }
        let taken = try await eventually("the origin is read no further") { () -> Int64? in
            let before = stage.service.live.sample(task.id)?.received ?? 0
            try await Task.sleep(for: .milliseconds(500))
            return before > 2 * part && before == stage.service.live.sample(task.id)?.received ? before : nil
        }
        #expect(taken <= 2 * part + part / 8 + 65_536)
        let progress = try await eventually("it is stored what a kill would cost") { () -> TaskProgress? in
            let progress = try await stage.service.store.tasks.read(task.id).progress
            return progress?.bytesInMemory ?? 0 > 0 ? progress : nil
        }
        #expect(progress.bytesInMemory == Int64(part) && progress.kept.point?.offset == Int64(part))
        // The progress that a start would find.
        var found = progress
        found.loseMemory()
        #expect(found.bytesFetchedTwice == Int64(part) && found.bytesInMemory == 0)
        gate.open()
        let done = try await stage.completed(task)
        #expect(done.outcome == .succeeded && done.result?.progress.bytesFetchedTwice == 0)
        #expect(store.objects["p/k"]?.bytes == Content.bytes(seed: 1, length: length))
        await stage.stop()
    }
}
