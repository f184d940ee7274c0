import Core
import TestSupport
import Testing

@testable import SQL
@testable import Store

/// Many launches, and the cost of finding the next one.
@Suite struct LaunchQueueTests {
    @Test(.enabled(if: !TestStore.isOnServer))
    func `The cost of a claim does not depend on the number of due launches and apps`()
        async throws
    {
        let few = try await costOfClaim(launches: 10, apps: 10)
        let many = try await costOfClaim(launches: 3000, apps: 1000)
        #expect(many < few * 2, "\(few) instructions, \(many)")
    }

    @Test(.enabled(if: !TestStore.isOnServer)) func `The cost of finding due launches does not depend on their number`()
        async throws
    {
        let few = try await costOfAgenda(launches: 10, apps: 10)
        let many = try await costOfAgenda(launches: 3000, apps: 1000)
        #expect(many < few * 2, "\(few) instructions, \(many)")
    }

    @Test(.enabled(if: !TestStore.isOnServer)) func `An open circuit breaker delays many launches at the cost of one`()
        async throws
    {
        func cost(_ launches: Int) async throws -> Int {
            let stage = try await LaunchStage()
            try await stage.finishTask(in: "a")
            try await stage.crowd(launches: launches, apps: 0)
            for launch in try await stage.claim() { try await stage.report(launch, failed) }
            stage.advance(by: .seconds(31))
            let fifth = try await stage.claim(limit: 1)[0]
            return try await stage.instructions {
                try await stage.report(fifth, failed)
                #expect(try await stage.claim().isEmpty)
            }
        }
        let (few, many) = (try await cost(10), try await cost(3000))
        #expect(many < few * 2, "\(few) instructions, \(many)")
    }

    @Test func `Apps alternate, one launch at a time`() async throws {
        let stage = try await LaunchStage()
        let apps = [
            stage.app, try await LaunchStage.addApp("b", to: stage.store),
            try await LaunchStage.addApp("c", to: stage.store),
        ]
        for app in apps { for name in ["1", "2", "3"] { try await stage.finishTask(in: name, of: app) } }
        var slots = LaunchSlots()
        var served: [AppID] = []
        // The clock stands still, so the order does not depend on it.
        for _ in 0..<9 {
            for launch in try await LaunchStage.claim(stage.store, slots: slots, limit: 1, at: stage.now) {
                slots.began(launch.id, of: launch.app, at: 0)
                served.append(launch.app)
            }
        }
        #expect(served == apps + apps + apps)
    }

    @Test func `A redelivered launch comes first, despite an open circuit breaker`() async throws {
        let stage = try await LaunchStage()
        for number in 0..<6 { try await stage.finishTask(in: "s\(number)") }
        let failing = try await stage.claim()
        for launch in failing { try await stage.report(launch, failed) }
        stage.advance(by: .seconds(31))
        try await stage.report(try await stage.claim(limit: 1)[0], failed)
        #expect(try await stage.claim().isEmpty)
        _ = try await stage.store.launches.redeliver(failing[2].launchId, app: stage.app, at: stage.now)
        #expect(try await stage.claim().map(\.launchId) == [failing[2].launchId])
        let waiting = try await stage.launches().first { $0.launchId == failing[3].launchId }
        #expect(waiting?.state.dueAt.map { $0 > LaunchStage.start } == true)
    }

    @Test func `A launch has the time at which its circuit breaker admits it`() async throws {
        let stage = try await LaunchStage()
        for number in 0..<6 { try await stage.finishTask(in: "s\(number)") }
        for launch in try await stage.claim() { try await stage.report(launch, failed) }
        stage.advance(by: .seconds(31))
        try await stage.report(try await stage.claim(limit: 1)[0], failed)
        let next = try await stage.launches().compactMap(\.state.dueAt)
        #expect(next.count == 6 && next.allSatisfy { $0 >= stage.now + .seconds(30) })
    }

    private func costOfClaim(launches: Int, apps: Int) async throws -> Int {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.crowd(launches: launches, apps: apps)
        // The first claim skips the launches at the front of the queue.
        #expect(try await stage.claim(limit: 2).count == 2)
        return try await stage.instructions {
            let claimed = try await stage.claim(limit: 4)
            #expect(claimed.count == 4)
        }
    }

    private func costOfAgenda(launches: Int, apps: Int) async throws -> Int {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.crowd(launches: launches, apps: apps)
        return try await stage.store.database.write { db in
            _ = try stage.store.launches.agenda(at: stage.now, db)
            let before = db.instructions
            let agenda = try stage.store.launches.agenda(at: stage.now, db)
            #expect(agenda.hasDueLaunches)
            return db.instructions - before
        }
    }
}

extension LaunchStage {
    /// Copies the only launch: further launches of its app, and one for each of further apps.
    func crowd(launches: Int, apps: Int) async throws {
        let app = app
        try await store.database.write { db in
            try db.execute(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                INSERT INTO launch (public_id, app, session, session_identifier, kind, state, state_document, reasons, \
                last_seq, due_at, created_at, expires_at) SELECT 'copy' || i, app, session, session_identifier, kind, \
                state, state_document, reasons, last_seq, due_at, created_at, expires_at FROM launch, n WHERE app = ?2
                """, launches, app.rawValue)
            guard apps > 0 else { return }
            try db.execute(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                INSERT INTO app (identifier, webhook_document, refresh_status, limits_document, created_at, \
                next_launch_at) SELECT 'app' || i, webhook_document, refresh_status, limits_document, created_at, \
                next_launch_at FROM app, n WHERE id = ?2
                """, apps, app.rawValue)
            try db.execute(
                """
                INSERT INTO launch (public_id, app, kind, state, state_document, due_at, created_at, expires_at) \
                SELECT 'of' || app.id, app.id, launch.kind, launch.state, state_document, due_at, launch.created_at, \
                expires_at FROM app, launch WHERE launch.id = (SELECT min(id) FROM launch) AND app.id <> ?1
                """, app.rawValue)
        }
    }

    /// The number of instructions of the writer's statements for `body`.
    func instructions(_ body: () async throws -> Void) async throws -> Int {
        let before = try await store.database.write { $0.instructions }
        try await body()
        return try await store.database.write { $0.instructions } - before
    }
}
