import Base
import Core
import Glibc
import SQL
import TestSupport
import Testing

@testable import Store

/// Nodes that share a store: each is a store of its own on one database.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
final class NodeTests {
    private let database: PostgreSQLDatabase
    private let (first, second): (StoreFixture, StoreFixture)
    private let fatal = Locked<String?>(nil)

    init() async throws {
        let database = try await SharedPostgreSQL.database()
        let fatal = fatal
        func node(_ name: String) throws -> StoreFixture {
            try StoreFixture(
                at: .server(PostgreSQLServer(database.connection), node: name, contents: "s3://bucket"),
                onFatalError: { error in
                    fatal.withLock { $0 = "\(error)" }
                    pthread_exit(nil)
                })
        }
        self.database = database
        (first, second) = (try node("first"), try node("second"))
    }

    /// Has a node be silent for too long, as far as the server knows.
    private func silence(_ node: String) async throws {
        try await database.query("UPDATE node SET lease_until = now() - interval '1 second' WHERE id = '\(node)'")
    }

    // MARK: Tasks

    @Test func `No task is taken twice, however many nodes ask at once`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<200).map { _ in first.download() }, in: session)
        let taken = Locked<[TaskID]>([])
        try await withThrowingTaskGroup { group in
            for node in [first, second, first, second] {
                group.addTask {
                    while case let tasks = try await node.claim(3), !tasks.isEmpty {
                        taken.withLock { $0 += tasks.map(\.id) }
                    }
                }
            }
            try await group.waitForAll()
        }
        let all = taken.withLock { $0 }
        #expect(all.count == 200 && Set(all).count == 200)
    }

    @Test func `Tasks that a commit has taken whose answer was lost go back to the queue, and what it settled stays`()
        async throws
    {
        let proxy = try CuttingProxy(to: database.server.port)
        let connection = database.connection.replacing(":\(database.server.port)/", with: ":\(proxy.port)/")
        let third = try StoreFixture(
            at: .server(
                PostgreSQLServer(connection, keepsStatements: false), node: "third", contents: "s3://bucket"))
        let session = try await third.makeSession { $0.sessionSendsLaunchEvents = false }
        try await third.create((0..<6).map { _ in third.download() }, in: session)
        let known = try #require(try await third.claim(1).first)
        let ended = try #require(try await third.claim(1).first)
        proxy.loseAnswers(after: Array("UPDATE node SET committed".utf8))
        let round = try await third.store.advance(
            settling: [third.completion(ended.id)], of: [session.id], after: QueueCursor(), through: .everything,
            at: third.now
        ) { .tasks($0.lanes.map { ($0.id, 2) }) }
        #expect(proxy.lostAnswers == 1)
        #expect(round.claimed == nil)
        #expect(round.aftermath.completedTasks.map(\.id) == [ended.id])
        #expect(try await third.store.task(ended.id).state == .completed)
        func active() async throws -> Int {
            try await database.query("SELECT 1 FROM live WHERE stage = 'active' AND node = 'third'").count
        }
        #expect(try await active() == 3)
        #expect(try await third.store.takeBack(but: [known.id], at: third.now).hasQueuedTasks)
        #expect(try await active() == 1)
        #expect(try await third.claim().count == 4)
        try await expectSoundLedger(third)
    }

    @Test func `Nodes that complete tasks of one session leave no gap and no number twice`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<100).map { _ in first.download() }, in: session)
        try await withThrowingTaskGroup { group in
            for node in [first, second] {
                group.addTask {
                    while case let tasks = try await node.claim(2), !tasks.isEmpty {
                        for task in tasks { try await node.settle(node.completion(task.id)) }
                    }
                }
            }
            try await group.waitForAll()
        }
        let events = try await second.store.events(of: session.id, after: 0, limit: 1000).events
        #expect(events.map(\.seq) == Array(1...Int64(events.count)))
        #expect(events.count(where: { $0.kind == .didComplete }) == 100)
        #expect(try await first.refresh(session).counts.succeeded == 100)
    }

    @Test func `A host's limit counts what other nodes have under way`() async throws {
        let session = try await first.makeSession { $0.httpMaximumConnectionsPerHost = 5 }
        try await first.create((0..<10).map { _ in first.download() }, in: session)
        #expect(try await first.claim(3).count == 3)
        let seen = Locked<[(Int, Int)]>([])
        _ = try await second.store.advance(
            settling: [], after: QueueCursor(), through: QueueSieve(room: { _, _ in 4 }, mayStart: { _ in true }),
            at: second.now
        ) { queue in
            seen.withLock { seen in
                seen += queue.lanes.map { ($0.limitPerHost, queue.elsewhere["https://origin.example:443"] ?? 0) }
            }
            return .tasks([])
        }
        #expect(seen.withLock { $0.map(\.0) } == [2])
        #expect(seen.withLock { $0.map(\.1) } == [3])
        // Three are under way: a host that takes no more is not looked at.
        let full = Locked(0)
        _ = try await second.store.advance(
            settling: [], after: QueueCursor(), through: QueueSieve(room: { _, _ in 3 }, mayStart: { _ in true }),
            at: second.now
        ) { queue in
            full.withLock { $0 = queue.lanes.count }
            return .tasks([])
        }
        #expect(full.withLock { $0 } == 0)
    }

    @Test func `A task that is resumed is nobody's before the node that had it has let go`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        _ = try await first.claim()
        _ = try await second.store.command(.suspend, task: task.id, at: second.now)
        #expect(try await second.store.isTaken(task.id))
        _ = try await second.store.command(.resume, task: task.id, at: second.now)
        #expect(try await second.claim().isEmpty)
        var progress = TaskProgress()
        progress.durableOffset = 17
        let aftermath = try await first.settle(Settlement(task: task.id, .interrupted(progress)))
        #expect(aftermath.hasQueuedTasks)
        #expect(try await !second.store.isTaken(task.id))
        let claimed = try await second.claim()
        #expect(claimed.map(\.id) == [task.id])
        #expect(claimed.first?.progress.durableOffset == 17)
    }

    @Test func `What a node says of a task that another has taken over changes nothing`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        _ = try await first.claim()
        try await database.query("UPDATE live SET node = 'second'")
        var late = first.completion(task.id)
        late.bytesReceived = 7
        let aftermath = try await first.settle(late)
        #expect(aftermath.completedTasks.isEmpty)
        #expect(aftermath.filesToRemove == ["partial/\(task.id.rawValue)"])
        #expect(try await first.store.task(task.id).state == .running)
        #expect(try await first.refresh(session).countOfBytesReceived == 0)
    }

    // MARK: Death

    @Test func `A silent node's tasks go on elsewhere, and it can store nothing more`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<5).map { _ in first.download() }, in: session)
        let taken = try await first.claim(4)
        #expect(try await second.store.takeOver(at: second.now).0.nodes.isEmpty)
        try await silence("first")
        let (takeOver, aftermath) = try await second.store.takeOver(at: second.now)
        #expect(takeOver.nodes == ["first"] && takeOver.tasks == 4)
        #expect(aftermath.hasQueuedTasks)
        #expect(Set(try await second.claim().map(\.id)).isSuperset(of: taken.map(\.id)))
        #expect(try await second.store.nodes().map(\.id) == ["second"])

        #expect(try await first.settle(first.completion(taken[0].id)).completedTasks.isEmpty)
        let isAnswered = Locked(false)
        let zombie = first
        Task {
            _ = try? await zombie.makeApp("late")
            isAnswered.withLock { $0 = true }
        }
        try await eventually("it ends") { fatal.withLock { $0 } != nil }
        #expect(!isAnswered.withLock { $0 })
        await #expect(throws: DomainError.notFound) { try await second.store.app(identifier: "late") }
        #expect(try await second.store.task(taken[0].id).state == .running)
    }

    @Test func `A node that starts again takes back what it had, and nothing of others`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<6).map { _ in first.download() }, in: session)
        #expect(try await first.claim(2).count == 2)
        let others = try await second.claim(3)
        let recovered = try await second.store.recoverInterruptedTasks(at: second.now, afterCrash: true).recovered
        #expect(recovered.interrupted == 3)
        #expect(try await !second.store.recoverStrays(at: second.now).hasMore)
        #expect(Set(try await second.claim().map(\.id)).isSuperset(of: others.map(\.id)))
        #expect(try await database.query("SELECT 1 FROM live WHERE node = 'first'").count == 2)
    }

    @Test func `What nodes have left that are gone goes back in pieces when another one starts`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<Store.commandGroup + 3).map { _ in first.download() }, in: session)
        #expect(try await first.claim().count == Store.commandGroup + 3)
        // It ended without a word, and its row was taken away by one that could not take over all.
        try await database.query("DELETE FROM node WHERE id = 'first'")
        #expect(
            try await second.store.recoverInterruptedTasks(at: second.now, afterCrash: true).recovered.interrupted == 0)
        #expect(try await second.store.recoverStrays(at: second.now).hasMore)
        #expect(try await database.query("SELECT 1 FROM live WHERE node IS NOT NULL").count == 3)
        #expect(try await !second.store.recoverStrays(at: second.now).hasMore)
        #expect(try await second.claim().count == Store.commandGroup + 3)
        #expect(
            try await database.query("SELECT 1 FROM live WHERE crashes > 0").isEmpty, "it was not the fault of these")
    }

    @Test func `A dead node's launches go out again, and its clients count as gone`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.clientAttached(to: session.id, .stream, at: first.now)
        #expect(try await second.store.attachmentElsewhere(to: session.id) == .stream)
        try await second.finished(session)
        #expect(try await second.openLaunch(session) == nil, "a client is attached")

        let app = try await first.makeApp()
        let launching = try await first.makeSession(app: app)
        try await first.finished(launching)
        let claimed = try await first.store.claimDueLaunches(
            LaunchSlots(), limit: 1, leaseUntil: first.now + .seconds(60), at: first.now
        ).claimed
        #expect(claimed.count == 1)
        _ = try await second.store.recoverLaunches(at: second.now)
        func due() async throws -> Int {
            try await second.store.claimDueLaunches(
                LaunchSlots(), limit: 1, leaseUntil: second.now + .seconds(60), at: second.now
            ).claimed.count
        }
        #expect(try await due() == 0, "the first is delivering it")
        try await silence("first")
        second.advance(.seconds(1))
        _ = try await second.store.takeOver(at: second.now)
        #expect(try await second.store.attachmentElsewhere(to: session.id) == nil)
        #expect(try await due() == 1)
        second.advance(.seconds(60))
        _ = try await second.store.askLaunchRules(of: [session.id], at: second.now)
        #expect(try await second.openLaunch(session) != nil)
    }

    // MARK: Clients

    @Test func `A client that left one node counts as gone at the others after its grace`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.clientAttached(to: session.id, .wait, at: first.now)
        first.setAttached(false, session.id)
        try await first.store.clientsLeft([session.id])
        #expect(try await second.store.attachmentElsewhere(to: session.id) == nil)
        let aftermath = try await { () async throws -> Aftermath in
            let task = try await second.create(second.download(), in: session)
            _ = try await second.claim()
            return try await second.settle(second.completion(task.id))
        }()
        #expect(try await second.openLaunch(session) == nil)
        #expect(aftermath.launchChecks[session.id] != nil, "its grace is not over")
        second.advance(.seconds(3600))
        _ = try await second.store.askLaunchRules(of: [session.id], at: second.now)
        #expect(try await second.openLaunch(session) != nil)
        try await second.clean([.presence])
        #expect(try await database.query("SELECT 1 FROM presence").isEmpty)
    }

    @Test func `One that came back meanwhile is not told to have left`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.clientAttached(to: session.id, .wait, at: first.now)
        try await first.store.clientsLeft([session.id])
        #expect(try await second.store.attachmentElsewhere(to: session.id) == .wait)
    }

    @Test func `An answer that another node has kept is not replaced`() async throws {
        func recording(_ status: Int) -> Recording<SessionRecord> {
            Recording(principal: "p", key: "k", fingerprint: [1]) { _ in
                StoredAnswer(status: status, headers: HTTPFields([]), body: [], holdsSecrets: false)
            }
        }
        let app = try await first.makeApp()
        func open(_ node: StoreFixture, _ name: String, _ status: Int) async throws {
            _ = try await node.store.openSession(
                name, app: app, configuration: nil, description: nil, onlyCreates: true, at: node.now,
                recording: recording(status))
        }
        try await open(first, "one", 201)
        await #expect(throws: DomainError.answeredMeanwhile) { try await open(second, "two", 202) }
        let kept = try await second.store.storedAnswer(principal: "p", key: "k", at: second.now)
        #expect(kept?.answer.status == 201)
        await #expect(throws: DomainError.notFound) { try await second.store.session("two", app: app) }
    }

    // MARK: What a node tells

    @Test func `Nodes tell of themselves, and are drained by a row`() async throws {
        var profile = NodeProfile()
        profile.roles = ["api"]
        profile.load = 1.5
        try await first.store.describe(profile)
        try await second.store.drain(node: "first")
        let nodes = try await second.store.nodes()
        #expect(nodes.map(\.id) == ["first", "second"])
        #expect(nodes[0].profile == profile && nodes[0].isDraining && nodes[0].isAlive && !nodes[1].isDraining)
        await #expect(throws: DomainError.notFound) { try await first.store.drain(node: "third") }
    }

    @Test func `News tell what changed, for what is watched alone`() async throws {
        let (session, other) = (try await first.makeSession(), try await first.makeSession())
        let task = try await first.create(first.download(), in: session)
        var watched = Watched()
        watched.sessions = [session.id]
        watched.tasks = [task.id]
        let before = try await second.store.news(of: watched)
        #expect(before.hasQueuedTasks && before.unfinished == [task.id] && before.transferring.isEmpty)
        _ = try await second.claim()
        #expect(try await second.store.news(of: watched).transferring == [task.id])
        #expect(try await first.store.news(of: watched).transferring.isEmpty)
        try await second.settle(second.completion(task.id))
        let after = try await second.store.news(of: watched)
        #expect(after.unfinished.isEmpty && !after.hasQueuedTasks)
        #expect(after.sessions[session.id] != before.sessions[session.id] && after.sessions[other.id] == nil)
    }
}
