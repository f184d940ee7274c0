import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// Due rows are removed completely, in small batches.
@Suite struct CleaningTests {
    /// The number of rows of a table.
    private func count(_ fixture: StoreFixture, _ body: @escaping @Sendable (Connection) throws -> Int64?) async throws
        -> Int64
    {
        try await fixture.store.database.read(body) ?? 0
    }

    private func sessions(_ fixture: StoreFixture) async throws -> Int64 {
        try await count(fixture) { db in try db.first("SELECT count(*) FROM session") { $0.integer(0) } }
    }

    private func tasks(_ fixture: StoreFixture) async throws -> Int64 {
        try await count(fixture) { db in try db.first("SELECT count(*) FROM task") { $0.integer(0) } }
    }

    @Test func `Many deleted sessions are removed without a pause between them`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        for _ in 0..<30 {
            let session = try await fixture.makeSession(app: app)
            try await fixture.finished(session)
            _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        }
        while try await fixture.store.upkeep.clean(.forgottenSessions, at: fixture.now, rows: 100).hasMore {}
        #expect(try await sessions(fixture) == 0)
        try await expectSoundLedger(fixture)
    }

    @Test func `A batch removes at most its limit of rows`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create((0..<100).map { fixture.download("/\($0)") }, in: session)
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        var left: Int64 = 100
        var pieces = 0
        while try await fixture.store.upkeep.clean(.forgottenSessions, at: fixture.now, rows: 80).hasMore {
            let now = try await tasks(fixture)
            #expect(left - now <= 10)
            left = now
            pieces += 1
        }
        #expect(pieces >= 10)
        #expect(try await sessions(fixture) == 0)
    }

    @Test func `The aftermath of many acknowledgements is removed without a pause`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        for _ in 0..<40 {
            let session = try await fixture.makeSession(app: app)
            try await fixture.finished(session)
            _ = try await fixture.store.sessions.acknowledge(through: 3, epoch: nil, in: session.id, at: fixture.now)
        }
        fixture.advance(.seconds(3600))
        while try await fixture.store.upkeep.clean(.events, at: fixture.now, rows: 50).hasMore {}
        #expect(
            try await count(fixture) { db in try db.first("SELECT count(*) FROM event") { $0.integer(0) } } == 0)
        fixture.advance(.seconds(7 * 24 * 3600))
        while try await fixture.store.upkeep.clean(.acknowledgedContents, at: fixture.now, rows: 50).hasMore {}
        while try await fixture.store.upkeep.clean(.tasks, at: fixture.now, rows: 50).hasMore {}
        #expect(try await tasks(fixture) == 0)
        #expect(
            try await count(fixture) { db in try db.first("SELECT count(*) FROM acknowledgement") { $0.integer(0) } }
                == 0)
    }

    @Test func `Acknowledged content may outlive the retention of unacknowledged content`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.finished(session)
        fixture.advance(.seconds(30 * 24 * 3600 - 60))
        _ = try await fixture.store.sessions.acknowledge(through: 3, epoch: nil, in: session.id, at: fixture.now)
        let end = fixture.now + .seconds(24 * 3600)
        fixture.advance(.seconds(3600))
        #expect(try await fixture.clean().unreadContents == 0)
        let content = try #require(try await fixture.store.tasks.read(task.id).content)
        #expect((content.isExpired, content.expiresAt) == (false, end))
        #expect(try await fixture.store.files.content(of: task.id).record.expiresAt == end)
        fixture.advance(.seconds(23 * 3600))
        #expect(try await fixture.clean().unreadContents == 0)
        #expect(try await fixture.store.tasks.read(task.id).content?.isExpired == true)
    }

    @Test func `A deleted app is not found, claimed or authenticated before its rows are removed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let key = KeyRecord(
            app: session.app, keyIdentifier: "k", hash: [1], scopes: Scope.allCases, createdAt: fixture.now,
            expiresAt: nil)
        try await fixture.store.apps.addKey(key)
        let task = try await fixture.finished(session)
        try await fixture.create([fixture.download()], in: session)
        let other = try await fixture.makeSession()
        try await fixture.create([fixture.download()], in: other)
        _ = try await fixture.store.apps.delete(session.app)
        #expect(try await sessions(fixture) == 2)
        #expect(try await fixture.store.apps.key("k") == nil)
        await #expect(throws: DomainError.notFound) { try await fixture.store.sessions.read(session.id) }
        await #expect(throws: DomainError.notFound) { try await fixture.store.tasks.read(task.id) }
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.sessions.events(of: session.id, after: 0, limit: 10)
        }
        await #expect(throws: DomainError.sessionInvalidated) {
            try await fixture.create([fixture.download()], in: session)
        }
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.sessions.open(
                "new", app: session.app, configuration: nil, description: nil, onlyCreates: false, at: fixture.now)
        }
        await #expect(throws: DomainError.notFound) { try await fixture.store.apps.addKey(key) }
        // The lanes of both have a task; only one is claimed.
        let first = try await fixture.store.tasks.advance(
            settling: [], after: QueueCursor(), through: .everything, at: fixture.now
        ) { .tasks($0.lanes.map { ($0.id, 1) }) }
        #expect(first.tasks?.map(\.session) == [other.id])
        #expect(first.aftermath.hasQueuedTasks)
        #expect(try await fixture.claim().isEmpty)
        try await fixture.clean(rows: 20)
        #expect(try await sessions(fixture) == 1)
        #expect(
            try await count(fixture) { db in
                try db.first(
                    """
                    SELECT (SELECT count(*) FROM deleted_app) + (SELECT count(*) FROM launch WHERE app <> ?1) + \
                    (SELECT count(*) FROM api_key WHERE app <> ?1) + (SELECT count(*) FROM lane WHERE app <> ?1) + \
                    (SELECT count(*) FROM incarnation WHERE app <> ?1)
                    """, other.app.rawValue
                ) { $0.integer(0) }
            } == 0)
        try await expectSoundLedger(fixture)
    }

    @Test func `A deleted app stays marked until its last launch is removed`() async throws {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
        try await stage.crowd(launches: 499, apps: 0)
        #expect(try await Launches.count(of: stage.store) == 500)
        _ = try await stage.store.apps.delete(stage.app)
        while try await stage.store.upkeep.clean(.deletedApps, at: stage.now, rows: 400).hasMore {}
        #expect(try await Launches.count(of: stage.store) == 0)
        let marks = try await stage.store.database.read { db in
            try db.first("SELECT count(*) FROM deleted_app") { $0.int(0) }
        }
        #expect(marks == 0)
    }

    @Test func `Lanes are deleted with their last task, and their numbers are not reused`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        @Sendable func lanes() async throws -> [Int64] {
            try await fixture.store.database.read { db in
                try db.all("SELECT id FROM lane ORDER BY id") { $0.integer(0) }
            }
        }
        for host in ["a", "b", "c"] {
            try await fixture.create([fixture.download(host: host)], in: session)
        }
        let claimed = try await fixture.claim()
        try await fixture.clean()
        #expect(try await lanes() == [1, 2, 3])
        try await fixture.settle(fixture.completion(claimed[1].id), fixture.completion(claimed[2].id))
        try await fixture.clean()
        #expect(try await lanes() == [1])
        try await fixture.create([fixture.download(host: "c")], in: session)
        #expect(try await lanes() == [1, 4])
        try await expectSoundLedger(fixture)
    }

    @Test func `The incarnations of an identifier are kept for a month after its last session`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        func use() async throws -> Int64 {
            let session = try await fixture.makeSession("s", app: app)
            _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
            return session.incarnation
        }
        #expect(try await use() == 1)
        fixture.advance(.seconds(29 * 24 * 3600))
        try await fixture.clean()
        #expect(try await use() == 2)
        fixture.advance(.seconds(29 * 24 * 3600))
        try await fixture.clean()
        #expect(try await use() == 3)
        fixture.advance(.seconds(30 * 24 * 3600))
        try await fixture.clean()
        let rows = try await count(fixture) { db in
            try db.first("SELECT count(*) FROM incarnation") { $0.integer(0) }
        }
        #expect(rows == 0)
    }

    @Test func `Keys are kept for a month after their end`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        try await fixture.store.apps.addKey(
            KeyRecord(
                app: app, keyIdentifier: "k", hash: [1], scopes: [], createdAt: fixture.now,
                expiresAt: fixture.now + .seconds(60)))
        fixture.advance(Store.Upkeep.expiredKeyRetention)
        try await fixture.clean()
        #expect(try await fixture.store.apps.keys(of: app).count == 2)
        fixture.advance(.seconds(60))
        try await fixture.clean()
        #expect(try await fixture.store.apps.keys(of: app).count == 1)
    }

    @Test func `Pauses of origins are kept until they end, the longest of each app and origin`() async throws {
        let fixture = try await StoreFixture()
        let (tasks, app) = (fixture.store.tasks, try await fixture.makeApp().rawValue)
        func pause(_ origin: String, _ wait: Int, app: Int64 = 7) -> OriginPause {
            OriginPause("http://\(origin):80", app: app, retryAfter: .seconds(wait), at: fixture.now)
        }
        let kept = [pause("a", 90, app: app), pause("a", 80), pause("b", 70)]
        _ = try await tasks.settle([], pauses: [pause("a", 60), kept[1], pause("a", 50)], at: fixture.now)
        _ = try await tasks.settle([], pauses: [kept[0], kept[2]], at: fixture.now)
        #expect(try await tasks.pauses(at: fixture.now) == kept)
        fixture.advance(.seconds(80))
        #expect(try await tasks.pauses(at: fixture.now) == [kept[0]])
        func rows() async throws -> Int64 {
            try await count(fixture) { db in try db.first("SELECT count(*) FROM origin_pause") { $0.integer(0) } }
        }
        try await fixture.clean()
        #expect(try await rows() == 1)
        _ = try await fixture.store.apps.delete(AppID(app))
        try await fixture.clean()
        #expect(try await rows() == 0)
    }

    @Test(.enabled(if: !TestStore.isOnServer)) func `The file shrinks after many deletions`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create((0..<400).map { fixture.download("/\($0)") }, in: session)
        for task in try await fixture.claim() {
            try await fixture.settle(fixture.completion(task.id, bytes: [UInt8](repeating: 7, count: 60_000)))
        }
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        try await fixture.clean()
        fixture.store.close()
        let size = try #require(fileLength(fixture.folder.file("test.db")))
        // 8 MiB are kept free.
        #expect(size < 12 << 20)
    }

    @Test func `Tasks that did not succeed are listed by their outcome`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        for outcome in [Outcome.failed, .succeeded, .httpError, .failed] {
            try await fixture.finished(session, outcome)
        }
        func numbers(_ filter: TaskFilter, after: Int64 = 0) async throws -> [Int64] {
            try await fixture.store.tasks.list(in: session.id, filter, after: after, limit: 10).map(\.number)
        }
        #expect(try await numbers(TaskFilter(outcomes: [.failed])) == [1, 4])
        #expect(try await numbers(TaskFilter(outcomes: [.failed]), after: 1) == [4])
        #expect(try await numbers(TaskFilter(states: [.running], outcomes: [.failed])) == [])
        #expect(try await numbers(TaskFilter(outcomes: [.succeeded])) == [2])
    }
}

/// The cost of one transaction is bounded, counted in SQLite's instructions.
@Suite(.enabled(if: !TestStore.isOnServer)) struct CostTests {
    /// The writer's instructions for `body`.
    private func cost(_ fixture: StoreFixture, _ body: () async throws -> Void) async throws -> Int {
        let before = try await fixture.store.database.write { $0.instructions }
        try await body()
        return try await fixture.store.database.write { $0.instructions } - before
    }

    /// Expects that ten times the rows cost less than twice the instructions.
    private func expectBounded(
        sourceLocation: SourceLocation = #_sourceLocation, _ run: (Int) async throws -> Int
    ) async throws {
        let (few, many) = (try await run(20), try await run(200))
        #expect(many < 2 * few, "\(few) instructions with few, \(many) with many", sourceLocation: sourceLocation)
    }

    @Test func `The cost of an acknowledgement is bounded, whatever it covers`() async throws {
        try await expectBounded { count in
            let fixture = try await StoreFixture()
            let session = try await fixture.makeSession()
            try await fixture.create((0..<count).map { fixture.download("/\($0)") }, in: session)
            for task in try await fixture.claim() { try await fixture.settle(fixture.completion(task.id)) }
            return try await cost(fixture) {
                _ = try await fixture.store.sessions.acknowledge(
                    through: Int64(3 * count), epoch: nil, in: session.id, at: fixture.now)
            }
        }
    }

    @Test func `The cost of deleting a session is bounded, whatever it has`() async throws {
        try await expectBounded { count in
            let fixture = try await StoreFixture()
            let session = try await fixture.makeSession()
            try await fixture.create((0..<count).map { fixture.download("/\($0)") }, in: session)
            return try await cost(fixture) {
                _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
            }
        }
    }

    @Test func `The cost of deleting an app is bounded, whatever it has`() async throws {
        try await expectBounded { count in
            let fixture = try await StoreFixture()
            let app = try await fixture.makeApp()
            for _ in 0..<count { try await fixture.create([fixture.download()], in: fixture.makeSession(app: app)) }
            return try await cost(fixture) { _ = try await fixture.store.apps.delete(app) }
        }
    }

    @Test func `The cost of a session-wide command's step is bounded, even with few matches`() async throws {
        try await expectBounded { count in
            let fixture = try await StoreFixture()
            let session = try await fixture.makeSession()
            try await fixture.create((0..<count).map { fixture.download("/\($0)") }, in: session)
            return try await cost(fixture) {
                _ = try await fixture.store.tasks.command(
                    .suspend, TaskFilter(group: "g"), in: session.id, after: 0, limit: 10, at: fixture.now)
            }
        }
    }

    @Test func `The longest commit of cancelling discretionary tasks is bounded`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        let session = try await fixture.makeSession(app: app) { $0.isDiscretionary = true }
        let tasks = 2 * Store.Tasks.commandGroup + 1
        try await fixture.create((0..<tasks).map { fixture.download("/\($0)") }, in: session)
        let before = fixture.store.performedWrites
        var changes = AppChanges()
        changes.backgroundRefreshStatus = .denied
        let (_, aftermath) = try await fixture.store.apps.change(app, changes, ifRevision: nil, at: fixture.now)
        #expect(aftermath.completedTasks.count == tasks)
        #expect(fixture.store.performedWrites - before == 4)
        try await expectSoundLedger(fixture)
    }

    @Test func `The cost of creating a task is bounded in a session with many lanes`() async throws {
        try await expectBounded { count in
            let fixture = try await StoreFixture()
            let session = try await fixture.makeSession()
            try await fixture.create((0..<count).map { fixture.download(host: "h\($0)") }, in: session)
            return try await cost(fixture) { try await fixture.create([fixture.download(host: "h0")], in: session) }
        }
    }

    @Test func `The cost of every chore's batch is bounded`() async throws {
        for chore in [Chore.forgottenSessions, .deletedApps, .acknowledgedContents, .events, .unacknowledgedContents] {
            try await expectBounded { count in
                let fixture = try await StoreFixture()
                let app = try await fixture.makeApp()
                let session = try await fixture.makeSession(app: app)
                try await fixture.create((0..<count).map { fixture.download("/\($0)", host: "h\($0)") }, in: session)
                for task in try await fixture.claim() { try await fixture.settle(fixture.completion(task.id)) }
                switch chore {
                case .forgottenSessions: _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
                case .deletedApps:
                    for _ in 0..<count { _ = try await fixture.makeSession(app: app) }
                    _ = try await fixture.store.apps.delete(app)
                case .unacknowledgedContents: fixture.advance(.seconds(30 * 24 * 3600))
                default:
                    _ = try await fixture.store.sessions.acknowledge(
                        through: Int64(3 * count), epoch: nil, in: session.id, at: fixture.now)
                    fixture.advance(.seconds(24 * 3600))
                }
                return try await cost(fixture) {
                    let cleaning = try await fixture.store.upkeep.clean(chore, at: fixture.now, rows: 16)
                    #expect(cleaning.hasMore, "\(chore)")
                }
            }
        }
    }

    @Test func `Evaluating launch rules without a change writes nothing`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        #expect(try await fixture.openLaunch(session) != nil)
        let changes = { @Sendable (db: Connection) in try db.first("SELECT total_changes()") { $0.int(0) } ?? 0 }
        let before = try await fixture.store.database.write(changes)
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
        #expect(try await fixture.store.database.write(changes) == before)
    }
}
