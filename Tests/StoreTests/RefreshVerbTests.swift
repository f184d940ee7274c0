import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Store

@Suite struct RefreshVerbTests {
    @Test func `An interval has a next fetch, and an attach postpones it`() async throws {
        let stage = try await LaunchStage()
        var overview = try await stage.store.apps.refresh(of: stage.app)
        #expect(overview.interval == .never)
        #expect(overview.nextFetchAt == nil)
        overview = try await stage.store.apps.setRefreshInterval(.seconds(1000), of: stage.app, at: stage.now)
        let first = try #require(overview.nextFetchAt)
        #expect(first >= stage.now + .seconds(1000))
        #expect(try await stage.store.apps.nextFetchTime() == first)
        stage.advance(by: .seconds(500))
        let session = try await stage.startTask(in: "a").0
        _ = try await stage.store.sessions.clientAttached(to: session, .wait, at: stage.now)
        let second = try #require(try await stage.store.apps.nextFetchTime())
        #expect(second >= stage.now + .seconds(1000))
        stage.advance(by: .seconds(500))
        _ = try await stage.store.sessions.attach(
            .take(ttl: .seconds(30), launchId: nil, takeover: false), to: session, at: stage.now)
        let third = try #require(try await stage.store.apps.nextFetchTime())
        #expect(third >= stage.now + .seconds(1000))
    }

    @Test func `A due fetch is sent once, and its result schedules the next`() async throws {
        let stage = try await LaunchStage()
        let overview = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        stage.advance(to: try #require(overview.nextFetchAt))
        _ = try await stage.store.apps.beginDueFetches(at: stage.now, limit: 10)
        _ = try await stage.store.apps.beginDueFetches(at: stage.now, limit: 10)
        let fetch = try await stage.claim()
        #expect(fetch.map(\.kind) == [.performFetch])
        #expect(fetch[0].expiresAt == stage.now + .seconds(30))
        #expect(try await stage.store.apps.refresh(of: stage.app).why == "A fetch is open.")
        stage.advance(by: .seconds(3))
        try await stage.report(fetch[0], .succeeded(.fetched(.noData)))
        let after = try await stage.store.apps.refresh(of: stage.app)
        #expect(after.history.map(\.result) == [.noData])
        let next = try #require(after.nextFetchAt)
        #expect(next >= stage.now + .seconds(1350))
    }

    @Test func `A fetch without a completion in time fails, and a late completion is refused`() async throws {
        let stage = try await LaunchStage()
        let id = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now).0.launchId
        try await stage.report(try await stage.claim()[0], .succeeded(nil))
        stage.advance(by: .seconds(31))
        _ = try await stage.store.launches.expire(at: stage.now, limit: 10) { 0 }
        let launch = try await stage.store.launches.read(id, app: stage.app)
        #expect(launch.state.name == "exhausted")
        #expect(launch.result == .failed)
        await #expect(throws: DomainError.fetchLate) {
            try await stage.store.launches.answer(
                id, app: stage.app, with: .fetched(.newData), epoch: nil, at: stage.now)
        }
        await #expect(throws: DomainError.notFound) {
            try await stage.store.launches.answer(
                id, app: AppID(99), with: .fetched(.newData), epoch: nil, at: stage.now)
        }
    }

    @Test func `A repeated result of a fetch is accepted after a later fetch has ended`() async throws {
        let stage = try await LaunchStage()
        var ids: [String] = []
        func answer(_ id: String) async throws {
            _ = try await stage.store.launches.answer(
                id, app: stage.app, with: .fetched(.newData), epoch: nil, at: stage.now)
        }
        for _ in 0..<2 {
            ids.append(try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now).0.launchId)
            try await stage.report(try await stage.claim()[0], .succeeded(nil))
            try await answer(ids.last ?? "")
        }
        try await answer(ids[0])
        #expect(try await stage.launches().map(\.state.name) == ["completed", "completed"])
    }

    @Test func `A pending fetch is superseded when its webhook is paused`() async throws {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
        try await stage.webhook { $0.state = .paused }
        #expect(try await stage.launches().map(\.state.name) == ["superseded"])
        #expect(try await stage.store.apps.nextFetchTime() == nil)
        #expect(try await stage.store.apps.refresh(of: stage.app).why == "The webhook is paused.")
        stage.advance(by: .seconds(100_000))
        try await stage.webhook { $0.state = .enabled }
        let next = try #require(try await stage.store.apps.nextFetchTime())
        #expect(next >= stage.now)
        #expect(try await stage.store.apps.refresh(of: stage.app).history.isEmpty)
    }

    @Test func `After a crash a sent fetch reaches its deadline, and an unsent one is superseded`() async throws {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
        let sent = try await stage.claim()[0]
        _ = try await stage.store.launches.recover(at: stage.now)
        #expect(try await stage.launches()[0].state == .launched(attempts: 1, deadline: sent.expiresAt))
        stage.advance(by: .seconds(30))
        _ = try await stage.store.launches.expire(at: stage.now, limit: 10) { 0 }
        #expect(try await stage.launches()[0].result == .failed)
        _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
        stage.advance(by: .seconds(1))
        _ = try await stage.store.apps.recoverRefresh(startedAt: stage.now, at: stage.now)
        #expect(try await stage.launches()[1].state.name == "superseded")
        _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
    }
}

@Suite struct ConditionsVerbTests {
    @Test func `Conditions are stored`() async throws {
        let stage = try await LaunchStage()
        #expect(try await stage.store.apps.conditions() == DeclaredConditions())
        var conditions = Conditions()
        conditions.maximumLoad = 0.5
        conditions.windows = [ServiceWindow(from: 60, to: 120)]
        _ = try await stage.store.apps.setConditions(conditions, .restricted, at: stage.now)
        let kept = try await stage.store.apps.conditions()
        #expect(kept.conditions == conditions)
        #expect(kept.refreshStatus == .restricted)
    }

    @Test func `A stricter status is reported, and ends discretionary tasks and fetches`() async throws {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        let (_, task) = try await stage.startTask(in: "d", discretionary: true)
        let (_, other) = try await stage.startTask(in: "n")
        _ = try await stage.store.apps.setConditions(Conditions(), .denied, at: stage.now)
        let cancelled = try await stage.store.tasks.read(task)
        #expect(cancelled.outcome == .cancelled)
        #expect(cancelled.result?.error?.backgroundTaskCancelledReason == 1)
        #expect(try await stage.store.tasks.read(other).state == .running)
        #expect(try await stage.store.apps.nextFetchTime() == nil)
        let notice = try await stage.claim().first { $0.kind == .refreshStatusDidChange }
        #expect(notice?.refreshStatus == .denied)
        try await stage.report(try #require(notice), .succeeded(nil))
        _ = try await stage.store.apps.setConditions(Conditions(), .available, at: stage.now)
        #expect(try await stage.store.apps.nextFetchTime() != nil)
        let kinds = try await stage.launches().filter { $0.kind == .refreshStatusDidChange }.map(\.state.name)
        #expect(kinds == ["completed", "pending"])
    }

    @Test(arguments: [true, false])
    func `A discretionary task that is created while refresh is denied is cancelled at once, with an event`(
        _ isForAll: Bool
    )
        async throws
    {
        let stage = try await LaunchStage()
        if isForAll {
            _ = try await stage.store.apps.setConditions(Conditions(), .restricted, at: stage.now)
        } else {
            try await stage.change { $0.backgroundRefreshStatus = .denied }
        }
        let (session, task) = try await stage.startTask(in: "d", discretionary: true)
        let cancelled = try await stage.store.tasks.read(task)
        #expect(cancelled.state == .completed && cancelled.outcome == .cancelled)
        #expect(cancelled.result?.error?.backgroundTaskCancelledReason == 1)
        let counts = try await stage.store.sessions.read(session)
        #expect(counts.counts.cancelled == 1 && counts.counts.running == 0)
        #expect(try await stage.store.apps.read(stage.app).unfinishedTasks == 0)
        #expect(try await stage.launches().contains { $0.kind == .handleEvents })
        let (_, other) = try await stage.startTask(in: "n")
        #expect(try await stage.store.tasks.read(other).state == .running)
        // Once allowed again, it runs.
        _ = try await stage.store.apps.setConditions(Conditions(), .available, at: stage.now)
        try await stage.change { $0.backgroundRefreshStatus = .available }
        let (_, later) = try await stage.startTask(in: "d", discretionary: true)
        #expect(try await stage.store.tasks.read(later).state == .running)
    }

    @Test func `A start cancels the discretionary tasks that a crash left`() async throws {
        let stage = try await LaunchStage()
        let (_, task) = try await stage.startTask(in: "d", discretionary: true)
        let (_, other) = try await stage.startTask(in: "n")
        _ = try await stage.store.apps.cancelForbiddenTasks(at: stage.now)
        #expect(try await stage.store.tasks.read(task).state == .running)
        // The state after a crash: the status is stored, its consequences are not.
        var denied = DeclaredConditions()
        denied.refreshStatus = .denied
        let document = stage.store.documents.encode(denied)
        try await stage.store.database.write { db in
            try db.execute("INSERT INTO setting (name, document) VALUES ('conditions', ?1)", document)
        }
        _ = try await stage.store.apps.cancelForbiddenTasks(at: stage.now)
        #expect(try await stage.store.tasks.read(task).result?.error?.backgroundTaskCancelledReason == 1)
        #expect(try await stage.store.tasks.read(other).state == .running)
    }

    @Test func `An app that is denied anyway gets no event for the operator's denial`() async throws {
        let stage = try await LaunchStage()
        try await stage.change { $0.backgroundRefreshStatus = .denied }
        _ = try await stage.store.apps.setConditions(Conditions(), .denied, at: stage.now)
        #expect(try await stage.launches().count == 1)
    }
}
