import Base
import Core
import Files
import Glibc
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// The number of times that a Swift task reads the monotonic clock.
private enum ClockReads {
    @TaskLocal static var count: Locked<Int>?

    static let clock = Clock(
        wall: Clock.system.wall,
        monotonic: {
            count?.withLock { $0 += 1 }
            return Clock.system.monotonic()
        })
}

/// The destination of a task that is stopped during the move of its content.
struct DestinationTests {
    private static let old: [UInt8] = [1, 2, 3]
    private static let content = Content.bytes(seed: 1, length: 100_000)

    /// A content before its move to `a.bin` below a root, and the only thread that moves files.
    private struct Move {
        let stage: ServiceStage
        let files: TemporaryFolder
        let task: TaskRecord
        let disk: DiskQueue
        let finisher: ContentFinisher

        init(_ stage: ServiceStage, to files: TemporaryFolder) async throws {
            self.stage = stage
            self.files = files
            files.write(old, to: "a.bin")
            let order = stage.order("/a", suspended: true) {
                $0.destination = Destination(root: "out", path: "a.bin", replace: true)
            }
            task = try await stage.create(order, in: try await stage.session())[0]
            disk = try DiskQueue(threads: 1)
            finisher = ContentFinisher(
                store: stage.service.store, folder: DataFolder(path: stage.folder.file("data"), disk: disk),
                settings: stage.service.settings, log: .none)
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
        in files: TemporaryFolder, clock: Clock = .system, _ body: (Move) async throws -> Void
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        try await ServiceStage.run(clock: clock, configured: { $0.filesRoots = ["out": files.path] }) { stage in
            stage.origin.serve("/a", .generated(seed: 1, length: 1000), always: [.holdBody(after: 100, gate)])
            try await body(Move(stage, to: files))
        }
    }

    /// Ways to stop a task, alone or with its session.
    private enum Stop: CaseIterable {
        case cancel, cancelAll, cancelProducingResumeData, newRequest, deletion

        func callAsFunction(_ move: Move) async throws {
            let (service, task) = (move.stage.service, move.task)
            switch self {
            case .cancel: _ = try await service.command(.cancel(reason: nil), task: task.id)
            case .cancelAll:
                let (matched, _) = try await service.command(.cancel(reason: nil), TaskFilter(), in: task.session)
                if matched == 0 { throw DomainError.taskCompleted }
            case .cancelProducingResumeData:
                _ = try await service.cancelProducingResumeData(service.task(task.number, in: task.session))
            case .newRequest:
                var changes = TaskChanges()
                changes.request = TransferRequest(url: move.stage.origin.url("/b"), method: "GET")
                changes.origin = move.stage.origin.url("")
                _ = try await service.changeTask(task.id, changes, ifRevision: nil)
            case .deletion: _ = try await service.deleteSession(task.session)
            }
        }
    }

    @Test(arguments: Stop.allCases)
    private func `A stop during the move of a content waits for the end of its task`(_ stop: Stop) async throws {
        try await run(in: TemporaryFolder(), clock: ClockReads.clock) { move in
            let verdict = try await move.finish()
            #expect(readFile(move.files.file("a.bin")) == Self.content)
            let service = move.stage.service
            let (reads, isOver) = (Locked(0), Locked(false))
            async let stopped = ClockReads.$count.withValue(reads) {
                let result = await Task { try await stop(move) }.result
                isOver.withLock { $0 = true }
                return result
            }
            // A stop that waits reads the clock repeatedly; another one has ended.
            try await eventually("the stop waits") { reads.withLock { $0 } > 8 || isOver.withLock { $0 } }
            try await service.outlet.handle(
                service.store.tasks.settle([Settlement(task: move.task.id, verdict)], at: service.clock.now))
            switch (stop, await stopped) {
            case (.deletion, .success): break
            case (_, .failure(DomainError.taskCompleted)):
                #expect(try await service.store.tasks.read(move.task.id).outcome == .succeeded)
            case (_, let result): Issue.record("\(result)")
            }
        }
    }

    @Test
    func `A cancellation overtakes a move that makes no progress`() async throws {
        let time = ManualClock()
        try await run(in: TemporaryFolder(), clock: time.clock) { move in
            _ = try await move.finish()
            let service = move.stage.service
            async let stopped: Void = Stop.cancel(move)
            try await eventually("the cancel is through") {
                time.advance(by: 1000)
                return try await service.store.tasks.read(move.task.id).outcome == .cancelled
            }
            try await stopped
        }
    }

    @Test(arguments: [false, true])
    func `A start after a crash completes a task with its moved content, unless it has another request`(
        isChanged: Bool
    ) async throws {
        try await run(in: TemporaryFolder()) { move in
            _ = try await move.finish()
            let (store, now) = (move.stage.service.store, move.stage.service.clock.now)
            if isChanged {
                var changes = TaskChanges()
                changes.request = TransferRequest(url: move.stage.origin.url("/b"), method: "GET")
                _ = try await store.tasks.change(
                    move.task.id, changes, ifRevision: nil, overtakesMove: true, at: now)
            }
            _ = try await move.finisher.finishInterruptedMoves(at: now)
            #expect(try await store.tasks.read(move.task.id).outcome == (isChanged ? nil : .succeeded))
            #expect(try await store.files.plannedMoves().isEmpty)
        }
    }

    @Test(arguments: [Stop.cancel, .deletion])
    private func `A task that ends before its content is moved leaves the destination unchanged`(
        _ stop: Stop
    ) async throws {
        try await run(in: TemporaryFolder()) { move in
            try await stop(move)
            try move.expectNothingMoved(await move.finish())
        }
    }

    @Test
    func `A task that is cancelled during a copy to another filesystem leaves its destination unchanged`()
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
