import Base
import Buckets
import Core
import Files
import Formats
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

/// A store that cannot be read says nothing about its rows: no client is told that they do not exist.
@Suite(.serialized)
struct UnreadableStoreTests {
    /// The statements after which queries of a table fail, and succeed again.
    struct Table {
        let name: String
        let hide: StaticString
        let show: StaticString

        static let content = Table(
            name: "content", hide: "ALTER TABLE content RENAME TO away", show: "ALTER TABLE away RENAME TO content")
        static let task = Table(
            name: "task", hide: "ALTER TABLE task RENAME TO away", show: "ALTER TABLE away RENAME TO task")
        static let body = Table(
            name: "body", hide: "ALTER TABLE body RENAME TO away", show: "ALTER TABLE away RENAME TO body")
        static let event = Table(
            name: "event", hide: "ALTER TABLE event RENAME TO away", show: "ALTER TABLE away RENAME TO event")
        static let uselessFile = Table(
            name: "useless_file", hide: "ALTER TABLE useless_file RENAME TO away",
            show: "ALTER TABLE away RENAME TO useless_file")
        static let bucketUpload = Table(
            name: "bucket_upload", hide: "ALTER TABLE bucket_upload RENAME TO away",
            show: "ALTER TABLE away RENAME TO bucket_upload")
        static let cache = Table(
            name: "cache", hide: "ALTER TABLE cache RENAME TO away", show: "ALTER TABLE away RENAME TO cache")
    }

    private static func execute(_ statement: StaticString, _ stage: ServiceStage) async throws {
        try await stage.service.store.database.write { try $0.execute(statement) }
    }

    @Test func `A content that cannot be looked up is not reported as missing`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("relayed"))
            stage.origin.serve("/up", .upload())
            let download = try await stage.completed(stage.create(stage.order("/a"), in: session)[0])
            let order = stage.order("/up", kind: .upload, body: .content(ofTask: download.number))
            for table in [Table.content, .task] {
                try await Self.execute(table.hide, stage)
                let error = await #expect(throws: (any Error).self) { try await stage.create(order, in: session) }
                try await Self.execute(table.show, stage)
                #expect(!(error is ServiceError), "\(table.name): \(String(describing: error))")
            }
            let upload = try await stage.completed(stage.create(order, in: session)[0])
            #expect(upload.outcome == .succeeded)
        }
    }

    @Test func `A loop that cannot begin ends the service`() async throws {
        let stage = try await ServiceStage.idle()
        let service = stage.service
        try await Self.execute(Table.uselessFile.hide, stage)
        let hasFailed = Locked(false)
        let loops = Task {
            defer { hasFailed.withLock { $0 = true } }
            try await service.run()
        }
        try await eventually("the service ends") { hasFailed.withLock { $0 } }
        await #expect(throws: (any Error).self) { try await loops.value }
        service.close()
    }

    @Test func `The app is not told the words of a store that cannot record an upload`() async throws {
        let stage = try await ServiceStage.idle()
        defer { stage.service.close() }
        try await Self.execute(Table.bucketUpload.hide, stage)
        let faults = Locked<[BucketFault]>([])
        var destination = ObjectDestination()
        (destination.bucket, destination.key, destination.replace) = ("b", "k", true)
        let client = try BucketClient.stage(try ObjectStore())
        let writer = ObjectWriter(
            of: TaskID(1), to: destination, client, mediaType: nil, store: stage.service.store,
            disk: try DiskQueue(threads: 1), clock: .system, log: .none
        ) { news in
            if case .failed(let fault) = news { faults.withLock { $0.append(fault) } }
        }
        writer.write(ContentPart(number: 1, offset: 0, bytes: [1], plan: PartPlan(expected: nil)))
        writer.finish(last: nil)
        await writer.run(goingOnWith: nil, [.sha256])
        #expect(faults.withLock { $0 } == [.unexpected("The upload could not be recorded.")])
    }

    @Test func `The bytes of a draft stay while the store cannot tell their number`() async throws {
        try await ServiceStage.run { stage in
            let draft = BodyOrder(isComplete: false)
            let body = try await stage.service.receiveBody(
                draft, app: stage.app, recording: nil, next: once([1, 2, 3]))
            let file = try #require(filesBelow(stage.folder.file("data/bodies")).first)
            let rest = Locked([[4, 5, 6]] as [[UInt8]])
            await #expect(throws: (any Error).self) {
                _ = try await stage.service.appendBody(body.publicId, app: stage.app, at: 3, draft) {
                    if let bytes = rest.withLock({ $0.popLast() }) { return bytes }
                    try await Self.execute(Table.body.hide, stage)
                    return nil
                }
            }
            try await Self.execute(Table.body.show, stage)
            #expect(fileLength(stage.folder.file("data/bodies/\(file)")) == 6)
            let longer = try await stage.service.appendBody(
                body.publicId, app: stage.app, at: 3, draft, next: once([7]))
            #expect(longer.length == 4 && fileLength(stage.folder.file("data/bodies/\(file)")) == 4)
        }
    }

    @Test func `An app is asked although its webhook cannot be looked up`() async throws {
        try await ServiceStage.run(webhook: "https://app.example/hook") { stage in
            let session = try await stage.session()
            stage.origin.serve(
                "/a", .text("secret"), always: [.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])])
            let task = try await stage.create(stage.order("/a", suspended: true), in: session)[0]
            // The table is read with each app.
            try await Self.execute(Table.cache.hide, stage)
            _ = try await stage.service.command(.resume, task: task.id)
            _ = try await stage.task(task, reaches: .awaitingAnswer)
            try await Self.execute(Table.cache.show, stage)
        }
    }

    @Test func `A task whose end cannot be stored fails when the store works again`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve("/a", .text("content"), turns: [[.hold(gate)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await eventually("the request") { stage.origin.requests("/a").count == 1 }
            try await Self.execute(Table.event.hide, stage)
            let before = await stage.service.scheduler.commits.done
            gate.open()
            await stage.service.scheduler.wait(until: stage.service.clock.monotonic() + 60_000) {
                $0.flights.isEmpty && $0.commits.done > before
            }
            try await Self.execute(Table.event.show, stage)
            let done = try await stage.completed(task)
            #expect(done.outcome == .failed && done.result?.error?.code == .unknown)
        }
    }

    private func once(_ bytes: [UInt8]) -> () async throws -> [UInt8]? {
        let rest = Locked([bytes])
        return { rest.withLock { $0.popLast() } }
    }
}
