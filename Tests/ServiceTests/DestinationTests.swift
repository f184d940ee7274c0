import Base
import Core
import Files
import Glibc
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store

/// What becomes of a destination when a task is stopped between the plan of its move and the move.
struct DestinationTests {
    private static let old: [UInt8] = [1, 2, 3]
    private static let content = Content.bytes(seed: 1, length: 100_000)

    /// A content that is about to be moved to `a.bin` below a root, and the one thread that moves it.
    private struct Move {
        let stage: ServiceStage
        let files: TemporaryFolder
        let task: TaskRecord
        let disk: DiskQueue
        let finisher: ContentFinisher

        init(_ stage: ServiceStage, to files: TemporaryFolder, isSuspended: Bool) async throws {
            self.stage = stage
            self.files = files
            files.write(old, to: "a.bin")
            let order = stage.order("/a", suspended: isSuspended) {
                $0.destination = Destination(root: "out", path: "a.bin", replace: true)
            }
            task = try await stage.create(order, in: try await stage.session())[0]
            disk = try DiskQueue(threads: 1)
            finisher = ContentFinisher(
                store: stage.service.store, folder: DataFolder(path: stage.folder.file("data"), disk: disk),
                settings: stage.service.settings, moves: stage.service.outlet.moves)
            stage.folder.write(content, to: "data/partial/\(task.id.rawValue)")
        }

        func finish() async throws -> Settlement.Verdict {
            let claimed = ClaimedTask(
                id: task.id, session: task.session, app: task.app, number: task.number, lane: 1,
                specification: task.specification, progress: TaskProgress(), body: nil, resourceDeadline: nil)
            return try await finisher.finish(
                claimed, .succeeded, TaskResult(progress: TaskProgress()),
                .partialFile(length: Int64(content.count), digest: Digest.of(content)))
        }

        func expectNothingMoved(_ verdict: Settlement.Verdict) throws {
            guard case .interrupted = verdict else { throw Unexpected() }
            #expect(readFile(files.file("a.bin")) == old)
            #expect(filesBelow(files.path) == ["a.bin"])
        }
    }

    private func run(
        in files: TemporaryFolder, isSuspended: Bool = true, _ body: (Move) async throws -> Void
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        try await ServiceStage.run(configured: { $0.filesRoots = ["out": files.path] }) { stage in
            stage.origin.serve("/a", .generated(seed: 1, length: 1000), always: [.holdBody(after: 100, gate)])
            try await body(Move(stage, to: files, isSuspended: isSuspended))
        }
    }

    /// Does something to the task when its plan is stored, while the thread that moves it is busy.
    private func finish(_ move: Move, _ change: () async throws -> Void) async throws -> Settlement.Verdict {
        let (writer, disk) = (Gate(), Gate())
        let service = move.stage.service
        async let held: Void = service.store.database.write { _ in writer.pass() }
        try await eventually("the writer is held") { writer.waiting == 1 }
        async let verdict = move.finish()
        try await eventually("the plan is written") { service.outlet.moves.isExpected(move.task.id) }
        async let busy: Void = move.disk.run { disk.pass() }
        try await eventually("the disk is busy") { disk.waiting == 1 }
        writer.open()
        try await held
        try await eventually("the plan is stored") { try await service.store.plannedMoves().count == 1 }
        try await change()
        disk.open()
        try await busy
        return try await verdict
    }

    @Test
    func `A task that is cancelled between the plan and the move leaves its destination as it was`() async throws {
        try await run(in: TemporaryFolder()) { move in
            let verdict = try await finish(move) {
                _ = try await move.stage.service.command(.cancel(reason: nil), task: move.task.id)
            }
            try move.expectNothingMoved(verdict)
        }
    }

    @Test
    func `So does one whose session is deleted then`() async throws {
        try await run(in: TemporaryFolder(), isSuspended: false) { move in
            _ = try await move.stage.task(move.task, reaches: .active)
            let verdict = try await finish(move) {
                _ = try await move.stage.service.deleteSession(move.task.session)
            }
            try move.expectNothingMoved(verdict)
        }
    }

    @Test
    func `A stop that is not the end of the task leaves it its move`() async throws {
        try await run(in: TemporaryFolder()) { move in
            let verdict = try await finish(move) { move.stage.service.outlet.stop([move.task.id]) }
            guard case .completed(.succeeded, _, _?) = verdict else { throw Unexpected() }
            #expect(readFile(move.files.file("a.bin")) == Self.content)
        }
    }

    @Test
    func `A task that is cancelled while it is copied to another filesystem leaves its destination as it was`()
        async throws
    {
        let near = TemporaryFolder()
        guard let files = near.onOtherFilesystem() else { return }
        try await run(in: files) { move in
            let disk = Gate()
            // Between other steps, until the copy has begun.
            let isTaken = move.disk.postSteps(.short) {
                guard filesBelow(files.path).contains(where: { $0.hasPrefix(".urlsessiond-") }) else { return true }
                disk.pass()
                return false
            }
            #expect(isTaken)
            async let verdict = move.finish()
            try await eventually("the copy has begun") { disk.waiting == 1 }
            _ = try await move.stage.service.command(.cancel(reason: nil), task: move.task.id)
            disk.open()
            try move.expectNothingMoved(await verdict)
        }
    }
}
