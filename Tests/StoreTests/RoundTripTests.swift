import Base
import Core
import Formats
import SQL
import TestSupport
import Testing

@testable import Store

/// The number of round trips to a server. Other nodes wait for their turn meanwhile.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct RoundTripTests {
    private let database: PostgreSQLDatabase
    private let commits = Locked<[Int]>([])
    private let fixture: StoreFixture

    init() async throws {
        database = try await SharedPostgreSQL.database()
        let commits = commits
        fixture = try StoreFixture(
            at: .server(PostgreSQLServer(database.connection), node: "test"),
            onCommit: { commit in commits.withLock { $0.append(commit.roundTrips) } })
    }

    /// The round trips of each commit since the last call.
    private func counted() async throws -> [Int] {
        // A commit is reported before the next closure runs.
        try await fixture.store.database.write { _ in }
        return commits.withLock { $0.takeAll() }
    }

    @Test func `Settlements and claims take two round trips, launch rule included`()
        async throws
    {
        let sessions = [try await fixture.makeSession(), try await fixture.makeSession()]
        for session in sessions { try await fixture.create((0..<30).map { _ in fixture.download() }, in: session) }
        var (cursor, running) = (QueueCursor(), [TaskID]())
        var trips: [Int] = []
        for _ in 0..<3 {
            _ = try await counted()
            let taken = try await fixture.store.tasks.advance(
                settling: running.map { fixture.completion($0) }, of: Set(sessions.map(\.id)), after: cursor,
                through: .everything, at: fixture.now
            ) { .tasks($0.lanes.map { ($0.id, 10) }) }
            (cursor, running) = (taken.cursor, (taken.tasks ?? []).map(\.id))
            #expect(running.count == 20)
            trips += try await counted()
        }
        // The first scan does not know the apps with queued tasks.
        #expect(trips == [3, 2, 2])
    }

    @Test func `Files of a set are listed and settled in few round trips, whatever their number`() async throws {
        let (session, store) = (try await fixture.makeSession(), fixture.store)
        let set = try await store.sets.put("set", of: session.app, ifRevision: nil, at: fixture.now) { _ in }.set
        let draft = NewSetVersion(publicId: "sver_1", source: nil, metadata: [:])
        let id = try await store.sets.begin(draft, of: set, in: session, at: fixture.now)
        let files = (0..<30).map { SetFile("\($0)", TransferRequest(url: "https://a.example/\($0)", method: "GET")) }
        try await store.sets.add(files, to: id)
        _ = try await store.sets.finish(id, named: nil, fingerprint: [], at: fixture.now)
        _ = try await counted()
        let wanted = try await store.sets.takeListed(id, revalidates: true, limit: 100, at: fixture.now).wanted
        #expect(try await counted().reduce(0, +) <= 6)
        let (created, _) = try await store.sets.createTasks(
            wanted.map { ($0.file.path, fixture.download("/\($0.file.path)")) }, of: id, in: session.id, limit: .max,
            storedLimit: .max, at: fixture.now)
        _ = try await fixture.claim()
        _ = try await counted()
        let settlements = created.map { fixture.completion($0.task.id, .succeeded, bytes: [1]) }
        _ = try await store.tasks.advance(
            settling: settlements, of: [session.id], after: QueueCursor(), through: .everything, at: fixture.now
        ) { .tasks($0.lanes.map { ($0.id, 10) }) }
        #expect(try await counted().reduce(0, +) <= 5)
        #expect(try await store.sets.read(id).files.fetched == 30)
        #expect(try await store.sets.due(at: fixture.now).map(\.work) == [.version(id)])
    }

    /// Asks the cache how 30 new tasks get their contents, by the numbers of their files.
    private func consult(
        _ files: [Int], _ policy: CachePolicy, in session: SessionRecord
    ) async throws -> [(question: CacheQuestion, answer: CacheAnswer)] {
        let tasks = try await fixture.create(files.map { _ in fixture.download() }, in: session).map(\.task.id)
        _ = try await fixture.claim()
        _ = try await counted()
        let questions = zip(tasks, files).map { task, file in
            let key = CacheKey { $0.url = "https://origin.example/\(file)" }
            return CacheQuestion(task: task, key: key, headers: HTTPFields(), policy: policy)
        }
        let answers = try await fixture.store.cache.consult(questions, at: fixture.now).answers
        #expect(try await counted().reduce(0, +) <= 6)
        return Array(zip(questions, answers))
    }

    /// Completes tasks in one commit, and leaves their responses to others.
    private func complete(_ tasks: [(question: CacheQuestion, storage: NewContent.Storage)]) async throws {
        let cached = CachedResponse {
            $0.response.statusCode = 200
            $0.fields = HTTPFields([HTTPField(name: "ETag", value: "\"1\"")])
            $0.receivedAt = fixture.now
        }
        let settlements = tasks.map { question, storage in
            let digest = ContentDigest(algorithm: .sha256, value: Digest.of([1]).hexadecimal)
            let content = NewContent(storage: storage, length: 1, digest: digest)
            var settlement = Settlement(
                task: question.task, .completed(.succeeded, TaskResult(progress: TaskProgress()), content))
            settlement.landing = Landing(cached, question.key, isReusable: true, content: content)
            return settlement
        }
        _ = try await fixture.store.tasks.settle(settlements, at: fixture.now)
        #expect(try await counted().reduce(0, +) <= 5)
    }

    @Test func `Responses are shared in few round trips, whatever their number`() async throws {
        let session = try await fixture.makeSession()
        // Three tasks for each of ten files: one leads.
        let crowd = try await consult((0..<30).map { $0 % 10 }, .useProtocolCachePolicy, in: session)
        #expect(crowd.map(\.answer.leads) == (0..<30).map { $0 < 10 })
        #expect(crowd.count { if case .follow = $0.answer { true } else { false } } == 20)

        let files = Array(100..<130)
        try await complete(
            try await consult(files, .useProtocolCachePolicy, in: session).map { ($0.question, .bytes([1])) })
        for policy in [CachePolicy.returnCacheDataElseLoad, .reloadRevalidatingCacheData] {
            let asked = try await consult(files, policy, in: session)
            let stored = asked.compactMap { asked -> (CacheQuestion, NewContent.Storage)? in
                switch asked.answer {
                case .use(let stored, .hit), .load(confirming: let stored?, _): (asked.question, .cached(stored.row))
                default: nil
                }
            }
            #expect(stored.count == 30)
            try await complete(stored)
        }
        let usage = try await fixture.store.cache.usage(of: session.app)
        #expect(usage.entries == 30 && usage.bytes == 30 * (1 + Store.Cache.weightOfEntry))
    }

    @Test func `Rows are found by index even if the server has not analysed their table`() async throws {
        let session = try await fixture.makeSession()
        try await fixture.create((0..<2000).map { _ in fixture.download() }, in: session)
        let plan = try await fixture.store.database.write { db in
            try db.all("EXPLAIN SELECT lane FROM live WHERE node < 'n'") { $0.text(0) }
        }
        #expect(plan.contains { $0.contains("Index Scan using live_node") }, "\(plan)")
    }
}
