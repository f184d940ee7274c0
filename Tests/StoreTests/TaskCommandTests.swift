import Core
import TestSupport
import Testing

@testable import Store

struct TaskCommandTests {
    @Test func `Concurrent changes and takeovers get their own results`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session).id
        let (store, now) = (fixture.store, fixture.now)
        try await withThrowingTaskGroup { group in
            for n in 0..<50 {
                group.addTask {
                    var changes = TaskChanges()
                    changes.taskDescription = .some("\(n)")
                    let changed = try await store.tasks.change(task, changes, ifRevision: nil, at: now).0
                    #expect(changed.specification.taskDescription == "\(n)")
                    return nil as Int64?
                }
                group.addTask {
                    try await store.sessions.attach(
                        .take(ttl: .seconds(60), launchId: nil, takeover: true), to: session.id, at: now
                    ).0.attachment?.epoch
                }
            }
            let epochs = try await group.reduce(into: []) { $0.append($1) }.compactMap { $0 }
            #expect(epochs.sorted() == Array(1...50))
        }
    }

    @Test
    func `Suspended time does not count towards the resource timeout`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let task = try await fixture.create(fixture.download(), in: session)
        fixture.advance(.seconds(30))
        let (suspended, _) = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        #expect(suspended.state == .suspended)
        #expect(suspended.life.deadline == nil)
        fixture.advance(.seconds(1000))
        _ = try await fixture.store.tasks.expire(at: fixture.now, limit: 10)
        #expect(try await fixture.store.tasks.read(task.id).state == .suspended)
        let (resumed, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        #expect(resumed.life.deadline == fixture.now + .seconds(70))
        #expect(resumed.startedAt == task.startedAt)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `The resource timeout of a task that is created suspended begins when it is resumed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let task = try await fixture.create(fixture.download(suspended: true), in: session)
        fixture.advance(.seconds(500))
        let (resumed, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        #expect(resumed.phase == .queued)
        #expect(resumed.startedAt == fixture.now)
        #expect(resumed.life.deadline == fixture.now + .seconds(100))
    }

    @Test
    func `The resource timeout of a delayed task begins at its date, whether it was suspended or not`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let begin = fixture.now + .seconds(1000)
        let task = try await fixture.create(fixture.download { $0.earliestBeginDate = begin }, in: session)
        #expect(task.life.deadline == begin + .seconds(100))
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        fixture.advance(.seconds(200))
        let (resumed, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        #expect(resumed.phase == .delayed)
        #expect(resumed.life.dueAt == begin)
        #expect(resumed.life.deadline == begin + .seconds(100))
        fixture.advance(.seconds(850))
        _ = try await fixture.claim(0)
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        let (last, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        #expect(last.phase == .queued)
        #expect(last.life.deadline == begin + .seconds(100))
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A new earliestBeginDate moves a waiting task without a loss of time`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let task = try await fixture.create(fixture.download(), in: session)
        fixture.advance(.seconds(40))
        let start = fixture.now
        func change(_ begin: Timestamp?) async throws -> TaskRecord {
            let change = TaskChanges.with { $0.earliestBeginDate = .some(begin) }
            return try await fixture.store.tasks.change(task.id, change, ifRevision: nil, at: start).0
        }
        let same = try await change(nil)
        #expect(same.phase == .queued)
        #expect(same.life.deadline == start + .seconds(60))
        let later = try await change(start + .seconds(10))
        #expect(later.phase == .delayed)
        #expect(later.life.dueAt == start + .seconds(10))
        #expect(later.life.deadline == start + .seconds(110))
        let atOnce = try await change(nil)
        #expect(atOnce.phase == .queued)
        #expect(atOnce.life.deadline == start + .seconds(100))
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Repeating a command changes nothing`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        let (first, _) = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        let (second, _) = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        #expect(first.revision == second.revision)
        let (third, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        let (fourth, _) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
        #expect(third.revision == fourth.revision)
        #expect(try await fixture.refresh(session).counts.running == 1)
    }

    @Test
    func `Resuming a task that waits for a retry starts it at once`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        for waitsForConnectivity in [false, true] {
            _ = try await fixture.claim()
            try await fixture.settle(
                Settlement(
                    task: task.id,
                    .retry(
                        at: fixture.now + .seconds(60), waitsForConnectivity: waitsForConnectivity, TaskProgress())))
            let waiting = try await fixture.store.tasks.read(task.id)
            #expect(waiting.phase == (waitsForConnectivity ? .waitingForConnectivity : .retryWait))
            #expect(waiting.life.dueAt == fixture.now + .seconds(60))
            let (resumed, aftermath) = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now)
            #expect(resumed.phase == .queued)
            #expect(resumed.life.dueAt == nil)
            #expect(aftermath.hasQueuedTasks)
        }
    }

    @Test
    func `Suspending or cancelling an active task stops its transfer`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create([fixture.download(), fixture.download()], in: session)
        let active = try await fixture.claim()
        let (_, suspended) = try await fixture.store.tasks.command(.suspend, task: active[0].id, at: fixture.now)
        #expect(suspended.transfersToStop == [active[0].id])
        let (cancelled, aftermath) = try await fixture.store.tasks.command(
            .cancel(reason: 0), task: active[1].id, at: fixture.now)
        #expect(aftermath.transfersToStop == [active[1].id])
        #expect(cancelled.outcome == .cancelled)
        #expect(cancelled.result?.error?.code == .cancelled)
        #expect(cancelled.result?.error?.backgroundTaskCancelledReason == 0)
        await #expect(throws: DomainError.taskCompleted) {
            try await fixture.store.tasks.command(.resume, task: active[1].id, at: fixture.now)
        }
        await #expect(throws: DomainError.taskCompleted) {
            try await fixture.store.tasks.command(.cancel(reason: nil), task: active[1].id, at: fixture.now)
        }
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Session-wide commands run in steps and match by state and group`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create(
            (1...7).map { number in fixture.download { $0.group = number <= 4 ? "g" : nil } }, in: session)
        let store = fixture.store
        let (step, _) = try await store.tasks.command(
            .suspend, TaskFilter(group: "g"), in: session.id, after: 0, limit: 3, at: fixture.now)
        #expect((step.matched, step.changed, step.last) == (3, 3, 3))
        let (rest, _) = try await store.tasks.command(
            .suspend, TaskFilter(group: "g"), in: session.id, after: 3, limit: 3, at: fixture.now)
        // The command has examined three tasks, and no more.
        #expect((rest.matched, rest.changed, rest.last) == (1, 1, 6))
        let (again, _) = try await store.tasks.command(
            .suspend, TaskFilter(), in: session.id, after: 0, limit: 100, at: fixture.now)
        #expect((again.matched, again.changed) == (7, 3))
        let (resumed, _) = try await store.tasks.command(
            .resume, TaskFilter(states: [.running]), in: session.id, after: 0, limit: 100, at: fixture.now)
        #expect((resumed.matched, resumed.changed) == (0, 0))
        let (cancelled, _) = try await store.tasks.command(
            .cancel(reason: nil), TaskFilter(states: [.suspended], group: "g"), in: session.id, after: 0, limit: 100,
            at: fixture.now)
        #expect((cancelled.matched, cancelled.changed) == (4, 4))
        #expect(try await fixture.refresh(session).counts.cancelled == 4)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A session-wide command may list tasks by their numbers`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create(
            (1...6).map { number in fixture.download { $0.group = number <= 4 ? "g" : nil } }, in: session)
        let filter = TaskFilter(group: "g", numbers: [2, 3, 5, 99])
        let (first, _) = try await fixture.store.tasks.command(
            .suspend, filter, in: session.id, after: 0, limit: 1, at: fixture.now)
        #expect((first.matched, first.changed, first.last) == (1, 1, 2))
        let (rest, _) = try await fixture.store.tasks.command(
            .suspend, filter, in: session.id, after: 2, limit: 100, at: fixture.now)
        #expect((rest.matched, rest.changed, rest.last) == (1, 1, nil))
        #expect(try await fixture.refresh(session).counts.suspended == 2)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A new request with a later date waits until then, also during a transfer`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let begin = fixture.now + .seconds(60)
        let change = TaskChanges.with {
            $0.request = TransferRequest(url: "https://origin.example/b", method: "GET")
            $0.origin = "https://origin.example:443"
            $0.earliestBeginDate = .some(begin)
        }
        let (changed, aftermath) = try await fixture.store.tasks.change(
            task.id, change, ifRevision: nil, at: fixture.now)
        #expect(changed.phase == .delayed && changed.life.dueAt == begin)
        #expect(changed.life.deadline == begin + .seconds(100))
        #expect(aftermath.transfersToStop == [task.id])
        try await expectSoundLedger(fixture)
        #expect(try await fixture.claim().isEmpty)
        fixture.advance(.seconds(60))
        #expect(try await fixture.claim().map(\.specification.request.url) == ["https://origin.example/b"])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A completed task keeps all members but its description and metadata`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.finished(session)
        await #expect(throws: DomainError.taskCompleted) {
            try await fixture.store.tasks.change(
                task.id, TaskChanges.with { $0.priority = 1 }, ifRevision: nil, at: fixture.now)
        }
        let described = TaskChanges.with {
            $0.taskDescription = .some("d")
            $0.metadata = ["row": "1"]
        }
        let (changed, _) = try await fixture.store.tasks.change(
            task.id, described, ifRevision: task.revision, at: fixture.now)
        #expect(changed.specification.taskDescription == "d")
        #expect(changed.specification.metadata == ["row": "1"])
        #expect(changed.revision == task.revision + 1)
        await #expect(throws: DomainError.revisionMismatch) {
            try await fixture.store.tasks.change(task.id, described, ifRevision: task.revision, at: fixture.now)
        }
        #expect(try await fixture.refresh(session).lastEventSeq == 3)
    }

    @Test
    func `A new request moves a task to its origin's lane and stops the old transfer`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task.id)
        _ = try await fixture.claim(1)
        for task in tasks {
            let change = TaskChanges.with {
                $0.request = TransferRequest(url: "https://other.example/b", method: "GET")
                $0.origin = "https://other.example:443"
            }
            let (changed, aftermath) = try await fixture.store.tasks.change(
                task, change, ifRevision: nil, at: fixture.now)
            #expect(changed.phase == .queued)
            #expect(changed.specification.request.url == "https://other.example/b")
            #expect(aftermath.transfersToStop == (task == tasks[0] ? [task] : []))
        }
        try await expectSoundLedger(fixture)
        let claimed = try await fixture.claim()
        #expect(Set(claimed.map(\.lane)).count == 1)
        #expect(claimed.map(\.specification.request.url) == Array(repeating: "https://other.example/b", count: 2))
        try await expectSoundLedger(fixture)
    }
}

extension TaskChanges {
    static func with(_ change: (inout TaskChanges) -> Void) -> TaskChanges {
        var changes = TaskChanges()
        change(&changes)
        return changes
    }
}
