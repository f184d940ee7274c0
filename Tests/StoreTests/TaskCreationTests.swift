import Core
import TestSupport
import Testing

@testable import Store

struct TaskCreationTests {
    @Test
    func `Tasks are numbered from 1 without gaps, across failed batches`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let first = try await fixture.create([fixture.download(), fixture.download()], in: session)
        #expect(first.map(\.task.number) == [1, 2])
        await #expect(throws: DomainError.bodyNotFound(index: 1)) {
            try await fixture.create(
                [fixture.download(), fixture.download(body: .stored("body_unknown"))], in: session)
        }
        #expect(try await fixture.create(fixture.download(), in: session).number == 3)
        #expect(try await fixture.refresh(session).counts.running == 3)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A clientTaskId names one task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = fixture.download { $0.clientTaskId = "a" }
        let first = try await fixture.create([task], in: session)
        let again = try await fixture.create([task, fixture.download { $0.clientTaskId = "b" }], in: session)
        #expect(again.map(\.isExisting) == [true, false])
        #expect(again[0].task.id == first[0].task.id)
        #expect(again[1].task.number == 2)
        await #expect(throws: DomainError.clientTaskConflict(index: 0)) {
            try await fixture.create([fixture.download("/other") { $0.clientTaskId = "a" }], in: session)
        }
        await #expect(throws: DomainError.clientTaskConflict(index: 0)) {
            try await fixture.create([fixture.download(suspended: true) { $0.clientTaskId = "a" }], in: session)
        }
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A repeated clientTaskId in a batch is one task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = fixture.download { $0.clientTaskId = "a" }
        let created = try await fixture.create([task, task], in: session)
        #expect(created.map(\.task.number) == [1, 1])
        #expect(created.map(\.isExisting) == [false, true])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An app's limit counts only new tasks, and a batch is created completely or not at all`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = (0..<3).map { number in fixture.download { $0.clientTaskId = "c\(number)" } }
        try await fixture.create(tasks, in: session, limit: 3)
        #expect(try await fixture.create(tasks, in: session, limit: 3).allSatisfy(\.isExisting))
        await #expect(throws: DomainError.tooManyTasks(limit: 4, index: 1)) {
            try await fixture.create([fixture.download(), fixture.download()], in: session, limit: 4)
        }
        #expect(try await fixture.store.apps.read(session.app).unfinishedTasks == 3)
        _ = try await fixture.claim()
        let ended = try await fixture.store.tasks.read(1, in: session.id)
        try await fixture.settle(fixture.completion(ended.id))
        try await fixture.create([fixture.download()], in: session, limit: 3)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A task starts running, suspended or delayed as requested`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        let now = fixture.now
        let created = try await fixture.create(
            [
                fixture.download(), fixture.download(suspended: true),
                fixture.download { $0.earliestBeginDate = now + .seconds(50) },
                fixture.download { $0.earliestBeginDate = now - .seconds(50) },
            ], in: session
        ).map(\.task)
        #expect(created.map(\.phase) == [.queued, .suspended, .delayed, .queued])
        #expect(created.map(\.state) == [.running, .suspended, .running, .running])
        #expect(created.map { $0.startedAt == nil } == [false, true, false, false])
        #expect(created.map(\.life.deadline) == [100, nil, 150, 100].map { $0.map { now + .seconds($0) } })
        for task in created {
            let stored = try await fixture.store.tasks.read(task.id)
            #expect(stored.phase == task.phase)
            #expect(stored.life.deadline == task.life.deadline)
            #expect(stored.specification == task.specification)
        }
        #expect(try await fixture.store.tasks.nextDueTime() == now + .seconds(50))
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Lists page by number and filter by state, outcome, group and name`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create(
            (1...6).map { number in
                fixture.download(suspended: number == 5) {
                    $0.group = number.isMultiple(of: 2) ? "even" : nil
                    $0.clientTaskId = "c\(number)"
                }
            }, in: session)
        _ = try await fixture.claim(2)
        let first = try await fixture.store.tasks.read(1, in: session.id)
        try await fixture.settle(fixture.completion(first.id, .httpError))
        func numbers(_ filter: TaskFilter, after: Int64 = 0, limit: Int = 100) async throws -> [Int64] {
            try await fixture.store.tasks.list(in: session.id, filter, after: after, limit: limit).map(\.number)
        }
        #expect(try await numbers(TaskFilter(), limit: 4) == [1, 2, 3, 4])
        #expect(try await numbers(TaskFilter(), after: 4) == [5, 6])
        #expect(try await numbers(TaskFilter(group: "even"), after: 2) == [4, 6])
        #expect(try await numbers(TaskFilter(states: [.suspended])) == [5])
        #expect(try await numbers(TaskFilter(states: [.running])) == [2, 3, 4, 6])
        #expect(try await numbers(TaskFilter(states: [.completed])) == [1])
        #expect(try await numbers(TaskFilter(outcomes: [.httpError])) == [1])
        #expect(try await numbers(TaskFilter(outcomes: [.succeeded])) == [])
        #expect(try await numbers(TaskFilter(clientTaskId: "c3")) == [3])
        #expect(try await numbers(TaskFilter(states: [.running], group: "even")) == [2, 4, 6])
        #expect(try await numbers(TaskFilter(states: [.suspended, .completed])) == [1, 5])
        #expect(try await numbers(TaskFilter(states: [.running, .completed]), after: 1, limit: 2) == [2, 3])
        #expect(try await numbers(TaskFilter(states: [.running], numbers: [1, 3, 4, 9])) == [3, 4])
    }
}
