import Base
import Core
import Formats
import Testing

@testable import Store

/// Entries of the cache, and tasks that share one transfer.
struct CacheStoreTests {
    private let fixture: StoreFixture
    private let app: AppID
    private let session: SessionRecord

    init() async throws {
        fixture = try await StoreFixture(cacheCapacity: 50_000)
        app = try await fixture.makeApp()
        session = try await fixture.makeSession(app: app)
    }

    private var store: Store { fixture.store }

    // MARK: Stage

    private static func key(_ path: String) -> CacheKey {
        CacheKey {
            $0.url = "https://origin.example\(path)"
        }
    }

    private func question(
        _ task: TaskID, _ path: String = "/a", _ policy: CachePolicy = .returnCacheDataElseLoad
    ) -> CacheQuestion {
        CacheQuestion(task: task, key: Self.key(path), headers: HTTPFields(), policy: policy)
    }

    private func landing(
        _ path: String = "/a", bytes: [UInt8] = Array("content".utf8), isReusable: Bool = true, status: Int = 200
    ) -> Landing {
        let cached = CachedResponse {
            $0.response.statusCode = status
            $0.response.url = "https://origin.example\(path)"
            $0.receivedAt = fixture.now
        }
        let content = NewContent(
            storage: .bytes(bytes), length: Int64(bytes.count),
            digest: ContentDigest(algorithm: .sha256, value: Digest.of(bytes).hexadecimal))
        return Landing(cached, Self.key(path), isReusable: isReusable, content: content)
    }

    private func claimed(_ count: Int = 1, in other: SessionRecord? = nil) async throws -> [TaskID] {
        let tasks = (0..<count).map { _ in fixture.download() }
        let made = try await fixture.create(tasks, in: other ?? session).map(\.task.id)
        _ = try await fixture.claim()
        return made
    }

    private func ask(
        _ task: TaskID, _ path: String = "/a", _ policy: CachePolicy = .returnCacheDataElseLoad
    ) async throws -> CacheAnswer {
        try await store.cache.consult([question(task, path, policy)], at: fixture.now).answers[0]
    }

    /// Transfers with a landing.
    private func land(_ task: TaskID, _ landing: Landing, _ outcome: Outcome = .succeeded) async throws {
        var settlement = Settlement(
            task: task, .completed(outcome, TaskResult(progress: TaskProgress()), landing.content))
        settlement.landing = landing
        try await fixture.settle(settlement)
    }

    private func keep(_ path: String, count: Int, of other: SessionRecord? = nil) async throws {
        let task = try await claimed(in: other)[0]
        #expect(try await ask(task, path).leads)
        try await land(task, landing(path, bytes: [UInt8](repeating: 1, count: count)))
    }

    private func isStored(_ path: String, for other: SessionRecord? = nil) async throws -> Bool {
        let task = try await claimed(in: other)[0]
        defer { fixture.advance(.seconds(1)) }
        let answer = try await ask(task, path, .returnCacheDataDontLoad)
        try await fixture.settle(fixture.completion(task))
        if case .use = answer { return true }
        return false
    }

    // MARK: Entries

    @Test func `The response of a task is used by the next one, and counted`() async throws {
        try await keep("/a", count: 10)
        let task = try await claimed()[0]
        guard case .use(let stored, .hit) = try await ask(task) else { throw Unexpected() }
        var result = TaskResult(progress: TaskProgress())
        result.cacheStatus = .hit
        let content = NewContent(
            storage: .cached(stored.row), length: stored.length,
            digest: ContentDigest(algorithm: .sha256, value: stored.digest))
        try await fixture.settle(Settlement(task: task, .completed(.succeeded, result, content)))
        guard case .bytes(let bytes)? = try await store.files.content(of: task).storage else { throw Unexpected() }
        #expect(bytes == [UInt8](repeating: 1, count: 10))
        let usage = try await store.cache.usage(of: app)
        #expect(usage.entries == 1 && usage.hits == 1 && usage.bytes == 10 + Store.Cache.weightOfEntry)
        #expect(try await store.tasks.read(task).result?.cacheStatus == .hit)
        try await expectSoundLedger(fixture)
    }

    @Test func `A task is requeued if its entry was removed meanwhile`() async throws {
        try await keep("/a", count: 10)
        let task = try await claimed()[0]
        guard case .use(let stored, .hit) = try await ask(task) else { throw Unexpected() }
        _ = try await store.cache.empty(of: app, url: nil, at: fixture.now)
        let content = NewContent(
            storage: .cached(stored.row), length: stored.length,
            digest: ContentDigest(algorithm: .sha256, value: stored.digest))
        try await fixture.settle(Settlement(task: task, .completed(.succeeded, TaskResult(), content)))
        #expect(try await store.tasks.read(task).phase == .queued)
    }

    @Test func `The least recently used entry of the app with the most bytes is evicted first`() async throws {
        let other = try await fixture.makeSession()
        try await keep("/other", count: 10_000, of: other)
        for path in ["/a", "/b"] {
            try await keep(path, count: 10_000)
            fixture.advance(.seconds(1))
        }
        #expect(try await isStored("/a"))
        try await keep("/c", count: 10_000)
        #expect(try await isStored("/a"))
        #expect(try await !isStored("/b"))
        #expect(try await isStored("/c"))
        #expect(try await isStored("/other", for: other))
        try await expectSoundLedger(fixture)
    }

    @Test func `Responses larger than the capacity, or not reusable, are not stored`() async throws {
        try await keep("/a", count: 60_000)
        #expect(try await !isStored("/a"))
        let task = try await claimed()[0]
        _ = try await ask(task, "/b")
        try await land(task, landing("/b", isReusable: false))
        #expect(try await !isStored("/b"))
        #expect(try await store.tasks.read(task).result?.cacheStatus == nil)
        #expect(try await store.cache.usage(of: app).entries == 0)
    }

    @Test func `Entries are removed by URL, or with their app`() async throws {
        for path in ["/a", "/b"] { try await keep(path, count: 10) }
        _ = try await store.cache.empty(of: app, url: "https://origin.example/a", at: fixture.now)
        #expect(try await !isStored("/a"))
        #expect(try await isStored("/b"))
        _ = try await store.apps.delete(app)
        try await fixture.clean()
        #expect(try await store.cache.usage(of: app) == CacheRecord())
        try await expectSoundLedger(fixture)
    }

    @Test func `A repeated response replaces the previous one`() async throws {
        for _ in 0..<3 {
            let task = try await claimed()[0]
            _ = try await ask(task, "/a", .reloadRevalidatingCacheData)
            try await land(task, landing())
        }
        #expect(try await store.cache.usage(of: app).entries == 1)
        try await expectSoundLedger(fixture)
    }

    // MARK: Single flight

    @Test func `One task transfers, and the others share its response`() async throws {
        let tasks = try await claimed(300)
        #expect(try await ask(tasks[0]).leads)
        for task in tasks.dropFirst() {
            guard case .follow = try await ask(task) else { throw Unexpected() }
        }
        let waiting = try await store.tasks.read(tasks[1])
        #expect(waiting.phase == .following && waiting.leader?.number == 1)
        #expect(waiting.leader?.session == session.identifier)
        try await land(tasks[0], landing(isReusable: false))
        // The rest of the followers are due at once, after the first commit has released a batch.
        #expect(try await store.tasks.nextDueTime() == Timestamp(milliseconds: 0))
        _ = try await store.questions.expire(at: fixture.now, limit: 10)
        let released = try await fixture.claim()
        #expect(Set(released.map(\.id)) == Set(tasks.dropFirst()))
        for task in released {
            guard case .use(let stored, .collapsed) = try await ask(task.id) else { throw Unexpected() }
            var result = TaskResult(progress: TaskProgress())
            result.cacheStatus = .collapsed
            let content = NewContent(
                storage: .cached(stored.row), length: stored.length,
                digest: ContentDigest(algorithm: .sha256, value: stored.digest))
            try await fixture.settle(Settlement(task: task.id, .completed(.succeeded, result, content)))
        }
        let usage = try await store.cache.usage(of: app)
        #expect(usage.collapsed == 299 && usage.entries == 0)
        #expect(try await fixture.refresh(session).counts.succeeded == 300)
        try await expectSoundLedger(fixture)
    }

    @Test func `Other requests, other apps and the reload policy do not wait for a flight`() async throws {
        let tasks = try await claimed(2)
        let foreign = try await claimed(in: try await fixture.makeSession())[0]
        #expect(try await ask(tasks[0]).leads)
        #expect(try await ask(tasks[1], "/b").leads)
        #expect(try await ask(foreign).leads)
    }

    /// Two tasks. The second follows the first.
    private func pair() async throws -> (leader: TaskID, follower: TaskID) {
        let tasks = try await claimed(2)
        #expect(try await ask(tasks[0]).leads)
        guard case .follow = try await ask(tasks[1]) else { throw Unexpected() }
        return (tasks[0], tasks[1])
    }

    private static func progress(_ offset: Int64) -> TaskProgress {
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = offset }, source: 0)
        return progress
    }

    private func expectTakeover(of task: TaskID, from leader: TaskID, file: String? = nil) async throws {
        let claimed = try await fixture.claim()
        #expect(claimed.map(\.id) == [task])
        #expect(claimed.first?.progress.adoptedFile == file)
        if let file { #expect(try await store.files.isNeeded(file: file)) }
        #expect(try await ask(task).leads)
        try await land(task, landing())
        try await expectSoundLedger(fixture)
    }

    @Test func `A cancelled leader passes its bytes on after its transfer has ended`() async throws {
        let (leader, follower) = try await pair()
        _ = try await store.tasks.command(.cancel(reason: nil), task: leader, at: fixture.now)
        #expect(try await fixture.claim().isEmpty)
        let aftermath = try await fixture.settle(Settlement(task: leader, .interrupted(Self.progress(1000))))
        #expect(aftermath.filesToRemove == [])
        try await expectTakeover(of: follower, from: leader, file: "partial/\(leader.rawValue)")
    }

    @Test func `A suspended leader passes its bytes on, and follows when it is resumed`() async throws {
        let (leader, follower) = try await pair()
        _ = try await store.tasks.command(.suspend, task: leader, at: fixture.now)
        try await fixture.settle(Settlement(task: leader, .interrupted(Self.progress(1000))))
        #expect(try await fixture.claim().map(\.id) == [follower])
        #expect(try await ask(follower).leads)
        _ = try await store.tasks.command(.resume, task: leader, at: fixture.now)
        #expect(try await fixture.claim().map(\.id) == [leader])
        guard case .follow = try await ask(leader) else { throw Unexpected() }
        try await expectSoundLedger(fixture)
    }

    /// A suspended leader, and a follower that has not begun with its bytes.
    private func passed(in other: SessionRecord? = nil) async throws -> (leader: TaskID, follower: TaskID, file: String)
    {
        let (leader, follower) = (try await claimed(in: other)[0], try await claimed()[0])
        #expect(try await ask(leader).leads)
        guard case .follow = try await ask(follower) else { throw Unexpected() }
        _ = try await store.tasks.command(.suspend, task: leader, at: fixture.now)
        try await fixture.settle(Settlement(task: leader, .interrupted(Self.progress(1000))))
        return (leader, follower, "partial/\(leader.rawValue)")
    }

    @Test func `A suspended leader withdraws its partial file from a follower that has not adopted it`()
        async throws
    {
        let (leader, follower, file) = try await passed()
        let progress = try #require(try await store.tasks.read(leader).progress)
        #expect(progress.hasPassedBytes && progress.kept == .none)
        try await store.tasks.withdraw(file, of: leader, at: fixture.now)
        let claimed = try #require(try await fixture.claim().first)
        #expect(claimed.id == follower)
        #expect(claimed.progress.adoptedFile == nil && claimed.progress.kept == .none)
        #expect(claimed.progress.restartCause == "partialFileMissing")
    }

    @Test func `The file of a suspended leader outlives its session until the follower has begun with it`() async throws
    {
        let other = try await fixture.makeSession("other", app: app)
        let (_, follower, file) = try await passed(in: other)
        _ = try await store.sessions.forget(other.id, at: fixture.now)
        #expect(try await !fixture.clean().filesToRemove.contains(file))
        #expect(try await store.files.isNeeded(file: file))
        #expect(try await fixture.claim().map(\.id) == [follower])
        try await fixture.settle(Settlement(task: follower, .advanced(Self.progress(1000))))
        #expect(try await store.files.need(of: file) == .useless)
    }

    @Test func `A record of passed bytes does not protect what the former leader leaves later`() async throws {
        let (leader, follower, file) = try await passed()
        #expect(try await fixture.claim().map(\.id) == [follower])
        try await fixture.settle(Settlement(task: follower, .advanced(Self.progress(1000))))
        _ = try await store.tasks.command(.resume, task: leader, at: fixture.now)
        #expect(try await fixture.claim().map(\.id) == [leader])
        var result = TaskResult(progress: TaskProgress())
        result.error = TaskError(.dataLengthExceedsMaximum)
        let aftermath = try await fixture.settle(
            Settlement(task: leader, .completed(.failed, result, nil), leavesPartialFile: true))
        #expect(aftermath.filesToRemove == [file])
    }

    @Test func `The copy for the followers of a leader that was suspended meanwhile is removed`() async throws {
        let (leader, follower) = try await pair()
        _ = try await store.tasks.command(.suspend, task: leader, at: fixture.now)
        var landing = landing()
        landing.content.storage = .file("contents/01/1.shared")
        var settlement = Settlement(
            task: leader, .retry(at: fixture.now, waitsForConnectivity: false, TaskProgress()))
        settlement.landing = landing
        #expect(try await fixture.settle(settlement).filesToRemove == ["contents/01/1.shared"])
        #expect(try await fixture.claim().map(\.id) == [follower])
        try await expectSoundLedger(fixture)
    }

    @Test func `Two tasks may pass bytes to each other again and again`() async throws {
        var (leader, follower) = try await pair()
        for round in 1...4 {
            _ = try await store.tasks.command(.suspend, task: leader, at: fixture.now)
            try await fixture.settle(Settlement(task: leader, .interrupted(Self.progress(Int64(1000 * round)))))
            let claimed = try await fixture.claim()
            #expect(claimed.map(\.id) == [follower])
            #expect(claimed.first?.progress.adoptedFile == "partial/\(leader.rawValue)")
            #expect(try await ask(follower).leads)
            _ = try await store.tasks.command(.resume, task: leader, at: fixture.now)
            #expect(try await fixture.claim().map(\.id) == [leader])
            guard case .follow = try await ask(leader) else { throw Unexpected() }
            swap(&leader, &follower)
        }
        try await expectSoundLedger(fixture)
    }

    @Test func `A leader that fails for its own reason passes its bytes on`() async throws {
        let (leader, follower) = try await pair()
        var result = TaskResult(progress: Self.progress(1000))
        result.error = TaskError(.dataLengthExceedsMaximum)
        try await fixture.settle(
            Settlement(task: leader, .completed(.failed, result, nil), leavesPartialFile: true))
        try await expectTakeover(of: follower, from: leader, file: "partial/\(leader.rawValue)")
    }

    @Test func `A leader that waits for its next attempt stays the leader`() async throws {
        let (leader, _) = try await pair()
        try await fixture.settle(
            Settlement(
                task: leader,
                .retry(at: fixture.now + .seconds(1), waitsForConnectivity: false, Self.progress(10))))
        fixture.advance(.seconds(2))
        #expect(try await fixture.claim().map(\.id) == [leader])
        #expect(try await ask(leader).leads)
    }

    /// A leader, a task of its session, and one of another session, which follow it.
    private func crowd() async throws -> (leader: TaskID, fellow: TaskID, stranger: TaskID) {
        let (leader, fellow) = try await pair()
        let stranger = try await claimed(in: try await fixture.makeSession("other", app: app))[0]
        guard case .follow = try await ask(stranger) else { throw Unexpected() }
        return (leader, fellow, stranger)
    }

    /// The stranger transfers for itself, and the fellow still waits for the leader.
    private func expectDivided(_ crowd: (leader: TaskID, fellow: TaskID, stranger: TaskID)) async throws {
        let claimed = try await fixture.claim()
        #expect(claimed.map(\.id) == [crowd.stranger])
        #expect(claimed.first?.progress.kept == Kept.none && claimed.first?.progress.adoptedFile == nil)
        #expect(try await ask(crowd.stranger).leads)
        let fellow = try await store.tasks.read(crowd.fellow)
        #expect(fellow.phase == .following && fellow.leader?.task == crowd.leader)
        try await expectSoundLedger(fixture)
    }

    @Test func `No task of another session waits for a leader that waits for an answer`() async throws {
        let crowd = try await crowd()
        let space = ProtectionSpace(
            host: "origin.example", port: 443, scheme: "https", realm: "r", authenticationMethod: .basic)
        try await fixture.settle(
            Settlement(
                task: crowd.leader,
                .asked(
                    Question(kind: .challenge, protectionSpace: space), questionId: "q",
                    deadline: fixture.now + .seconds(60), TaskProgress())))
        #expect(try await store.tasks.read(crowd.leader).phase == .awaitingAnswer)
        try await expectDivided(crowd)
    }

    @Test func `A leader that presents another identity leads its own session alone`() async throws {
        let crowd = try await crowd()
        try await fixture.settle(
            Settlement(
                task: crowd.leader,
                .retry(at: fixture.now + .seconds(1), waitsForConnectivity: false, Self.progress(1000))))
        fixture.advance(.seconds(2))
        #expect(try await fixture.claim().map(\.id) == [crowd.leader])
        var key = Self.key("/a")
        key.identity = ["kX"]
        func askAnew(_ task: TaskID) async throws -> CacheAnswer {
            let question = CacheQuestion(task: task, key: key, headers: HTTPFields(), policy: .useProtocolCachePolicy)
            return try await store.cache.consult([question], at: fixture.now).answers[0]
        }
        #expect(try await askAnew(crowd.leader).leads)
        try await expectDivided(crowd)
        // A task with the new identity joins it.
        guard case .follow = try await askAnew(try await claimed()[0]) else { throw Unexpected() }
        var own = landing()
        own.key = key
        try await land(crowd.leader, own)
        #expect(try await store.tasks.read(crowd.fellow).phase == .queued)
        #expect(try await store.tasks.read(crowd.stranger).phase == .active)
    }

    @Test func `A transfer that turns out to be private is shared within its session, and not stored`() async throws {
        let crowd = try await crowd()
        var settlement = Settlement(task: crowd.leader, .advanced(Self.progress(1000)))
        settlement.dividesFlight = true
        try await fixture.settle(settlement)
        try await expectDivided(crowd)
        var own = landing()
        own.isPrivate = true
        try await land(crowd.leader, own)
        #expect(try await fixture.claim().map(\.id) == [crowd.fellow])
        guard case .use(_, .collapsed) = try await ask(crowd.fellow) else { throw Unexpected() }
        #expect(try await store.cache.usage(of: app).entries == 0)
    }

    @Test func `A result that is larger than the capacity keeps no other app from evicting its entries`() async throws {
        let (leader, _) = try await pair()
        try await land(leader, landing(bytes: [UInt8](repeating: 1, count: 60_000)))
        let other = try await fixture.makeSession()
        for path in ["/1", "/2", "/3", "/4"] { try await keep(path, count: 15_000, of: other) }
        let usage = try await store.cache.usage(of: other.app)
        #expect(usage.entries == 2 && usage.bytes <= 50_000)
        #expect(try await store.cache.usage(of: app).entries == 0)
        try await expectSoundLedger(fixture)
    }

    @Test(arguments: [("PUT", 204, false), ("PUT", 403, true), ("DELETE", 303, false), ("HEAD", 200, true)])
    func `A change of a resource removes its stored responses`(_ method: String, _ status: Int, _ isKept: Bool)
        async throws
    {
        for path in ["/a", "/b"] { try await keep(path, count: 10) }
        let task = try await claimed()[0]
        var result = TaskResult(progress: TaskProgress())
        result.response = TaskResponse()
        result.response?.statusCode = status
        var settlement = Settlement(task: task, .completed(.succeeded, result, nil))
        settlement.request = TransferRequest(url: "https://origin.example/a#x", method: method)
        settlement.url = "https://origin.example/a"
        try await fixture.settle(settlement)
        #expect(try await isStored("/a") == isKept)
        #expect(try await isStored("/b"))
        try await expectSoundLedger(fixture)
    }

    @Test func `A 304 that forbids the storage of the response removes it`() async throws {
        let first = try await claimed()[0]
        #expect(try await ask(first).leads)
        var tagged = landing()
        tagged.cached.fields = HTTPFields([HTTPField(name: "ETag", value: "\"a\"")])
        try await land(first, tagged)
        let task = try await claimed()[0]
        guard case .load(let stored?, _) = try await ask(task, "/a", .reloadRevalidatingCacheData) else {
            throw Unexpected()
        }
        var confirmed = landing(isReusable: false)
        confirmed.content.storage = .cached(stored.row)
        try await land(task, confirmed)
        #expect(try await store.tasks.read(task).outcome == .succeeded)
        #expect(try await store.cache.usage(of: app).entries == 0)
        #expect(try await store.files.content(of: task).record.length > 0)
        try await expectSoundLedger(fixture)
    }

    @Test func `The leader's own digest does not matter to its followers`() async throws {
        let (leader, follower) = try await pair()
        var settlement = Settlement(
            task: leader, .retry(at: fixture.now, waitsForConnectivity: false, TaskProgress()))
        settlement.landing = landing(isReusable: false)
        try await fixture.settle(settlement)
        #expect(Set(try await fixture.claim().map(\.id)).contains(follower))
        guard case .use(_, .collapsed) = try await ask(follower) else { throw Unexpected() }
        try await fixture.settle(fixture.completion(follower))
        #expect(try await store.cache.usage(of: app).entries == 0)
        try await expectSoundLedger(fixture)
    }

    @Test func `A follower that may not reuse the response transfers itself, as soon as the head shows it`()
        async throws
    {
        let tasks = try await claimed(3)
        #expect(try await ask(tasks[0]).leads)
        for (task, policy) in [(tasks[1], CachePolicy.useProtocolCachePolicy), (tasks[2], .returnCacheDataElseLoad)] {
            guard case .follow = try await ask(task, "/a", policy) else { throw Unexpected() }
        }
        var head = Settlement(task: tasks[0], .advanced(TaskProgress()))
        head.isNotReusable = true
        try await fixture.settle(head)
        #expect(try await fixture.claim().map(\.id) == [tasks[1]])
        guard case .load(nil, leads: false) = try await ask(tasks[1], "/a", .useProtocolCachePolicy) else {
            throw Unexpected()
        }
        try await land(tasks[0], landing(isReusable: false))
        #expect(try await fixture.claim().map(\.id) == [tasks[2]])
        guard case .use(_, .collapsed) = try await ask(tasks[2]) else { throw Unexpected() }
    }

    @Test func `An error of the origin ends leader and followers`() async throws {
        let (leader, follower) = try await pair()
        try await land(leader, landing(status: 404), .httpError)
        #expect(try await fixture.claim().map(\.id) == [follower])
        guard case .use(let stored, .collapsed) = try await ask(follower) else { throw Unexpected() }
        #expect(stored.cached.response.statusCode == 404)
        try await fixture.settle(fixture.completion(follower, .httpError))
        #expect(try await !isStored("/a"))
    }

    @Test func `The followers of a deleted session's leader get a new leader`() async throws {
        let other = try await fixture.makeSession(app: app)
        let leader = try await claimed(in: other)[0]
        #expect(try await ask(leader).leads)
        let follower = try await claimed()[0]
        guard case .follow = try await ask(follower) else { throw Unexpected() }
        _ = try await store.sessions.forget(other.id, at: fixture.now)
        try await fixture.clean()
        try await fixture.clean()
        try await expectTakeover(of: follower, from: leader)
    }

    @Test(arguments: [false, true])
    func `A leader passes its bytes on when its session is deleted, before and after its rows are`(isRemoved: Bool)
        async throws
    {
        let other = try await fixture.makeSession(app: app)
        let (leader, follower) = (try await claimed(in: other)[0], try await claimed()[0])
        #expect(try await ask(leader).leads)
        guard case .follow = try await ask(follower) else { throw Unexpected() }
        let stopped = try await store.sessions.forget(other.id, at: fixture.now).1
        #expect(stopped.transfersToStop == [leader])
        let file = "partial/\(leader.rawValue)"
        func remove() async throws {
            let aftermath = try await fixture.clean([.forgottenSessions])
            #expect(!aftermath.filesToRemove.contains(file))
        }
        if isRemoved { try await remove() }
        #expect(try await fixture.claim().isEmpty, "the transfer still writes")
        let aftermath = try await fixture.settle(Settlement(task: leader, .interrupted(Self.progress(1000))))
        #expect(aftermath.filesToRemove == [])
        if !isRemoved { try await remove() }
        try await expectTakeover(of: follower, from: leader, file: file)
    }

    @Test func `A leader of a deleted session that waits for its next attempt passes its bytes on`() async throws {
        let other = try await fixture.makeSession(app: app)
        let (leader, follower) = (try await claimed(in: other)[0], try await claimed()[0])
        #expect(try await ask(leader).leads)
        guard case .follow = try await ask(follower) else { throw Unexpected() }
        let later = fixture.now + .seconds(60)
        try await fixture.settle(
            Settlement(task: leader, .retry(at: later, waitsForConnectivity: false, Self.progress(1000))))
        _ = try await store.sessions.forget(other.id, at: fixture.now)
        let file = "partial/\(leader.rawValue)"
        #expect(try await !fixture.clean([.forgottenSessions]).filesToRemove.contains(file))
        try await expectTakeover(of: follower, from: leader, file: file)
    }

    @Test func `The end of a follower does not affect the others`() async throws {
        let tasks = try await claimed(3)
        for task in tasks { _ = try await ask(task) }
        _ = try await store.tasks.command(.cancel(reason: nil), task: tasks[1], at: fixture.now)
        _ = try await store.tasks.command(.suspend, task: tasks[2], at: fixture.now)
        _ = try await store.tasks.command(.resume, task: tasks[2], at: fixture.now)
        #expect(try await fixture.claim().map(\.id) == [tasks[2]])
        guard case .follow = try await ask(tasks[2]) else { throw Unexpected() }
        fixture.advance(.seconds(700_000))
        _ = try await store.tasks.expire(at: fixture.now, limit: 10)
        #expect(try await store.tasks.read(tasks[2]).result?.error?.code == .timedOut)
        try await expectSoundLedger(fixture)
    }
}

extension CacheAnswer {
    var leads: Bool { if case .load(_, leads: true) = self { true } else { false } }
}
