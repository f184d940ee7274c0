import Base
import Core
import Glibc
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// Orders that are sent again with their `clientTaskId`, because the response to the first was lost.
@Suite(.serialized)
struct RepetitionTests {
    private func upload(_ stage: ServiceStage, _ body: TaskOrder.Body, _ client: String) -> TaskOrder {
        stage.order("/up", kind: .upload, suspended: true, body: body) { $0.clientTaskId = client }
    }

    @Test
    func `A repeated order is the same task, although the source of its body has changed or is gone`() async throws {
        let roots = TemporaryFolder()
        let bytes = Content.bytes(seed: 1, length: 300_000)
        roots.write(bytes, to: "large.bin")
        roots.write([1], to: "small.bin")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("a"))
            let download = try await stage.completed(try await stage.create(stage.order("/a"), in: session)[0])
            let orders = [
                upload(stage, .file(root: "r", path: "large.bin"), "a"),
                upload(stage, .file(root: "r", path: "small.bin"), "b"),
                upload(stage, .content(ofTask: download.number), "c"),
            ]
            let created = try await stage.service.createTasks(orders, in: session, recording: nil)
            #expect(created.allSatisfy { !$0.isExisting })
            unlink(roots.file("large.bin"))
            roots.write([2], to: "small.bin")
            _ = try await stage.service.claimContents(TaskFilter(), in: session.id, ifRevision: nil)
            let again = try await stage.service.createTasks(orders, in: session, recording: nil)
            #expect(again.allSatisfy(\.isExisting) && again.map(\.task.number) == created.map(\.task.number))
            for order in orders {
                let task = try await stage.service.prepare(order, in: session)
                #expect(try await stage.service.createTasks([task], in: session, recording: nil)[0].isExisting)
            }
            await #expect(throws: DomainError.clientTaskConflict(index: 0)) {
                try await stage.create(upload(stage, .file(root: "r", path: "small.bin"), "c"), in: session)
            }
        }
    }

    @Test
    func `A repeated order is the same task below the disk's floor`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        func order(_ stage: ServiceStage, _ client: String) -> TaskOrder {
            stage.order("/a", suspended: true) { $0.clientTaskId = client }
        }
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await stage.create(order(stage, "a"), in: try await stage.session())
        }
        try await ServiceStage.run(
            folder: folder, origin: origin, configured: { $0.freeDiskFloor = 1 << 60 }
        ) { stage in
            let session = try await stage.session()
            let again = try await stage.service.createTasks([order(stage, "a")], in: session, recording: nil)
            #expect(again.map(\.isExisting) == [true])
            await #expect(throws: ServiceError.insufficientStorage) {
                try await stage.create(order(stage, "a"), order(stage, "b"), in: session)
            }
        }
    }

    @Test
    func `Inline bodies of the same bytes in another form are another request`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let text = upload(stage, .bytes([97], mediaType: "text/plain; charset=utf-8"), "a")
            try await stage.create(text, in: session)
            #expect(try await stage.create(text, in: session)[0].number == 1)
            for mediaType in [nil, "application/json"] {
                await #expect(throws: DomainError.clientTaskConflict(index: 0)) {
                    try await stage.create(upload(stage, .bytes([97], mediaType: mediaType), "a"), in: session)
                }
            }
        }
    }

    @Test
    func `An order that an earlier version has stored is the same task while its source is unchanged`() async throws {
        let roots = TemporaryFolder()
        roots.write([1], to: "a")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            let orders = [
                upload(stage, .file(root: "r", path: "a"), "a"), upload(stage, .bytes([1], mediaType: nil), "b"),
            ]
            var former: [NewTask] = []
            for order in orders {
                former.append(try await stage.service.newTask(of: order, index: 0, in: session))
            }
            let digest = Digest.of([1])
            former[0].fingerprint = Array("r/a/".utf8) + digest
            former[1].fingerprint = digest
            _ = try await stage.service.store.tasks.create(
                former, in: session.id, limit: .max, at: stage.service.clock.now)
            let again = try await stage.service.createTasks(orders, in: session, recording: nil)
            #expect(again.map(\.isExisting) == [true, true])
        }
    }
}
