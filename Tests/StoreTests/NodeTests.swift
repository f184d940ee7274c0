import Base
import Core
import Formats
import Glibc
import SQL
import TestSupport
import Testing

@testable import Store

/// Nodes that share a store: each has its own handle of one database.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
final class NodeTests {
    private let database: PostgreSQLDatabase
    private let (first, second): (StoreFixture, StoreFixture)
    private let fatal = Locked<String?>(nil)

    init() async throws {
        database = try await SharedPostgreSQL.database()
        (first, second) = (try Self.node("first", database, fatal), try Self.node("second", database, fatal))
    }

    private static func node(
        _ name: String, _ database: PostgreSQLDatabase, _ fatal: Locked<String?>
    ) throws -> StoreFixture {
        try StoreFixture(
            at: .server(PostgreSQLServer(database.connection), node: name, contents: "s3://bucket"),
            onFatalError: { error in
                fatal.withLock { $0 = "\(error)" }
                pthread_exit(nil)
            })
    }

    /// Another node, or a restarted one.
    private func node(_ name: String) throws -> StoreFixture { try Self.node(name, database, fatal) }

    /// Lets a node's lease expire, for the server.
    private func silence(_ node: String) async throws {
        try await database.query("UPDATE node SET lease_until = now() - interval '1 second' WHERE id = '\(node)'")
    }

    @Test func `A node has its figures from its first row on`() async throws {
        var profile = NodeProfile()
        profile.roles = ["api", "launch"]
        profile.version = "1"
        profile.startedAt = Timestamp(milliseconds: 1_793_588_645_006)
        let location = Store.Location.server(
            PostgreSQLServer(database.connection), node: "third", contents: "s3://bucket")
        let third = try StoreFixture(at: location, profile: profile)
        #expect(try await third.store.nodes.list().first { $0.id == "third" }?.profile == profile)
        third.store.close()
    }

    // MARK: Tasks

    @Test func `No task is claimed twice, however many nodes claim at once`() async throws {
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

    @Test func `Claims of a commit with a lost response are requeued, and its settlements stay`()
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
        let round = try await third.store.tasks.advance(
            settling: [third.completion(ended.id)], of: [session.id], after: QueueCursor(), through: .everything,
            at: third.now
        ) { .tasks($0.lanes.map { ($0.id, 2) }) }
        #expect(proxy.lostAnswers == 1)
        #expect(round.tasks == nil)
        #expect(round.aftermath.completedTasks.map(\.id) == [ended.id])
        #expect(try await third.store.tasks.read(ended.id).state == .completed)
        func active() async throws -> Int {
            try await database.query("SELECT 1 FROM live WHERE stage = 'active' AND node = 'third'").count
        }
        #expect(try await active() == 3)
        #expect(try await third.store.tasks.takeBack(but: [known.id], at: third.now).hasQueuedTasks)
        #expect(try await active() == 1)
        #expect(try await third.claim().count == 4)
        try await expectSoundLedger(third)
    }

    @Test func `Nodes that complete tasks of one session leave no gap and no duplicate in seq`() async throws {
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
        let events = try await second.store.sessions.events(of: session.id, after: 0, limit: 1000).events
        #expect(events.map(\.seq) == Array(1...Int64(events.count)))
        #expect(events.count(where: { $0.kind == .didComplete }) == 100)
        #expect(try await first.refresh(session).counts.succeeded == 100)
    }

    @Test func `A host's limit counts the transfers of other nodes`() async throws {
        let session = try await first.makeSession { $0.httpMaximumConnectionsPerHost = 5 }
        try await first.create((0..<10).map { _ in first.download() }, in: session)
        #expect(try await first.claim(3).count == 3)
        let seen = Locked<[(Int, Int)]>([])
        _ = try await second.store.tasks.advance(
            settling: [], after: QueueCursor(), through: QueueSieve(room: { _, _ in 4 }, mayStart: { _ in true }),
            at: second.now
        ) { queue in
            seen.withLock { seen in
                seen += queue.lanes.map { ($0.limitPerHost, queue.elsewhere.running(at: "https://origin.example:443")) }
            }
            return .tasks([])
        }
        #expect(seen.withLock { $0.map(\.0) } == [2])
        #expect(seen.withLock { $0.map(\.1) } == [3])
        // Three are in flight: a full host is not scanned.
        let full = Locked(0)
        _ = try await second.store.tasks.advance(
            settling: [], after: QueueCursor(), through: QueueSieve(room: { _, _ in 3 }, mayStart: { _ in true }),
            at: second.now
        ) { queue in
            full.withLock { $0 = queue.lanes.count }
            return .tasks([])
        }
        #expect(full.withLock { $0 } == 0)
    }

    @Test func `Another node's declared conditions apply before any task is claimed`() async throws {
        let session = try await first.makeSession()
        try await first.create([first.download()], in: session)
        let bad = { () -> Conditions in
            var conditions = Conditions()
            conditions.network.reachable = false
            return conditions
        }()
        _ = try await first.store.apps.setConditions(bad, .available, at: first.now)
        let told = Locked<Conditions?>(nil)
        let sieve = QueueSieve(
            declared: { declared in told.withLock { $0 = declared.conditions } }, room: { _, _ in 9 },
            mayStart: { _ in told.withLock { $0 != bad } })
        let lanes = Locked(1)
        _ = try await second.store.tasks.advance(settling: [], after: QueueCursor(), through: sieve, at: second.now) {
            queue in
            lanes.withLock { $0 = queue.lanes.count }
            return .tasks([])
        }
        #expect(told.withLock { $0 } == bad && lanes.withLock { $0 } == 0)
    }

    private func claim(
        _ node: StoreFixture, _ session: SessionRecord, used: Int = 0, wanted: Int = 0, running: Int? = nil,
        limit: Int = 9
    ) async throws -> Int {
        let claim = ConnectionClaim(
            session: session.id, origin: "https://origin.example:443", used: used, wanted: wanted,
            running: running ?? used, runningOfSession: running ?? used, limit: limit)
        return try await node.store.tasks.claimConnections([claim], limitPerHost: 6)[0]
    }

    @Test func `Connections of segments count at other nodes from their claim to their release`()
        async throws
    {
        let (session, other) = (try await first.makeSession(), try await first.makeSession())
        try await first.create((0..<2).map { _ in first.download() }, in: session)
        #expect(try await first.claim(1).count == 1)
        #expect(try await claim(first, session, wanted: 3, running: 1) == 3)
        #expect(try await claim(second, other, wanted: 9) == 2, "four of six are taken")
        #expect(try await claim(second, session, used: 0, wanted: 1, running: 0, limit: 4) == 0)
        let seen = Locked<[Int]>([])
        let sieve = QueueSieve(room: { _, _ in 9 }, mayStart: { _ in true })
        _ = try await second.store.tasks.advance(settling: [], after: QueueCursor(), through: sieve, at: second.now) {
            queue in
            seen.withLock {
                $0 = [queue.elsewhere.running(at: "https://origin.example:443")] + queue.lanes.map(\.limitPerHost)
            }
            return .tasks([])
        }
        #expect(seen.withLock { $0 } == [4, session.configuration.httpMaximumConnectionsPerHost - 4])
        #expect(try await claim(first, session, used: 1, running: 2) == 0)
        #expect(try await claim(second, other, used: 2, wanted: 9) == 2)
    }

    @Test func `Connections of several sessions are stored in one commit, and updated`() async throws {
        let sessions = [try await first.makeSession(), try await first.makeSession()]
        func claim(used: Int, wanted: Int) async throws -> [Int] {
            let claims = sessions.map {
                ConnectionClaim(
                    session: $0.id, origin: "https://origin.example:443", used: used, wanted: wanted, running: used,
                    runningOfSession: used, limit: 9)
            }
            return try await first.store.tasks.claimConnections(claims, limitPerHost: 99)
        }
        #expect(try await claim(used: 0, wanted: 2) == [2, 2])
        #expect(try await claim(used: 2, wanted: 1) == [1, 1])
        #expect(try await database.query("SELECT connections FROM held_connection") == [["3"], ["3"]])
        #expect(try await claim(used: 0, wanted: 0) == [0, 0])
        #expect(try await database.query("SELECT 1 FROM held_connection").isEmpty)
    }

    @Test func `Connections of a dead node no longer count`() async throws {
        let session = try await first.makeSession()
        #expect(try await claim(first, session, wanted: 6) == 6)
        #expect(try await claim(second, session, wanted: 1) == 0)
        try await silence("first")
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await claim(second, session, wanted: 6) == 6)
        _ = try await second.store.tasks.recoverInterrupted(at: second.now)
        #expect(try await database.query("SELECT 1 FROM held_connection").isEmpty)
    }

    @Test func `A resumed task is claimed only after the node that had it has released it`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        _ = try await first.claim()
        _ = try await second.store.tasks.command(.suspend, task: task.id, at: second.now)
        #expect(try await second.store.tasks.isTaken(task.id))
        _ = try await second.store.tasks.command(.resume, task: task.id, at: second.now)
        #expect(try await second.claim().isEmpty)
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = 17 }, source: 0)
        let aftermath = try await first.settle(Settlement(task: task.id, .interrupted(progress)))
        #expect(aftermath.hasQueuedTasks)
        #expect(try await !second.store.tasks.isTaken(task.id))
        let claimed = try await second.claim()
        #expect(claimed.map(\.id) == [task.id])
        #expect(claimed.first?.progress.kept.count == 17)
    }

    @Test func `A node's settlement of a task that another node took over changes nothing`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        _ = try await first.claim()
        try await database.query("UPDATE live SET node = 'second'")
        var late = first.completion(task.id)
        late.bytesReceived = 7
        let aftermath = try await first.settle(late)
        #expect(aftermath.completedTasks.isEmpty)
        #expect(aftermath.filesToRemove == ["partial/\(task.id.rawValue)"])
        #expect(try await first.store.tasks.read(task.id).state == .running)
        #expect(try await first.refresh(session).countOfBytesReceived == 0)
    }

    // MARK: Takeover

    @Test func `A silent node's tasks are taken over, and it can store nothing more`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<5).map { _ in first.download() }, in: session)
        let taken = try await first.claim(4)
        #expect(try await second.store.nodes.takeOver(at: second.now).0.nodes.isEmpty)
        try await silence("first")
        let (takeOver, aftermath) = try await second.store.nodes.takeOver(at: second.now)
        #expect(takeOver.nodes == ["first"] && takeOver.tasks == 4)
        #expect(aftermath.hasQueuedTasks)
        #expect(Set(try await second.claim().map(\.id)).isSuperset(of: taken.map(\.id)))
        #expect(try await second.store.nodes.list().map(\.id) == ["second"])

        // On a slow machine the node may renew its lease before, and end without an answer.
        let (isAnswered, completed) = (Locked(false), Locked<Int?>(nil))
        let zombie = first
        Task {
            let aftermath = try await zombie.settle(zombie.completion(taken[0].id))
            completed.withLock { $0 = aftermath.completedTasks.count }
        }
        try await eventually("the end is not stored") { [fatal] in
            completed.withLock { $0 } == 0 || fatal.withLock { $0 } != nil
        }
        Task {
            _ = try? await zombie.makeApp("late")
            isAnswered.withLock { $0 = true }
        }
        try await eventually("it ends") { fatal.withLock { $0 } != nil }
        #expect(!isAnswered.withLock { $0 })
        await #expect(throws: DomainError.notFound) { try await second.store.apps.read(identifier: "late") }
        #expect(try await second.store.tasks.read(taken[0].id).state == .running)
    }

    @Test func `A restarted node requeues its own claims, and none of another node`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<6).map { _ in first.download() }, in: session)
        #expect(try await first.claim(2).count == 2)
        let others = try await second.claim(3)
        let recovered = try await second.store.tasks.recoverInterrupted(at: second.now, afterCrash: true).recovered
        #expect(recovered.interrupted == 3)
        #expect(try await !second.store.nodes.recoverStrays(at: second.now).hasMore)
        #expect(Set(try await second.claim().map(\.id)).isSuperset(of: others.map(\.id)))
        #expect(try await database.query("SELECT 1 FROM live WHERE node = 'first'").count == 2)
    }

    @Test func `Orphaned claims of former nodes are requeued in batches at another node's start`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<Store.Tasks.commandGroup + 3).map { _ in first.download() }, in: session)
        #expect(try await first.claim().count == Store.Tasks.commandGroup + 3)
        // The node died, and its row was deleted by a node that could not take over everything.
        try await database.query("DELETE FROM node WHERE id = 'first'")
        #expect(
            try await second.store.tasks.recoverInterrupted(at: second.now, afterCrash: true).recovered.interrupted == 0
        )
        #expect(try await second.store.nodes.recoverStrays(at: second.now).hasMore)
        #expect(try await database.query("SELECT 1 FROM live WHERE node IS NOT NULL").count == 3)
        #expect(try await !second.store.nodes.recoverStrays(at: second.now).hasMore)
        #expect(try await second.claim().count == Store.Tasks.commandGroup + 3)
        #expect(
            try await database.query("SELECT 1 FROM live WHERE crashes > 0").isEmpty, "it was not the fault of these")
    }

    /// A node dies, another one takes over, and the first restarts.
    private func restart(_ dead: String, takenOverBy heir: StoreFixture, afterCrash: Bool) async throws
        -> Store.Tasks.Recovered
    {
        try await silence(dead)
        #expect(try await heir.store.nodes.takeOver(at: heir.now).0.nodes == [dead])
        let again = try node(dead)
        again.advance(heir.now - again.now)
        return try await again.store.tasks.recoverInterrupted(at: again.now, afterCrash: afterCrash).recovered
    }

    @Test func `A crash counts against tasks that were taken over, once its node reports it`() async throws {
        let session = try await first.makeSession()
        let tasks = try await first.create((0..<2).map { _ in first.download() }, in: session).map(\.task.id)
        let crashes = { [self] in try await second.store.tasks.read(tasks[0]).crashes }
        #expect(try await first.claim().count == 2)
        _ = try await restart("first", takenOverBy: second, afterCrash: false)
        #expect(try await crashes() == 0, "a kill")
        let third = try node("third")
        #expect(try await third.claim().count == 2)
        _ = try await restart("third", takenOverBy: second, afterCrash: true)
        #expect(try await crashes() == 1)

        // One task is in flight elsewhere when its second crash is reported, the other waits.
        let fourth = try node("fourth")
        #expect(try await fourth.claim().count == 2)
        try await silence("fourth")
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await second.claim(1).count == 1)
        let again = try node("fourth")
        let recovered = try await again.store.tasks.recoverInterrupted(at: again.now, afterCrash: true).recovered
        #expect(recovered.suspects == 2 && recovered.failed == 0)
        #expect(try await second.store.tasks.read(tasks[0]).phase == .retryWait)
        #expect(try await second.store.tasks.read(tasks[1]).phase == .quarantined)
        #expect(try await !second.store.tasks.isTaken(tasks[0]))
        #expect(try await again.store.tasks.isTaken(tasks[0]))
        try await second.settle(Settlement(task: tasks[0], .interrupted(TaskProgress())))
        #expect(try await !again.store.tasks.isTaken(tasks[0]))
        #expect(try await crashes() == 2)
        try await expectSoundLedger(second)

        // The third crash was of the task that ran alone.
        try await database.query("UPDATE live SET stage = 'active', node = 'fourth' WHERE task = \(tasks[1].rawValue)")
        let last = try await restart("fourth", takenOverBy: second, afterCrash: true)
        #expect(last.failed == 1)
        #expect(try await second.store.tasks.read(tasks[1]).result?.error?.underlying?.code == "crashed-service")
        #expect(try await crashes() == 0, "it was only beside it")
        try await expectSoundLedger(second)
    }

    @Test func `A crash no longer counts after an attempt has ended by itself at another node`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        #expect(try await first.claim().count == 1)
        try await silence("first")
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await second.claim().count == 1)
        try await second.settle(
            Settlement(task: task.id, .retry(at: second.now, waitsForConnectivity: false, TaskProgress())))
        let again = try node("first")
        _ = try await again.store.tasks.recoverInterrupted(at: again.now, afterCrash: true)
        #expect(try await second.store.tasks.read(task.id).crashes == 0)
    }

    @Test func `A dead node's launches are sent again, and its clients count as detached`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.sessions.clientAttached(to: session.id, .stream, at: first.now)
        #expect(try await second.store.sessions.attachmentElsewhere(to: session.id) == .stream)
        try await second.finished(session)
        #expect(try await second.openLaunch(session) == nil, "a client is attached")

        let app = try await first.makeApp()
        let launching = try await first.makeSession(app: app)
        try await first.finished(launching)
        let claimed = try await first.store.launches.claimDue(
            LaunchSlots(), limit: 1, leaseUntil: first.now + .seconds(60), at: first.now
        ).claimed
        #expect(claimed.count == 1)
        _ = try await second.store.launches.recover(at: second.now)
        func due() async throws -> Int {
            try await second.store.launches.claimDue(
                LaunchSlots(), limit: 1, leaseUntil: second.now + .seconds(60), at: second.now
            ).claimed.count
        }
        #expect(try await due() == 0, "the first is delivering it")
        try await silence("first")
        second.advance(.seconds(1))
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await second.store.sessions.attachmentElsewhere(to: session.id) == nil)
        #expect(try await due() == 1)
        second.advance(.seconds(60))
        _ = try await second.store.launches.askRules(of: [session.id], at: second.now)
        #expect(try await second.openLaunch(session) != nil)
    }

    // MARK: Files

    /// A waiting task with bytes on the first node's disk.
    private func waiting(_ verdict: (TaskProgress) -> Settlement.Verdict, in session: SessionRecord) async throws
        -> TaskID
    {
        let task = try await first.create(first.download(), in: session)
        #expect(try await first.claim().map(\.id) == [task.id])
        var progress = TaskProgress()
        progress.node = "first"
        progress.kept = .file(ResumePoint(), source: 0)
        try await first.settle(Settlement(task: task.id, verdict(progress)))
        return task.id
    }

    private func retry(_ progress: TaskProgress) -> Settlement.Verdict {
        .retry(at: first.now, waitsForConnectivity: false, progress)
    }

    @Test func `The need of a partial file is undecided until a node has claimed its task`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        let file = "partial/\(task.id.rawValue)"
        #expect(try await first.store.files.need(of: file) == .undecided)
        _ = try await second.claim()
        #expect(try await first.store.files.need(of: file) == .useless)
        #expect(try await second.store.files.need(of: file) == .needed)
    }

    @Test func `The files of a cancelled task are removed by the node that has them`() async throws {
        let session = try await first.makeSession()
        let task = try await waiting(retry, in: session)
        let file = "partial/\(task.rawValue)"
        #expect(try await first.store.files.isNeeded(file: file))
        #expect(try await !second.store.files.isNeeded(file: file), "it is not on this disk")
        let aftermath = try await second.store.tasks.command(.cancel(reason: nil), task: task, at: second.now).1
        #expect(aftermath.filesToRemove.isEmpty)
        #expect(try await second.store.files.discarded(limit: 9).isEmpty)
        #expect(try await first.store.files.discarded(limit: 9) == [file])
        #expect(try await !first.store.files.isNeeded(file: file))
        try await second.store.files.forgetDiscarded([file])
        #expect(try await first.store.files.discarded(limit: 9) == [file])
        try await first.store.files.forgetDiscarded([file])
        #expect(try await first.store.files.discarded(limit: 9).isEmpty)
    }

    @Test func `The files of a deleted session are removed by the node that has them`() async throws {
        let session = try await first.makeSession()
        let task = try await waiting(retry, in: session)
        _ = try await second.store.sessions.forget(session.id, at: second.now)
        #expect(try await second.clean().filesToRemove.isEmpty)
        #expect(try await first.store.files.discarded(limit: 9) == ["partial/\(task.rawValue)"])
    }

    @Test
    func `The files of a task that resumes at another node are removed by the node that has them, while it lives`()
        async throws
    {
        let session = try await first.makeSession()
        let task = try await waiting(retry, in: session)
        #expect(try await first.store.files.need(of: "partial/\(task.rawValue)") == .needed)
        let claimed = try #require(try await second.claim().first)
        #expect(try await first.store.files.need(of: "partial/\(task.rawValue)") == .undecided)
        try await second.store.files.discard(of: task, claimed.progress, at: second.now)
        #expect(try await first.store.files.discarded(limit: 9) == ["partial/\(task.rawValue)"])
        try await silence("first")
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await database.query("SELECT 1 FROM useless_file").isEmpty, "a start looks for itself")
        try await second.store.files.discard(of: task, claimed.progress, at: second.now)
        #expect(try await database.query("SELECT 1 FROM useless_file").isEmpty)
    }

    @Test func `A task whose bytes are on another node's full disk is not emptied here`() async throws {
        let session = try await first.makeSession()
        let task = try await waiting(
            { progress in
                var progress = progress
                let record = SegmentRecord {
                    $0.total = 100
                    $0.held = [HeldRange(0, 40)]
                }
                progress.kept = .segments(record, ResumePoint(), source: 0)
                return .waitsForDisk(needed: 60, notBefore: first.now, progress)
            }, in: session)
        let here = try await first.store.tasks.waitingForDisk(at: first.now, limit: 9)
        #expect(here == [DiskPlan.Waiting(task: task, kept: 40, needed: 60)])
        let elsewhere = try await second.store.tasks.waitingForDisk(at: second.now, limit: 9)
        #expect(elsewhere == [DiskPlan.Waiting(task: task, kept: 0, needed: 100)])
    }

    @Test func `The files of resume data are removed by the node that has them`() async throws {
        let session = try await first.makeSession()
        func later(_ progress: TaskProgress) -> Settlement.Verdict {
            .retry(at: first.now + .seconds(600), waitsForConnectivity: false, progress)
        }
        let (spent, unused) = (try await waiting(later, in: session), try await waiting(later, in: session))
        for (task, nonce) in [(spent, 1), (unused, 2)] as [(TaskID, UInt8)] {
            let aftermath = try await first.store.tasks.cancel(
                task, keeping: .file("partial/\(task.rawValue)"), length: 5, nonce: [nonce], at: first.now)
            #expect(aftermath.filesToRemove.isEmpty)
        }
        var order = second.download()
        (order.resumeNonce, order.progress) = ([1], TaskProgress())
        try await second.create([order], in: session)
        #expect(try await first.store.files.discarded(limit: 9) == ["partial/\(spent.rawValue)"])
        #expect(try await first.store.files.need(of: "partial/\(spent.rawValue)") == .useless)
        second.advance(Store.Tasks.resumeDataPeriod)
        #expect(try await second.clean().filesToRemove.isEmpty)
        #expect(try await first.store.files.discarded(limit: 9).contains("partial/\(unused.rawValue)"))
    }

    @Test func `A file to adopt is useless once its task has begun at another node`() async throws {
        let session = try await first.makeSession()
        let task = try await waiting(retry, in: session)
        let file = "partial/\(task.rawValue)"
        _ = try await first.store.tasks.cancel(task, keeping: .file(file), length: 5, nonce: [1], at: first.now)
        var order = second.download()
        var adopting = TaskProgress()
        (adopting.adoptedFile, adopting.node) = (file, "first")
        (order.resumeNonce, order.progress) = ([1], adopting)
        try await first.create([order], in: session)
        #expect(try await first.store.files.need(of: file) == .needed)
        let begun = try #require(try await second.claim().first)
        try await second.store.files.discard(of: begun.id, begun.progress, at: second.now)
        #expect(try await first.store.files.discarded(limit: 9).contains(file))
        #expect(try await first.store.files.need(of: file) == .undecided)
        var progress = TaskProgress()
        progress.node = "second"
        try await second.settle(Settlement(task: begun.id, .advanced(progress)))
        #expect(try await first.store.files.need(of: file) == .useless)
    }

    @Test func `A task that a node held is resumed after that node has died`() async throws {
        let session = try await first.makeSession()
        let task = try await first.create(first.download(), in: session)
        _ = try await first.store.tasks.hold(task.id, at: first.now)
        _ = try await second.store.tasks.recoverInterrupted(at: second.now)
        #expect(try await second.store.tasks.read(task.id).phase == .suspended)
        try await silence("first")
        _ = try await second.store.nodes.takeOver(at: second.now)
        #expect(try await second.store.tasks.read(task.id).phase == .queued)
        try await expectSoundLedger(second)
    }

    // MARK: Sessions

    @Test func `A node finds in the queue that a session was changed at another node`() async throws {
        let session = try await first.makeSession()
        try await first.create((0..<2).map { _ in first.download() }, in: session)
        func revision() async throws -> Int64? {
            let seen = Locked<Int64?>(nil)
            _ = try await second.store.tasks.advance(
                settling: [], after: QueueCursor(), through: .everything, at: second.now
            ) { queue in
                seen.withLock { $0 = queue.lanes.first?.revision }
                return .tasks([])
            }
            return seen.withLock { $0 }
        }
        #expect(try await revision() == first.store.sessions.read(session.id).revision)
        let changed = try await first.store.sessions.change(
            session.id, description: nil, bandwidthLimit: 7, ifRevision: nil)
        #expect(changed.revision > session.revision)
        #expect(try await revision() == changed.revision)
    }

    @Test func `Concurrent changes of cookies at two nodes are merged, and do not undo a reset`() async throws {
        let session = try await first.makeSession()
        func line(_ name: String) -> String { "origin.example\tFALSE\t/\tFALSE\t4000000000\t\(name)\t1" }
        func save(_ node: StoreFixture, before: [String], after: [String]) async throws {
            let changes = [session.id: CookieChange(before: before.map(line), after: after.map(line))]
            _ = try await node.store.tasks.settle([], cookies: changes, at: node.now)
        }
        func stored() async throws -> [String] { try await first.store.sessions.cookies(of: session.id) }
        try await save(first, before: [], after: ["a"])
        try await save(second, before: [], after: ["b"])
        #expect(try await stored() == ["a", "b"].map(line))
        let revision = try await first.store.sessions.read(session.id).revision
        try await first.store.sessions.reset(session.id)
        #expect(try await second.store.sessions.read(session.id).revision > revision)
        // The second node has not read the reset yet.
        try await save(second, before: ["a", "b"], after: ["a", "b", "c"])
        #expect(try await stored() == [line("c")])
    }

    // MARK: Clients

    @Test func `A client that left one node counts as detached at other nodes after its grace period`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.sessions.clientAttached(to: session.id, .wait, at: first.now)
        first.setAttached(false, session.id)
        try await first.store.sessions.clientsLeft([session.id])
        #expect(try await second.store.sessions.attachmentElsewhere(to: session.id) == nil)
        let aftermath = try await { () async throws -> Aftermath in
            let task = try await second.create(second.download(), in: session)
            _ = try await second.claim()
            return try await second.settle(second.completion(task.id))
        }()
        #expect(try await second.openLaunch(session) == nil)
        #expect(aftermath.launchChecks[session.id] != nil, "its grace is not over")
        second.advance(.seconds(3600))
        _ = try await second.store.launches.askRules(of: [session.id], at: second.now)
        #expect(try await second.openLaunch(session) != nil)
        try await second.clean([.presence])
        #expect(try await database.query("SELECT 1 FROM presence").isEmpty)
    }

    @Test func `A client that came back within the grace period is not reported as detached`() async throws {
        let session = try await first.makeSession()
        first.setAttached(true, session.id)
        _ = try await first.store.sessions.clientAttached(to: session.id, .wait, at: first.now)
        try await first.store.sessions.clientsLeft([session.id])
        #expect(try await second.store.sessions.attachmentElsewhere(to: session.id) == .wait)
    }

    @Test func `An idempotent response that another node has stored is not replaced`() async throws {
        func recording(_ status: Int) -> Recording<SessionRecord> {
            Recording(principal: "p", key: "k", fingerprint: [1]) { _ in
                StoredAnswer(status: status, headers: HTTPFields([]), body: [], holdsSecrets: false)
            }
        }
        let app = try await first.makeApp()
        func open(_ node: StoreFixture, _ name: String, _ status: Int) async throws {
            _ = try await node.store.sessions.open(
                name, app: app, configuration: nil, description: nil, onlyCreates: true, at: node.now,
                recording: recording(status))
        }
        try await open(first, "one", 201)
        await #expect(throws: DomainError.answeredMeanwhile) { try await open(second, "two", 202) }
        let kept = try await second.store.apps.storedAnswer(principal: "p", key: "k", at: second.now)
        #expect(kept?.answer.status == 201)
        await #expect(throws: DomainError.notFound) { try await second.store.sessions.read("two", app: app) }
    }

    // MARK: Figures of nodes

    @Test func `Nodes publish their figures, and are drained by a row`() async throws {
        var profile = NodeProfile()
        profile.roles = ["api"]
        profile.load = 1.5
        try await first.store.nodes.describe(profile)
        try await second.store.nodes.drain("first")
        let nodes = try await second.store.nodes.list()
        #expect(nodes.map(\.id) == ["first", "second"])
        #expect(nodes[0].profile == profile && nodes[0].isDraining && nodes[0].isAlive && !nodes[1].isDraining)
        await #expect(throws: DomainError.notFound) { try await first.store.nodes.drain("third") }
    }

    @Test func `The first start is that of a node that is alive`() async throws {
        for (node, start) in [(first, 1), (second, 2)] {
            var profile = NodeProfile()
            profile.startedAt = Timestamp(milliseconds: Int64(start))
            try await node.store.nodes.describe(profile)
        }
        #expect(try await second.store.nodes.firstStart() == Timestamp(milliseconds: 1))
        try await silence("first")
        #expect(try await second.store.nodes.firstStart() == Timestamp(milliseconds: 2))
    }

    @Test func `News lists the changes of watched sessions and tasks only`() async throws {
        let (session, other) = (try await first.makeSession(), try await first.makeSession())
        let task = try await first.create(first.download(), in: session)
        var watched = Watched()
        watched.sessions = [session.id]
        watched.tasks = [task.id]
        let pause = OriginPause("http://origin.example:80", app: 1, retryAfter: .seconds(9), at: first.now)
        _ = try await first.store.tasks.settle([], pauses: [pause], at: first.now)
        let before = try await second.store.nodes.news(of: watched, at: first.now)
        #expect(before.pauses == [pause])
        #expect(before.hasQueuedTasks && before.unfinished == [task.id] && before.transferring.isEmpty)
        _ = try await second.claim()
        #expect(try await second.store.nodes.news(of: watched, at: first.now).transferring == [task.id])
        #expect(try await first.store.nodes.news(of: watched, at: first.now).transferring.isEmpty)
        try await second.settle(second.completion(task.id))
        let after = try await second.store.nodes.news(of: watched, at: first.now)
        #expect(after.unfinished.isEmpty && !after.hasQueuedTasks)
        #expect(after.sessions[session.id] != before.sessions[session.id] && after.sessions[other.id] == nil)
    }
}
