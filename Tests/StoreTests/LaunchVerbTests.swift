import Core
import Store
import TestSupport
import Testing

@Suite struct LaunchVerbTests {
    @Test func `A claim returns the members of the request, once`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        let claimed = try await stage.claim()
        #expect(claimed.count == 1)
        #expect(claimed[0].attempt == 1)
        #expect(claimed[0].sessionIdentifier == "a")
        #expect(claimed[0].reasons == .tasksFinished)
        #expect(claimed[0].lastSeq == 2)
        #expect(try await stage.claim().isEmpty)
        let contents = try await stage.store.launches.contents(of: session, through: 2, limit: 1)
        #expect(contents.pendingEvents == 2)
        #expect(contents.taskCounts.cancelled == 1)
        #expect(contents.events.map(\.seq) == [1])
        #expect(try await stage.store.launches.agenda(at: stage.now).next == stage.now + .seconds(60))
    }

    @Test func `The first stored body is kept`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        let launch = try await stage.claim()[0]
        #expect(try await stage.store.launches.freezeBody([1], of: launch.id) == [1])
        #expect(try await stage.store.launches.freezeBody([2], of: launch.id) == [1])
        try await stage.report(launch, failed)
        stage.advance(by: .seconds(5))
        #expect(try await stage.claim()[0].body == [1])
    }

    @Test func `Launches are listed from either end, and by time`() async throws {
        let stage = try await LaunchStage()
        var times: [Timestamp] = []
        for name in ["a", "b", "c"] {
            stage.advance(by: .seconds(1))
            times.append(stage.now)
            try await stage.finishTask(in: name)
        }
        func names(_ span: ListSpan, after cursor: Int64 = 0, limit: Int = 10) async throws -> [String?] {
            try await stage.store.launches.list(
                of: stage.app, session: nil, states: [], kinds: [], span, after: cursor, limit: limit
            ).map(\.launch.sessionIdentifier)
        }
        #expect(try await names(ListSpan()) == ["a", "b", "c"])
        #expect(try await names(ListSpan(.descending)) == ["c", "b", "a"])
        #expect(try await names(ListSpan(.descending, createdBefore: times[2])) == ["b", "a"])
        #expect(try await names(ListSpan(createdAfter: times[0])) == ["b", "c"])
        #expect(try await names(ListSpan(createdAfter: times[0], createdBefore: times[1])) == [])
    }

    @Test func `Of the launches that one call redelivers the newest is sent first`() async throws {
        let stage = try await LaunchStage()
        for name in ["a", "b", "c"] {
            try await stage.finishTask(in: name)
            try await stage.report(try await stage.claim()[0], failed)
        }
        _ = try await stage.store.launches.redeliver(
            LaunchFilter(), of: stage.app, before: 0, limit: 10, at: stage.now)
        var names: [String?] = []
        while let launch = try await stage.claim(limit: 1).first { names.append(launch.sessionIdentifier) }
        #expect(names == ["c", "b", "a"])
    }

    @Test func `First attempts precede retries, and apps alternate`() async throws {
        let stage = try await LaunchStage()
        let other = try await LaunchStage.addApp("other", to: stage.store)
        try await stage.finishTask(in: "retry")
        try await stage.report(try await stage.claim()[0], failed)
        stage.advance(by: .seconds(10))
        for number in 0..<5 { try await stage.finishTask(in: "new\(number)") }
        try await stage.finishTask(in: "x", of: other)
        let claimed = try await stage.claim(limit: 5)
        #expect(claimed.map(\.app) == [stage.app, other, stage.app, stage.app, stage.app])
        #expect(claimed.allSatisfy { $0.attempt == 1 })
        let rest = try await stage.claim(inFlight: [stage.app: 2])
        #expect(rest.map(\.sessionIdentifier) == ["new4", "retry"])
    }

    @Test func `Attempts are repeated on their schedule and then exhausted`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        var waits: [Int64] = []
        for _ in 0..<10 {
            try await stage.report(try await stage.claim()[0], failed)
            guard case .pending(_, let due) = try await stage.launches()[0].state else { break }
            waits.append((due - stage.now).milliseconds / 1000)
            stage.advance(to: due)
        }
        #expect(waits == [5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
        try await stage.report(try await stage.claim()[0], failed)
        let launch = try await stage.launches()[0]
        #expect(launch.state.name == "exhausted")
        #expect(launch.attempts.count == 11)
        #expect(try await stage.store.sessions.read(session).openLaunch == nil)
        // Without a new reason there is no launch; with one there is.
        _ = try await stage.store.launches.askRules(of: [session], at: stage.now)
        #expect(try await stage.launches().count == 1)
        try await stage.finishTask(in: "a")
        #expect(try await stage.launches().count == 2)
    }

    @Test func `An exhausted launch can be redelivered and completed`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        for _ in 0..<11 {
            try await stage.report(try await stage.claim()[0], failed)
            if case .pending(_, let due) = try await stage.launches()[0].state { stage.advance(to: due) }
        }
        let id = try await stage.launches()[0].launchId
        let (again, _) = try await stage.store.launches.redeliver(id, app: stage.app, at: stage.now)
        #expect(again.state.name == "pending")
        #expect(try await stage.store.sessions.read(session).openLaunch == id)
        try await stage.report(try await stage.claim()[0], .succeeded(.completed(through: nil)))
        #expect(try await stage.launches()[0].state.name == "completed")
        await #expect(throws: DomainError.launchNotOpen) {
            try await stage.store.launches.redeliver(id, app: stage.app, at: stage.now)
        }
        await #expect(throws: DomainError.notFound) {
            try await stage.store.launches.redeliver(id, app: AppID(99), at: stage.now)
        }
    }

    @Test func `An exhausted launch is not redelivered beside an open one`() async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        for _ in 0..<11 {
            try await stage.report(try await stage.claim()[0], failed)
            if case .pending(_, let due) = try await stage.launches()[0].state { stage.advance(to: due) }
        }
        let exhausted = try await stage.launches()[0].launchId
        try await stage.finishTask(in: "a")
        let open = try #require(try await stage.store.sessions.read(session).openLaunch)
        await #expect(throws: DomainError.launchNotOpen) {
            try await stage.store.launches.redeliver(exhausted, app: stage.app, at: stage.now)
        }
        #expect(try await stage.launches().map(\.state.name) == ["exhausted", "pending"])
        #expect(try await stage.store.sessions.read(session).openLaunch == open)
    }

    @Test func `Launches of a period are redelivered in batches, and of each session the newest`() async throws {
        let stage = try await LaunchStage()
        func finish(_ names: String..., with verdict: LaunchReport.Verdict) async throws {
            for name in names { try await stage.finishTask(in: name) }
            let claimed = try await stage.claim()
            #expect(claimed.map(\.sessionIdentifier) == names)
            if case .failed = verdict { stage.advance(by: LaunchSchedule.lifetime) }
            for launch in claimed { try await stage.report(launch, verdict) }
        }
        try await finish("a", "b", with: failed)
        try await finish("d", with: .succeeded(.completed(through: nil)))
        try await finish("a", with: failed)
        try await finish("c", with: .succeeded(nil))
        stage.advance(by: .seconds(1))
        let end = stage.now
        try await stage.finishTask(in: "e")
        #expect(
            try await stage.launches().map(\.state.name)
                == ["exhausted", "exhausted", "completed", "exhausted", "launched", "pending"])

        var filter = LaunchFilter()
        (filter.createdAfter, filter.createdBefore) = (LaunchStage.start + .milliseconds(-1), end)
        func redeliver(_ filter: LaunchFilter) async throws -> [[Int]] {
            var (pieces, before): ([[Int]], Int64) = ([], 0)
            while true {
                let piece = try await stage.store.launches.redeliver(
                    filter, of: stage.app, before: before, limit: 2, at: stage.now)
                pieces.append([piece.matched, piece.changed])
                guard let last = piece.last else { return pieces }
                before = last
            }
        }
        var one = filter
        (one.session, one.states) = ("a", [.completed, .superseded])
        #expect(try await redeliver(one) == [[0, 0], [0, 0], [0, 0]])
        one.createdAfter = stage.now
        #expect(try await redeliver(one) == [[0, 0]])
        // The second of "a", and "c"; then "b"; the first of "a" waits for the second.
        #expect(try await redeliver(filter) == [[2, 2], [1, 1], [1, 0]])
        let launches = try await stage.launches()
        #expect(
            launches.map(\.state.name) == ["exhausted", "pending", "completed", "pending", "pending", "pending"])
        let session = try #require(launches[3].session)
        #expect(try await stage.store.sessions.read(session).openLaunch == launches[3].launchId)
        // Requested redeliveries precede scheduled attempts.
        #expect(Set(try await stage.claim(limit: 3).map(\.sessionIdentifier)) == ["a", "b", "c"])
        // An attempt in flight is not repeated.
        one.states = [.delivering]
        (one.createdAfter, one.createdBefore) = (nil, nil)
        #expect(try await redeliver(one) == [[0, 0], [1, 0], [0, 0], [0, 0]])
    }

    @Test func `A launch that is completed during its attempt stays completed`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        let launch = try await stage.claim()[0]
        _ = try await stage.store.launches.answer(
            launch.launchId, app: stage.app, with: .completed(through: nil), epoch: nil, at: stage.now)
        for verdict: LaunchReport.Verdict in [
            failed, .succeeded(nil), .succeeded(.completed(through: nil)), .interrupted,
        ] {
            try await stage.report(launch, verdict)
            #expect(try await stage.launches()[0].state.name == "completed")
        }
    }

    @Test(arguments: [false, true])
    func `A response completes no launch while another client is attached`(isLaunchedApp: Bool) async throws {
        let stage = try await LaunchStage()
        let session = try await stage.finishTask(in: "a")
        let launch = try await stage.claim()[0]
        _ = try await stage.store.sessions.attach(
            .take(ttl: .seconds(30), launchId: isLaunchedApp ? launch.launchId : nil, takeover: false), to: session,
            at: stage.now)
        try await stage.report(launch, .succeeded(.completed(through: nil)))
        let record = try await stage.launches()[0]
        #expect(record.state.name == (isLaunchedApp ? "completed" : "launched"))
        #expect(record.attempts.last?.error?.contains("attachment") == (isLaunchedApp ? nil : true))
        let acknowledged = try await stage.store.sessions.read(session).acknowledgedSeq
        #expect((acknowledged > 0) == isLaunchedApp)
    }

    @Test func `A missed deadline is a failed attempt, an expired lease is none`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.report(try await stage.claim()[0], .succeeded(nil))
        stage.advance(by: .seconds(60))
        #expect(try await stage.store.launches.agenda(at: stage.now).hasExpired)
        _ = try await stage.store.launches.expire(at: stage.now, limit: 10) { 0.5 }
        let due = stage.now + .milliseconds(5500)
        #expect(try await stage.launches()[0].state == .pending(attempts: 1, nextAttemptAt: due))
        stage.advance(to: due)
        _ = try await stage.claim()
        stage.advance(by: .seconds(60))
        _ = try await stage.store.launches.expire(at: stage.now, limit: 10) { 0 }
        #expect(try await stage.launches()[0].state == .pending(attempts: 1, nextAttemptAt: stage.now))
    }

    @Test func `After a crash the attempts in flight are repeated`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        let launch = try await stage.claim()[0]
        _ = try await stage.store.launches.freezeBody([7], of: launch.id)
        stage.store.close()
        let store = try await LaunchStage.open(stage.folder)
        defer { store.close() }
        _ = try await store.launches.recover(at: stage.now)
        let again = try await LaunchStage.claim(store, limit: 1, at: stage.now)
        #expect(again.map(\.launchId) == [launch.launchId])
        #expect(again[0].attempt == 1)
        #expect(again[0].body == [7])
    }

    @Test func `After a long stop due launches are sent one after the other, after a short one at once`() async throws {
        for (stop, expected) in [(Duration.seconds(50), [4, 4, 4]), (.seconds(7200), [1, 2, 4])] {
            let stage = try await LaunchStage()
            for number in 0..<4 { try await stage.finishTask(in: "\(number)") }
            stage.advance(by: stop)
            stage.store.close()
            let store = try await LaunchStage.open(stage.folder)
            defer { store.close() }
            _ = try await store.launches.recover(at: stage.now)
            var counts: [Int] = []
            for wait in [0, 200, 400] {
                stage.advance(by: .milliseconds(wait))
                let claimed = try await LaunchStage.claim(store, limit: 64, at: stage.now)
                counts.append((counts.last ?? 0) + claimed.count)
            }
            #expect(counts == expected, "\(stop)")
        }
    }

    @Test func `Launches are listed by session, states and kinds, page by page`() async throws {
        let stage = try await LaunchStage()
        for name in ["a", "b", "c"] { try await stage.finishTask(in: name) }
        try await stage.report(try await stage.claim(limit: 1)[0], .succeeded(nil))
        func list(
            _ session: String? = nil, _ states: Set<LaunchState.Phase> = [], _ kinds: Set<LaunchKind> = [],
            after: Int64 = 0
        ) async throws -> [String?] {
            try await stage.store.launches.list(
                of: stage.app, session: session, states: states, kinds: kinds, after: after, limit: 2
            ).map(\.launch.sessionIdentifier)
        }
        #expect(try await list() == ["a", "b"])
        #expect(try await list(after: 2) == ["c"])
        #expect(try await list("b") == ["b"])
        #expect(try await list(nil, [.launched]) == ["a"])
        #expect(try await list(nil, [.launched, .pending]) == ["a", "b"])
        #expect(try await list(nil, [.pending, .exhausted]) == ["b", "c"])
        #expect(try await list(nil, [], [.performFetch]) == [])
        #expect(try await list(nil, [.pending, .launched], [.performFetch, .handleEvents], after: 2) == ["c"])
    }
}

@Suite struct WebhookVerbTests {
    @Test func `Launches of an app without a webhook are parked, and released one after the other`() async throws {
        let stage = try await LaunchStage()
        try await stage.webhook { $0.url = nil }
        for name in ["a", "b", "c"] { try await stage.finishTask(in: name) }
        #expect(try await stage.launches().allSatisfy { $0.state == .parked(attempts: 0, reason: .noURL) })
        stage.advance(by: .seconds(86_400 * 10))
        try await stage.webhook { $0.url = "https://other.example/" }
        let dues = try await stage.launches().map { $0.state.dueAt }
        #expect(dues == [0, 200, 400].map { stage.now + .milliseconds($0) })
        #expect(try await stage.launches().allSatisfy { $0.expiresAt ?? stage.now > stage.now + .seconds(86_400) })
        #expect(try await stage.claim().count == 1)
    }

    @Test func `Pausing parks pending and delivering launches, and a response still completes its launch`() async throws
    {
        let stage = try await LaunchStage()
        for name in ["a", "b"] { try await stage.finishTask(in: name) }
        let launch = try await stage.claim(limit: 1)[0]
        try await stage.webhook { $0.state = .paused }
        #expect(try await stage.launches().map(\.state.name) == ["parked", "parked"])
        try await stage.report(launch, .succeeded(.completed(through: nil)))
        #expect(try await stage.launches().map(\.state.name) == ["completed", "parked"])
        #expect(try await stage.claim().isEmpty)
    }

    @Test func `Force quit parks all launches, and no new one is created until activation`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.change { $0.isForceQuit = true }
        let session = try await stage.finishTask(in: "b")
        #expect(try await stage.launches().map(\.state) == [.parked(attempts: 0, reason: .forceQuit)])
        try await stage.change { $0.isForceQuit = false }
        _ = try await stage.store.launches.askRules(of: [session], at: stage.now)
        #expect(try await stage.launches().map(\.state.name) == ["pending", "pending"])
    }

    @Test func `The circuit breaker opens after five failures over half a minute, and one probe closes it`()
        async throws
    {
        let stage = try await LaunchStage()
        for number in 0..<6 { try await stage.finishTask(in: "s\(number)") }
        for launch in try await stage.claim() { try await stage.report(launch, failed) }
        stage.advance(by: .seconds(31))
        let fifth = try await stage.claim(limit: 1)[0]
        try await stage.report(fifth, failed)
        // Open: due launches are delayed without a charge.
        #expect(try await stage.claim().isEmpty)
        let agenda = try await stage.store.launches.agenda(at: stage.now)
        #expect(!agenda.hasDueLaunches)
        #expect(agenda.next == stage.now + .seconds(30))
        try await stage.finishTask(in: "new")
        #expect(try await stage.claim().isEmpty)
        stage.advance(by: .seconds(30))
        let probe = try await stage.claim()
        #expect(probe.count == 1)
        #expect(try await stage.claim(inFlight: [stage.app: 1]).isEmpty)
        try await stage.report(probe[0], .succeeded(nil))
        #expect(try await stage.claim().count == 4)
    }

    @Test func `After five days of failures the webhook is disabled, and enabling it resets the failures`() async throws
    {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        for attempt in 0..<12 {
            let launch = try #require(try await stage.claim().first)
            try await stage.report(launch, failed)
            let webhook = try await stage.store.apps.read(stage.app).webhook
            #expect(webhook.state == (attempt < 11 ? .enabled : .disabled))
            #expect((webhook.disabledReason == nil) == (attempt < 11))
            if attempt == 10 {
                stage.advance(to: LaunchStage.start + .seconds(86_400 * 6))
                try await stage.finishTask(in: "a")
            } else if case .pending(_, let due) = try await stage.launches()[0].state {
                stage.advance(to: due)
            }
        }
        #expect(try await stage.launches().map(\.state.name) == ["exhausted", "parked"])
        try await stage.webhook { $0.state = .enabled }
        #expect(try await stage.store.apps.read(stage.app).webhook.disabledReason == nil)
        try await stage.report(try await stage.claim()[0], failed)
        #expect(try await stage.store.apps.read(stage.app).webhook.state == .enabled)
    }

    @Test func `410 disables at once`() async throws {
        let stage = try await LaunchStage()
        for name in ["a", "b"] { try await stage.finishTask(in: name) }
        try await stage.report(try await stage.claim(limit: 1)[0], .gone)
        #expect(try await stage.store.apps.read(stage.app).webhook.state == .disabled)
        #expect(
            try await stage.launches().map(\.state) == [
                .parked(attempts: 1, reason: .disabled), .parked(attempts: 0, reason: .disabled),
            ])
    }

    @Test func `Finished launches are deleted after a month`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.report(try await stage.claim()[0], .succeeded(.completed(through: nil)))
        try await stage.finishTask(in: "b")
        stage.advance(by: Store.Launches.retention)
        #expect(try await !stage.store.upkeep.clean(.launches, at: stage.now, rows: 30).hasMore)
        #expect(try await stage.launches().map(\.sessionIdentifier) == ["b"])
    }
}
