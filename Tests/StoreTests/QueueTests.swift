import Base
import Core
import TestSupport
import Testing

@testable import Store

struct QueueTests {
    /// The result of one scan of the queue, and its query.
    private struct Look: Sendable {
        var origins: [String] = []
        var lanesAsked = 0
        var originsAsked = 0
    }

    private func look(
        _ fixture: StoreFixture, after cursor: inout QueueCursor,
        room: @escaping @Sendable (String) -> Int = { _ in .max },
        mayStart: @escaping @Sendable (QueuedLane) -> Bool = { _ in true },
        pick: @escaping @Sendable (Queue) -> Claim = { _ in .tasks([]) }
    ) async throws -> (look: Look, claimed: [ClaimedTask], isWhole: Bool) {
        let look = Locked(Look())
        let sieve = QueueSieve(
            room: { origin, _ in
                look.withLock { $0.originsAsked += 1 }
                return room(origin)
            },
            mayStart: { lane in
                look.withLock { $0.lanesAsked += 1 }
                return mayStart(lane)
            })
        let round = try await fixture.store.tasks.advance(settling: [], after: cursor, through: sieve, at: fixture.now)
        {
            queue in
            look.withLock { $0.origins = queue.lanes.map(\.origin) }
            return pick(queue)
        }
        cursor = round.cursor
        return (look.withLock { $0 }, round.tasks ?? [], round.isWhole)
    }

    @Test
    func `Every window contains every app, however many tasks another one has queued`() async throws {
        let fixture = try await StoreFixture()
        let crowd = try await fixture.makeSession()
        _ = try await fixture.create((0..<1500).map { fixture.download(host: "h\($0).example") }, in: crowd)
        let modest = try await fixture.makeSession()
        _ = try await fixture.create(fixture.download(host: "modest.example"), in: modest)
        var cursor = QueueCursor()
        let fairness = Locked(FairShare())
        let (seen, claimed, _) = try await look(
            fixture, after: &cursor,
            pick: { queue in
                let lanes = queue.lanes.map {
                    FairShare.Lane(
                        app: $0.app.rawValue, session: $0.session.rawValue, host: $0.origin, priority: 0.5, ready: 1,
                        running: 0, limit: 6)
                }
                let grants = fairness.withLock { $0.pick(lanes, freeSlots: 2, hostLimit: 32) }
                return .tasks(grants.map { (queue.lanes[$0.lane].id, $0.count) })
            })
        #expect(claimed.count == 2 && claimed.contains { $0.session == modest.id })
        #expect(seen.lanesAsked <= Store.Tasks.laneWindow)
    }

    @Test
    func `Every lane is scanned, and the scan of the queue ends`() async throws {
        let fixture = try await StoreFixture()
        var all: Set<String> = []
        for (app, count) in [700, 1, 900, 40].enumerated() {
            let hosts = (0..<count).map { "h\($0).app\(app).example" }
            _ = try await fixture.create(hosts.map { fixture.download(host: $0) }, in: try await fixture.makeSession())
            all.formUnion(hosts.map { "https://\($0):443" })
        }
        var cursor = QueueCursor()
        var seen: Set<String> = []
        for window in 1... {
            let (found, _, isWhole) = try await look(fixture, after: &cursor)
            #expect(found.lanesAsked <= Store.Tasks.laneWindow)
            seen.formUnion(found.origins)
            guard !isWhole else { break }
            try #require(window < 30)
        }
        #expect(seen == all && cursor.isAtStart)
    }

    @Test
    func `Many apps alternate over several windows`() async throws {
        let fixture = try await StoreFixture()
        for number in 0..<(Store.Tasks.appWindow + 20) {
            let session = try await fixture.makeSession()
            _ = try await fixture.create(fixture.download(host: "h\(number).example"), in: session)
        }
        var cursor = QueueCursor()
        let (first, _, isFirstWhole) = try await look(fixture, after: &cursor)
        let (second, _, isWhole) = try await look(fixture, after: &cursor)
        #expect(first.origins.count == Store.Tasks.appWindow && !isFirstWhole)
        #expect(Set(first.origins + second.origins).count == Store.Tasks.appWindow + 20 && isWhole)
    }

    @Test
    func `Lanes of a full origin are not read until it has slots, and then as many as it has`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        for _ in 0..<300 {
            _ = try await fixture.create(
                fixture.download(host: "full.example"), in: try await fixture.makeSession(app: app))
        }
        _ = try await fixture.create(
            fixture.download(host: "quiet.example"), in: try await fixture.makeSession(app: app))
        var cursor = QueueCursor()
        let (blocked, _, isWhole) = try await look(fixture, after: &cursor, room: { $0.contains("full") ? 0 : .max })
        #expect(blocked.origins == ["https://quiet.example:443"] && isWhole)
        #expect(blocked.lanesAsked == 1 && blocked.originsAsked == 2)
        let (free, _, _) = try await look(fixture, after: &cursor, room: { $0.contains("full") ? 3 : .max })
        #expect(free.origins.filter { $0.contains("full") }.count == 3 && free.lanesAsked == 4)
    }

    @Test
    func `A lane that may not start hides no other lane, and sessions at one origin alternate`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        var sessions: [SessionID] = []
        for _ in 0..<6 {
            let session = try await fixture.makeSession(app: app)
            _ = try await fixture.create([fixture.download(), fixture.download()], in: session)
            sessions.append(session.id)
        }
        let held = Set(sessions[..<3])
        var served: [SessionID] = []
        for _ in 0..<6 {
            var cursor = QueueCursor()
            fixture.advance(.milliseconds(1))
            let (_, claimed, _) = try await look(
                fixture, after: &cursor, room: { _ in 1 }, mayStart: { !held.contains($0.session) },
                pick: { .tasks($0.lanes.map { ($0.id, 1) }) })
            served += claimed.map(\.session)
        }
        #expect(served == Array(sessions[3...]) + Array(sessions[3...]))
        try await expectSoundLedger(fixture)
    }
}
