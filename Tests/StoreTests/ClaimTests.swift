import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Store

struct ClaimTests {
    @Test
    func `A lane gives its highest priorities first, and the older of two`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let priorities = [0.5, 0.9, 0.5, 0.1, 0.9]
        try await fixture.create(
            priorities.map { priority in fixture.download { $0.priority = priority } }, in: session)
        var order: [Int64] = []
        for _ in priorities { order += try await fixture.claim(1).map(\.number) }
        #expect(order == [2, 5, 1, 3, 4])
        #expect(try await fixture.claim(1).isEmpty)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A claimed task has its specification, progress and body`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let body = NewTask.Body.bytes([1, 2, 3], mediaType: "text/plain", publicId: "body_1")
        let created = try await fixture.create(
            fixture.download(body: body) { $0.request.headers.append("Authorization", "canary") }, in: session)
        let taken = try #require(try await fixture.claim().first)
        let claimed = try await fixture.store.tasks.withBody(taken)
        #expect(claimed.id == created.id)
        #expect(claimed.specification == created.specification)
        #expect(claimed.specification.request.headers["Authorization"] == "canary")
        #expect(claimed.body?.storage == .bytes([1, 2, 3]))
        #expect(claimed.body?.mediaType == "text/plain")
        #expect(claimed.resourceDeadline == created.life.deadline)
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = 17 }, source: 0)
        try await fixture.settle(Settlement(task: claimed.id, .interrupted(progress)))
        #expect(try await fixture.claim().first?.progress == progress)
        _ = try await fixture.store.files.deleteBody("body_1", app: session.app, at: fixture.now)
    }

    @Test
    func `An unknown session comes with its claimed tasks`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.httpAdditionalHeaders.append("Authorization", "canary") }
        try await fixture.create([fixture.download(), fixture.download()], in: session)
        let line = "#HttpOnly_a.example\tFALSE\t/\tFALSE\t0\tn\tv"
        _ = try await fixture.store.tasks.settle(
            [], cookies: [session.id: CookieChange(after: [line])], at: fixture.now)
        let isKnown = Locked(false)
        for round in 0..<2 {
            isKnown.withLock { $0 = round == 1 }
            let claimed = try await fixture.store.tasks.advance(
                settling: [], after: QueueCursor(), through: .everything, at: fixture.now,
                isKnown: { _ in isKnown.withLock { $0 } }, pick: { .tasks($0.lanes.map { ($0.id, 1) }) })
            #expect(claimed.tasks?.count == 1)
            guard round == 0 else {
                #expect(claimed.sessions.isEmpty)
                continue
            }
            let found = try #require(claimed.sessions.first)
            #expect(claimed.sessions.count == 1 && found.id == session.id && found.app == session.app)
            #expect(found.configuration == session.configuration && found.identifier == session.identifier)
            #expect(found.cookies == [line] && !found.hasCredentials && found.revision == session.revision)
        }
    }

    @Test
    func `A lane has the limits of its session`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession {
            $0.httpMaximumConnectionsPerHost = 3
            $0.networkServiceType = .background
            $0.isDiscretionary = true
            $0.allowsExpensiveNetworkAccess = false
        }
        try await fixture.create([fixture.download(), fixture.download { $0.priority = 0.8 }], in: session)
        let lanes = Locked<[QueuedLane]>([])
        _ = try await fixture.store.tasks.advance(
            settling: [], after: QueueCursor(), through: .everything, at: fixture.now
        ) { found in
            lanes.withLock { $0 = found.lanes }
            return .tasks([])
        }
        let lane = try #require(lanes.withLock(\.first))
        #expect((lane.queued, lane.limitPerHost, lane.isBackground, lane.priority) == (2, 3, true, 0.8))
        #expect(lane.conditions == [.discretionary, .noExpensive])
        #expect(lane.origin == "https://origin.example:443")
    }

    @Test
    func `Delayed tasks and retries are promoted when they are due`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let (first, second) = (fixture.now + .seconds(10), fixture.now + .seconds(20))
        let delayed = try await fixture.create(fixture.download { $0.earliestBeginDate = second }, in: session)
        let retried = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let aftermath = try await fixture.settle(
            Settlement(task: retried.id, .retry(at: first, waitsForConnectivity: false, TaskProgress())))
        #expect(aftermath.wakeAt == first)
        #expect(try await fixture.claim().isEmpty)
        #expect(try await fixture.store.tasks.nextDueTime() == first)
        fixture.advance(.seconds(10))
        #expect(try await fixture.claim().map(\.id) == [retried.id])
        #expect(try await fixture.store.tasks.nextDueTime() == second)
        fixture.advance(.seconds(10))
        #expect(try await fixture.claim().map(\.id) == [delayed.id])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `The resource timeout ends a task in every waiting phase`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.timeoutIntervalForResource = 100 }
        try await fixture.create((0..<5).map { fixture.download("/\($0)") }, in: session)
        let active = try await fixture.claim(4)
        var progress = TaskProgress()
        let cause = TaskError.Underlying(domain: "curl", code: "7", message: "Failed to connect")
        let refusal = TaskError(.cannotConnectToHost, "Connection refused.", underlying: cause)
        progress.lastAttempt = AttemptRecord(
            number: 1, startedAt: fixture.now, endedAt: fixture.now, offset: 0, statusCode: nil, error: refusal)
        try await fixture.settle(
            fixture.ask(active[0].id, "q"),
            Settlement(
                task: active[1].id, .retry(at: fixture.now + .seconds(5000), waitsForConnectivity: true, progress)))
        _ = try await fixture.store.tasks.command(.suspend, task: active[2].id, at: fixture.now)
        #expect(try await fixture.store.tasks.nextDueTime() == fixture.now + .seconds(100))
        fixture.advance(.seconds(100))
        let aftermath = try await fixture.store.tasks.expire(at: fixture.now, limit: 100)
        #expect(aftermath.transfersToStop == [active[3].id])
        #expect(aftermath.completedTasks.count == 4)
        let tasks = try await fixture.store.tasks.list(in: session.id, TaskFilter(), after: 0, limit: 10)
        #expect(tasks.map(\.outcome) == [.failed, .failed, nil, .failed, .failed])
        #expect(tasks[0].result?.error?.code == .timedOut && tasks[0].result?.error?.underlying == nil)
        #expect(tasks[1].result?.error?.code == .timedOut && tasks[1].result?.error?.underlying == cause)
        #expect(tasks[1].result?.error?.localizedDescription.hasSuffix("Its last attempt: Connection refused.") == true)
        #expect(try await fixture.store.tasks.nextDueTime() == nil)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A start requeues interrupted tasks and charges nothing`() async throws {
        let folder = TemporaryFolder()
        let fixture = try await StoreFixture(folder: folder)
        let session = try await fixture.makeSession()
        try await fixture.create([fixture.download(), fixture.download()], in: session)
        let claimed = try await fixture.claim(1)
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = 1 << 20 }, source: 0)
        try await fixture.settle(Settlement(task: claimed[0].id, .advanced(progress)))
        fixture.store.close()
        let next = try await StoreFixture(folder: folder)
        #expect(try await next.store.tasks.recoverInterrupted(at: next.now).recovered.interrupted == 1)
        let again = try await next.claim()
        #expect(again.map(\.number) == [1, 2])
        #expect(again[0].progress == progress)
        try await expectSoundLedger(next)
    }
}
