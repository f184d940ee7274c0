import Base
import Core
import TestSupport
import Testing

@testable import Store

struct QuarantineTests {
    private func look(
        _ fixture: StoreFixture, _ pick: @escaping @Sendable (Queue) -> Claim = { _ in .tasks([]) }
    ) async throws -> (queue: Queue, claimed: [ClaimedTask]) {
        let seen = Locked(Queue())
        let round = try await fixture.store.tasks.advance(
            settling: [], after: QueueCursor(), through: .everything, at: fixture.now
        ) { queue in
            seen.withLock { $0 = queue }
            return pick(queue)
        }
        return (seen.withLock { $0 }, round.tasks ?? [])
    }

    private func claimAlone(_ fixture: StoreFixture) async throws -> ClaimedTask? {
        try await look(fixture) { $0.suspect.map { .alone($0.task, $0.lane) } ?? .tasks([]) }.claimed.first
    }

    /// Two tasks that were active in two crashes, and a third that waited.
    private func suspects() async throws -> (StoreFixture, [TaskRecord]) {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task)
        for _ in 1...2 {
            _ = try await fixture.claim()
            _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now, afterCrash: true)
            // A start that dies before it removes the marker has no task to count it against.
            _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now, afterCrash: true)
        }
        return (fixture, tasks + [try await fixture.create(fixture.download(), in: session)])
    }

    @Test
    func `After two crashes in a row a task waits, and is then claimed alone`() async throws {
        let (fixture, tasks) = try await suspects()
        for task in tasks[..<2] {
            let now = try await fixture.store.tasks.read(task.id)
            #expect(now.phase == .retryWait && now.crashes == 2 && now.life.dueAt == fixture.now + Quarantine.delay)
        }
        #expect(try await fixture.claim().map(\.id) == [tasks[2].id])
        #expect(try await look(fixture).queue.suspect == nil)
        fixture.advance(Quarantine.delay)
        let (queue, claimed) = try await look(fixture) { .tasks($0.lanes.map { ($0.id, 9) }) }
        #expect(queue.lanes.isEmpty && claimed.isEmpty)
        #expect(queue.suspect?.task == tasks[0].id)
        #expect(try await claimAlone(fixture)?.id == tasks[0].id)
        #expect(try await fixture.store.tasks.read(tasks[0].id).phase == .active)
        #expect(try await look(fixture).queue.suspect?.task == tasks[1].id)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `The third crash fails the task that ran alone, and clears the others`() async throws {
        let (fixture, tasks) = try await suspects()
        fixture.advance(Quarantine.delay)
        _ = try await claimAlone(fixture)
        let (recovered, aftermath) = try await fixture.store.tasks.recoverInterrupted(at: fixture.now, afterCrash: true)
        #expect((recovered.interrupted, recovered.failed) == (0, 1))
        #expect(aftermath.completedTasks.map(\.id) == [tasks[0].id])
        let failed = try await fixture.store.tasks.read(tasks[0].id)
        #expect(failed.outcome == .failed && failed.result?.error?.code == .unknown)
        #expect(failed.result?.error?.underlying?.code == "crashed-service")
        let other = try await fixture.store.tasks.read(tasks[1].id)
        #expect(other.phase == .queued && other.crashes == 0)
        #expect(try await fixture.claim().map(\.id) == [tasks[1].id, tasks[2].id])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Deaths without a crash marker do not count, before and within a quarantine`() async throws {
        let (fixture, tasks) = try await suspects()
        for _ in 1...5 {
            fixture.advance(Quarantine.delay)
            #expect(try await claimAlone(fixture)?.id == tasks[0].id)
            _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now)
            #expect(try await fixture.store.tasks.read(tasks[0].id).crashes == 2)
            _ = try await fixture.claim()
            _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now)
            #expect(try await fixture.store.tasks.read(tasks[2].id).crashes == 0)
        }
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An attempt that ends by itself resets the count of crashes, an interruption does not`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        func crash() async throws -> Int {
            _ = try await fixture.claim()
            _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now, afterCrash: true)
            return try await fixture.store.tasks.read(task.id).crashes
        }
        #expect(try await crash() == 1)
        _ = try await fixture.claim()
        try await fixture.settle(Settlement(task: task.id, .interrupted(TaskProgress())))
        #expect(try await fixture.store.tasks.read(task.id).crashes == 1)
        _ = try await fixture.claim()
        try await fixture.settle(
            Settlement(task: task.id, .retry(at: fixture.now, waitsForConnectivity: false, TaskProgress())))
        #expect(try await fixture.store.tasks.read(task.id).crashes == 0)
        #expect(try await crash() == 1)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.ask(task.id, "q"))
        #expect(try await fixture.store.tasks.read(task.id).crashes == 0)
    }

    @Test
    func `A suspect stays one while it is suspended, until it has run alone long enough`() async throws {
        let (fixture, tasks) = try await suspects()
        _ = try await fixture.store.tasks.command(.suspend, task: tasks[0].id, at: fixture.now)
        #expect(
            try await fixture.store.tasks.command(.resume, task: tasks[0].id, at: fixture.now).0.phase == .quarantined)
        #expect(try await claimAlone(fixture)?.id == tasks[0].id)
        var settlement = Settlement(task: tasks[0].id, .advanced(TaskProgress()))
        settlement.endsSuspicion = true
        try await fixture.settle(settlement)
        #expect(try await fixture.store.tasks.read(tasks[0].id).crashes == 0)
        try await fixture.settle(Settlement(task: tasks[0].id, .interrupted(TaskProgress())))
        #expect(try await fixture.store.tasks.read(tasks[0].id).phase == .queued)
        try await expectSoundLedger(fixture)
    }
}
