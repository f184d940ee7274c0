import Core
import Formats
import TestSupport
import Testing

@testable import Store

/// Commands that a stored plan of a move prevents for its task.
struct PlannedMoveTests {
    private static let move = PlannedMove { $0.destination = Destination(root: "out", path: "a.bin", replace: true) }

    /// Two active tasks, the first with a plan.
    private struct Tasks {
        let fixture: StoreFixture
        let session: SessionRecord
        let moving: TaskRecord
        let other: TaskRecord

        init(_ move: PlannedMove = PlannedMoveTests.move) async throws {
            fixture = try await StoreFixture()
            session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
            let created = try await fixture.create([fixture.download(), fixture.download()], in: session)
            (moving, other) = (created[0].task, created[1].task)
            _ = try await fixture.claim()
            #expect(try await fixture.store.files.plan(move, of: moving.id))
        }

        func outcome() async throws -> Outcome? { try await fixture.store.tasks.read(moving.id).outcome }
    }

    @Test
    func `A cancellation waits for the move of its task, and may overtake it`() async throws {
        let tasks = try await Tasks()
        let (store, now) = (tasks.fixture.store, tasks.fixture.now)
        await #expect(throws: MoveUnderWay.self) {
            try await store.tasks.command(.cancel(reason: nil), task: tasks.moving.id, at: now)
        }
        #expect(try await tasks.outcome() == nil)
        _ = try await store.tasks.command(.suspend, task: tasks.moving.id, at: now)
        _ = try await store.tasks.command(.cancel(reason: nil), task: tasks.moving.id, overtakesMove: true, at: now)
        #expect(try await tasks.outcome() == .cancelled)
        try await expectSoundLedger(tasks.fixture)
    }

    @Test
    func `A cancellation does not wait for a copy`() async throws {
        var copy = Self.move
        copy.isCopying = true
        let tasks = try await Tasks(copy)
        _ = try await tasks.fixture.store.tasks.command(
            .cancel(reason: nil), task: tasks.moving.id, at: tasks.fixture.now)
        #expect(try await tasks.outcome() == .cancelled)
        #expect(try await !tasks.fixture.store.files.plan(Self.move, of: tasks.moving.id))
    }

    @Test
    func `A session-wide cancellation skips a task that is being moved, and returns it`() async throws {
        let tasks = try await Tasks()
        let store = tasks.fixture.store
        func cancel(_ filter: TaskFilter, overtakesMoves: Bool = false) async throws -> Store.Tasks.CommandStep {
            try await store.tasks.command(
                .cancel(reason: nil), filter, in: tasks.session.id, after: 0, limit: 100,
                overtakesMoves: overtakesMoves, at: tasks.fixture.now
            ).0
        }
        let first = try await cancel(TaskFilter())
        #expect((first.matched, first.changed, first.moving) == (1, 1, [tasks.moving.number]))
        #expect(try await store.tasks.read(tasks.other.id).outcome == .cancelled)
        let second = try await cancel(TaskFilter(numbers: first.moving), overtakesMoves: true)
        #expect((second.matched, second.changed, second.moving) == (1, 1, []))
        try await expectSoundLedger(tasks.fixture)
    }

    @Test
    func `A new request and the deletion of the session wait for a move, too`() async throws {
        let tasks = try await Tasks()
        let (store, now) = (tasks.fixture.store, tasks.fixture.now)
        let change = TaskChanges.with {
            $0.request = TransferRequest(url: "https://origin.example/b", method: "GET")
            $0.origin = "https://origin.example:443"
        }
        await #expect(throws: MoveUnderWay.self) {
            try await store.tasks.change(tasks.moving.id, change, ifRevision: nil, at: now)
        }
        await #expect(throws: MoveUnderWay.self) { try await store.sessions.forget(tasks.session.id, at: now) }
        #expect(try await store.files.plannedMoves().map(\.move.isOutdated) == [false])
        _ = try await store.tasks.change(tasks.moving.id, change, ifRevision: nil, overtakesMove: true, at: now)
        #expect(try await store.files.plannedMoves().map(\.move.isOutdated) == [true])
        _ = try await store.sessions.forget(tasks.session.id, overtakesMoves: true, at: now)
    }

    @Test
    func `A task that is being moved does not time out`() async throws {
        let tasks = try await Tasks()
        let fixture = tasks.fixture
        fixture.advance(.seconds(200))
        _ = try await fixture.store.tasks.expire(at: fixture.now, limit: 10)
        #expect(try await fixture.store.tasks.read(tasks.other.id).outcome == .failed)
        #expect(try await tasks.outcome() == nil)
        #expect(try await fixture.store.tasks.nextDueTime() == nil)
        try await fixture.settle(fixture.completion(tasks.moving.id))
        #expect(try await tasks.outcome() == .succeeded)
    }

    @Test(arguments: [false, true])
    func `The end of an attempt deletes its plan`(isSuspended: Bool) async throws {
        let tasks = try await Tasks()
        let fixture = tasks.fixture
        if isSuspended { _ = try await fixture.store.tasks.command(.suspend, task: tasks.moving.id, at: fixture.now) }
        try await fixture.settle(Settlement(task: tasks.moving.id, .interrupted(TaskProgress())))
        #expect(try await fixture.store.files.plannedMoves().isEmpty)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: tasks.moving.id, at: fixture.now)
        #expect(try await tasks.outcome() == .cancelled)
    }

    @Test
    func `No content is moved for a request that the task no longer has`() async throws {
        let tasks = try await Tasks()
        let store = tasks.fixture.store
        let old = tasks.other.specification.request
        #expect(try await store.files.plan(Self.move, of: tasks.other.id, for: old))
        try await tasks.fixture.settle(Settlement(task: tasks.other.id, .interrupted(TaskProgress())))
        let request = TransferRequest(url: "https://other.example/b", method: "GET")
        let change = TaskChanges.with {
            $0.request = request
            $0.origin = "https://other.example:443"
        }
        _ = try await store.tasks.change(tasks.other.id, change, ifRevision: nil, at: tasks.fixture.now)
        _ = try await tasks.fixture.claim()
        #expect(try await !store.files.plan(Self.move, of: tasks.other.id, for: old))
        #expect(try await store.files.plan(Self.move, of: tasks.other.id, for: request))
    }
}
