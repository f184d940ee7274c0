import Base
import Core
import Files
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

@Suite(.serialized)
struct RestartTests {
    private static let mebibyte = Resource.generated(seed: 1, length: 1 << 20)

    /// A download with its first 500,000 bytes; the origin holds the rest of the first request only.
    private func halfDownload(
        _ stage: ServiceStage, of resource: Resource = mebibyte, in session: SessionRecord
    ) async throws -> TaskRecord {
        stage.origin.serve("/a", resource, turns: [[.holdBody(after: 500_000, Gate())]])
        let task = try await stage.create(stage.order("/a"), in: session)[0]
        try await stage.received(500_000, of: task)
        return try await stage.service.task(task.number, in: session.id)
    }

    /// Cancels a task for its resume data.
    private func resumeData(_ stage: ServiceStage, of task: TaskRecord) async throws -> String {
        guard case .data(let data) = try await stage.service.cancelProducingResumeData(task) else {
            throw Unexpected()
        }
        return data
    }

    @Test
    func `A transfer resumes after a restart of the service`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            _ = try await halfDownload(stage, in: try await stage.session())
        }
        #expect(filesBelow(folder.file("data/partial")).count == 1)
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            let session = try await stage.session()
            let task = try await stage.service.task(1, in: session.id)
            let done = try await stage.completed(task)
            #expect(done.result?.progress.attempts.attempts == 1)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            let offsets = try await stage.resumptions(session).map(\.fileOffset)
            #expect(offsets.count == 1 && offsets[0] > 0)
            #expect(stage.partialFiles().isEmpty)
        }
    }

    @Test
    func `Orphaned files are removed at the start`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        origin.serve("/a", .generated(seed: 1, length: 200_000))
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            let task = try await stage.create(stage.order("/a"), in: try await stage.session())[0]
            _ = try await stage.completed(task)
        }
        let kept = filesBelow(folder.file("data/contents"))
        #expect(kept.count == 1)
        for path in ["data/partial/77", "data/contents/aa/170", "data/bodies/0a/body_x", "data/partial/body_y"] {
            folder.write([1, 2, 3], to: path)
        }
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await eventually {
                stage.partialFiles().isEmpty && filesBelow(folder.file("data/bodies")).isEmpty
                    && filesBelow(folder.file("data/contents")) == kept
            }
        }
    }

    @Test
    func `Files of this process are no orphans, whatever the clock says`() async throws {
        try await ServiceStage.run { stage in
            let rest = Locked([Content.bytes(seed: 1, length: 300_000)])
            let gate = Gate()
            async let body = stage.service.receiveBody(BodyOrder(), app: stage.app, recording: nil) {
                if let bytes = rest.withLock({ $0.popLast() }) { return bytes }
                try await eventually("the gate opens") { gate.isOpen }
                return nil
            }
            try await eventually("bytes of a body come") { stage.partialFiles().count == 1 }
            // A content of a task in flight without a commit, and an orphaned one.
            let held = Gate()
            stage.origin.serve("/held", .generated(seed: 2, length: 10), always: [.hold(held)])
            let task = try await stage.create(stage.order("/held"), in: try await stage.session())[0]
            try await eventually("the task is in flight") { stage.origin.requests("/held").count == 1 }
            let content = stage.service.folder.content(task.id.rawValue)
            for path in [content, "partial/body_gone", "contents/4d/77"] { stage.folder.write([1], to: "data/" + path) }
            try await stage.service.removeOrphans()
            #expect(stage.partialFiles().count == 1)
            #expect(filesBelow(stage.folder.file("data")).filter { $0.hasPrefix("contents") } == [content])
            gate.open()
            held.open()
            #expect(try await body.length == 300_000)
        }
    }

    @Test
    func `A content that a crash left beside an unfinished task is removed when the task has ended`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        let gate = Gate()
        origin.serve("/a", .generated(seed: 1, length: 70_000), always: [.hold(gate)])
        let left = Locked("")
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            let task = try await stage.create(stage.order("/a"), in: try await stage.session())[0]
            try await eventually("the task is in flight") { origin.requests("/a").count == 1 }
            left.withLock { $0 = "data/" + stage.service.folder.sharedContent(task.id.rawValue) }
        }
        let file = left.withLock { $0 }
        folder.write([1], to: file)
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await eventually("the task is in flight") { origin.requests("/a").count == 2 }
            try await stage.service.removeOrphans()
            #expect(fileLength(folder.file(file)) == 1, "a commit may be about to name it")
            gate.open()
            try await eventually("it is removed", within: .seconds(30)) { fileLength(folder.file(file)) == nil }
            #expect(filesBelow(folder.file("data/contents")).count == 1)
        }
    }

    @Test
    func `Draining stops transfers, keeps their bytes and charges nothing`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        let gate = Gate()
        origin.serve("/a", .generated(seed: 1, length: 1 << 20), always: [.holdBody(after: 500_000, gate)])
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            let session = try await stage.session()
            let tasks = try await stage.create(
                stage.order("/a"), stage.order("/a"), stage.order("/a"), in: session)
            try await stage.received(500_000, of: tasks[0], tasks[1], tasks[2])
            let start = ContinuousClock.now
            await stage.service.drain(within: .seconds(120))
            #expect(ContinuousClock.now - start < .seconds(60))
            for task in tasks {
                let now = try await stage.service.task(task.number, in: session.id)
                #expect(now.phase == .queued)
                #expect(now.progress?.attempts.attempts == 0)
                #expect(now.progress?.kept.point?.offset ?? 0 > 0)
            }
            await #expect(throws: ServiceError.shuttingDown) {
                try await stage.service.createTasks([stage.order("/a")], in: session, recording: nil)
            }
        }
    }

    @Test
    func `Resume data starts one new task`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let task = try await halfDownload(stage, in: session)
            let start = ContinuousClock.now
            let data = try await resumeData(stage, of: task)
            #expect(ContinuousClock.now - start < .seconds(8), "it waits for the transfer, not for its limit")
            #expect(try await stage.completed(task).outcome == .cancelled)
            var order = stage.order("/ignored") { $0.clientTaskId = "c" }
            order.resumeData = data
            let next = try await stage.create(order, in: session)[0]
            let done = try await stage.completed(next)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(stage.origin.requests[1].fields.contains("Range"))
            // The same order again is the same task; another one finds the data used up.
            #expect(try await stage.create(order, in: session)[0].id == next.id)
            let other = order
            await #expect(throws: DomainError.resumeDataSpent(index: 1)) {
                var other = other
                other.specification.clientTaskId = nil
                try await stage.create(stage.order("/new"), other, in: session)
            }
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `A task from resume data that has not begun produces it again`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            var last = try await halfDownload(stage, in: session)
            for _ in 1...2 {
                let data = try await resumeData(stage, of: last)
                var order = stage.order("/ignored", suspended: true)
                order.resumeData = data
                last = try await stage.create(order, in: session)[0]
            }
            _ = try await stage.service.command(.resume, task: last.id)
            #expect(try await stage.bytes(try await stage.completed(last)) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(stage.origin.requests.count == 2 && stage.origin.requests[1].fields.contains("Range"))
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `Resume data without its bytes is used up by a task that has not begun`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let task = try await halfDownload(stage, in: session)
            let data = try await resumeData(stage, of: task)
            var order = stage.order("/ignored", suspended: true)
            order.resumeData = data
            let next = try await stage.create(order, in: session)[0]
            for name in stage.partialFiles() { _ = removeFile(stage.folder.file("data/partial/\(name)")) }
            guard case .notResumable = try await stage.service.cancelProducingResumeData(next) else {
                throw Unexpected()
            }
            #expect(try await stage.completed(next).outcome == .cancelled)
        }
    }

    @Test
    func `A task that cannot be resumed is cancelled without resume data`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let task = try await halfDownload(stage, of: Self.mebibyte.with { $0.etag = nil }, in: session)
            guard case .notResumable = try await stage.service.cancelProducingResumeData(task) else {
                throw Unexpected()
            }
            #expect(try await stage.completed(task).outcome == .cancelled)
            try await stage.waitForNoPartialFiles()
        }
    }
}
