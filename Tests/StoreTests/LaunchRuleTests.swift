import Core
import TestSupport
import Testing

@testable import Store

struct LaunchRuleTests {
    private func count(_ fixture: StoreFixture) async throws -> Int { try await Launches.count(of: fixture.store) }

    @Test
    func `Ten tasks launch once, with the last of them`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create((0..<10).map { fixture.download("/\($0)") }, in: session).map(\.task.id)
        _ = try await fixture.claim()
        for task in tasks.dropLast() {
            let outcome: Outcome = task == tasks[3] ? .failed : .succeeded
            let aftermath = try await fixture.settle(fixture.completion(task, outcome))
            #expect(!aftermath.hasDueLaunches)
        }
        #expect(try await fixture.openLaunch(session) == nil)
        let aftermath = try await fixture.settle(fixture.completion(tasks[9]))
        #expect(aftermath.hasDueLaunches)
        #expect(try await fixture.openLaunch(session) != nil)
        #expect(try await count(fixture) == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Suspended tasks do not delay a launch`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        try await fixture.create([fixture.download(suspended: true)], in: session)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(task.id))
        #expect(try await fixture.openLaunch(session) != nil)
    }

    @Test
    func `Suspending the last running task launches for the tasks that finished before`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task.id)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(tasks[0]))
        #expect(try await fixture.openLaunch(session) == nil)
        _ = try await fixture.store.tasks.command(.suspend, task: tasks[1], at: fixture.now)
        #expect(try await fixture.openLaunch(session) != nil)
    }

    @Test
    func `A launch has the trace context of the task that causes it`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create(
            ["00-a", "00-b"].map { context in fixture.download { $0.traceparent = context } }, in: session)
        func traceparent() async throws -> String? {
            let launch = try #require(try await fixture.openLaunch(session))
            let record = try await fixture.store.launches.read(launch, app: session.app)
            _ = try await fixture.store.launches.answer(
                launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
            return record.traceparent
        }
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(tasks[0].task.id))
        try await fixture.settle(fixture.ask(tasks[1].task.id, "q"))
        #expect(try await traceparent() == "00-b")
        try await fixture.create(
            [fixture.download { $0.traceparent = "00-c" }], in: session)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: tasks[1].task.id, at: fixture.now)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(TaskID(tasks[1].task.id.rawValue + 1)))
        #expect(try await traceparent() == "00-c")
    }

    @Test
    func `A challenge launches early, with finished tasks`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task.id)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.ask(tasks[0], "q"))
        let launch = try #require(try await fixture.openLaunch(session))
        #expect(try await Launches.reasons(of: launch, fixture.store) == .authenticationRequired)
        _ = try await fixture.store.questions.answer(
            "q", app: session.app, with: Answer(disposition: .cancelAuthenticationChallenge), origin: nil,
            at: fixture.now)
        try await fixture.settle(fixture.completion(tasks[1]))
        #expect(try await fixture.openLaunch(session) == launch)
        #expect(try await Launches.reasons(of: launch, fixture.store) == [.authenticationRequired, .tasksFinished])
        #expect(try await count(fixture) == 1)
    }

    @Test
    func `No launch is created while a client is attached, nor within the grace period`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        fixture.setAttached(true, session.id)
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) == nil)
        fixture.setAttached(false, session.id)
        let early = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(early.launchChecks == [session.id: fixture.now + .seconds(5)])
        #expect(try await fixture.openLaunch(session) == nil)
        fixture.advance(.seconds(5))
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.openLaunch(session) != nil)
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await count(fixture) == 1)
    }

    @Test
    func `A lease prevents launches until it and the grace period have ended`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.store.sessions.attach(
            .take(ttl: .seconds(30), launchId: nil, takeover: false), to: session.id, at: fixture.now)
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let aftermath = try await fixture.settle(fixture.completion(task.id))
        #expect(aftermath.launchChecks == [session.id: fixture.now + .seconds(35)])
        fixture.advance(.seconds(34))
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.openLaunch(session) == nil)
        fixture.advance(.seconds(1))
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.openLaunch(session) != nil)
    }

    @Test
    func `A client that attaches without a launch supersedes an unsent launch`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let launch = try #require(try await fixture.openLaunch(session))
        fixture.setAttached(true, session.id)
        _ = try await fixture.store.sessions.clientAttached(to: session.id, .wait, at: fixture.now)
        #expect(try await fixture.openLaunch(session) == nil)
        // A late completion still acknowledges.
        _ = try await fixture.store.launches.answer(
            launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        #expect(try await fixture.refresh(session).acknowledgedSeq == 3)
        #expect(try await !fixture.kinds(session).contains(.didFinishEvents))
    }

    @Test
    func `A lease with the launch's id leaves the launch open`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let launch = try #require(try await fixture.openLaunch(session))
        _ = try await fixture.store.sessions.attach(
            .take(ttl: .seconds(30), launchId: launch, takeover: false), to: session.id, at: fixture.now)
        #expect(try await fixture.openLaunch(session) == launch)
        _ = try await fixture.store.launches.answer(
            launch, app: session.app, with: .completed(through: nil), epoch: 1, at: fixture.now)
        #expect(try await fixture.refresh(session).attachment?.isHeld(at: fixture.now) == false)
    }

    @Test
    func `Completion acknowledges, records didFinishEvents and causes no launch itself`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let launch = try #require(try await fixture.openLaunch(session))
        for _ in 0..<2 {
            _ = try await fixture.store.launches.answer(
                launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
            let after = try await fixture.refresh(session)
            #expect((after.acknowledgedSeq, after.lastEventSeq) == (3, 4))
            #expect(after.openLaunch == nil)
        }
        #expect(try await fixture.kinds(session).last == .didFinishEvents)
        fixture.advance(.seconds(3600))
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.openLaunch(session) == nil)
        #expect(try await count(fixture) == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Completion beyond the last event is refused and changes nothing`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let launch = try #require(try await fixture.openLaunch(session))
        await #expect(throws: DomainError.acknowledgementOutOfRange(lastSeq: 3)) {
            try await fixture.store.launches.answer(
                launch, app: session.app, with: .completed(through: 4), epoch: nil, at: fixture.now)
        }
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.launches.answer(
                launch, app: AppID(999), with: .completed(through: nil), epoch: nil, at: fixture.now)
        }
        #expect(try await fixture.openLaunch(session) == launch)
    }

    @Test
    func `Acknowledging page by page before completion causes no delay`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        for _ in 0..<5 {
            try await fixture.finished(session)
            let launch = try #require(try await fixture.openLaunch(session), "the launch had to wait")
            let last = try await fixture.refresh(session).lastEventSeq
            _ = try await fixture.store.sessions.acknowledge(through: last, epoch: nil, in: session.id, at: fixture.now)
            _ = try await fixture.store.launches.answer(
                launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        }
    }

    @Test
    func `Completions that acknowledge nothing delay the next launch for growing times`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        for wait in [5, 10, 20] {
            let launch = try #require(try await fixture.openLaunch(session))
            let aftermath = try await fixture.store.launches.answer(
                launch, app: session.app, with: .completed(through: 0), epoch: nil, at: fixture.now)
            #expect(aftermath.launchChecks == [session.id: fixture.now + .seconds(wait)])
            #expect(try await fixture.openLaunch(session) == nil)
            fixture.advance(.seconds(wait))
            _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        }
        let launch = try #require(try await fixture.openLaunch(session))
        _ = try await fixture.store.launches.answer(
            launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) != nil)
    }

    @Test
    func `A renewal after the lease's end counts as a client without a launch`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.store.sessions.attach(
            .take(ttl: .seconds(30), launchId: nil, takeover: false), to: session.id, at: fixture.now)
        fixture.advance(.seconds(40))
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) != nil)
        _ = try await fixture.store.sessions.attach(
            .renew(epoch: 1, ttl: .seconds(30)), to: session.id, at: fixture.now)
        #expect(try await fixture.openLaunch(session) == nil)
    }

    @Test
    func `A task that ends while a launch is open launches again after its completion`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let first = try #require(try await fixture.openLaunch(session))
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) == first)
        _ = try await fixture.store.launches.answer(
            first, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        let second = try #require(try await fixture.openLaunch(session))
        #expect(second != first)
        #expect(try await fixture.refresh(session).acknowledgedSeq == 3)
    }

    @Test
    func `Sessions without launch events and force-quit apps have no launches`() async throws {
        let fixture = try await StoreFixture()
        let silent = try await fixture.makeSession { $0.sessionSendsLaunchEvents = false }
        try await fixture.finished(silent)
        #expect(try await fixture.openLaunch(silent) == nil)
        let session = try await fixture.makeSession()
        try await fixture.setForceQuit(true, session.app)
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) == nil)
        try await fixture.setForceQuit(false, session.app)
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.openLaunch(session) != nil)
    }

    @Test
    func `Without a webhook the launch is parked`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession(app: try await fixture.makeApp(webhook: nil))
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let aftermath = try await fixture.settle(fixture.completion(task.id))
        #expect(!aftermath.hasDueLaunches)
        #expect(try await fixture.openLaunch(session) != nil)
    }
}
