import Base
import Core
import Formats
import SQL
import TestSupport
import Testing

@testable import Store

/// Sets at rest: their versions, the files that these share with other rows, and the launches that wait for them.
struct SetStoreTests {
    let fixture: StoreFixture
    let session: SessionRecord

    init() async throws {
        fixture = try await StoreFixture()
        session = try await fixture.makeSession()
    }

    var sets: Store.Sets { fixture.store.sets }

    func set(
        _ name: String = "set", _ change: @escaping @Sendable (inout SetConfiguration) -> Void = { _ in }
    ) async throws -> SetRecord {
        try await sets.put(name, of: session.app, ifRevision: nil, at: fixture.now, change: change).set
    }

    func file(_ path: String, digest: SetDigest? = nil, length: Int64? = nil) -> SetFile {
        SetFile(path, TransferRequest(url: "https://origin.example/\(path)", method: "GET"), digest, length: length)
    }

    func begin(_ set: SetRecord, _ files: [SetFile]) async throws -> SetVersionID {
        let id = try await sets.begin(
            NewSetVersion(publicId: Identifier.make(prefix: "sver_"), source: nil, metadata: [:]), of: set, in: session,
            at: fixture.now)
        try await sets.add(files, to: id)
        return id
    }

    func make(_ set: SetRecord, _ files: [SetFile], named name: String? = nil) async throws -> SetVersionRecord {
        try await sets.finish(
            try await begin(set, files), named: name, fingerprint: Array("\(files)".utf8), at: fixture.now
        ).received.version
    }

    /// Creates the tasks of a version.
    func start(_ version: SetVersionRecord) async throws -> [String: TaskID] {
        let wanted = try await sets.takeListed(version.id, revalidates: true, limit: 100, at: fixture.now).wanted
        let (created, _) = try await sets.createTasks(
            wanted.map { item in
                (
                    item.file.path,
                    fixture.download("/\(item.file.path)") {
                        $0.ifNoneMatch = item.validator?.entityTag
                        $0.ifModifiedSince = item.validator?.lastModified
                        $0.group = version.publicId
                    }
                )
            }, of: version.id, in: session.id, limit: .max, storedLimit: .max, at: fixture.now)
        _ = try await fixture.claim()
        return Dictionary(uniqueKeysWithValues: zip(wanted.map(\.file.path), created.map(\.task.id)))
    }

    func complete(
        _ task: TaskID, _ outcome: Outcome = .succeeded, bytes: [UInt8]? = Array("content".utf8), tag: String? = nil,
        fields: [HTTPField] = []
    ) async throws {
        var settlement = fixture.completion(task, outcome, bytes: bytes)
        if case .completed(_, var result, let content) = settlement.verdict {
            result.response = TaskResponse {
                $0.statusCode = 200
                $0.headers = HTTPFields((tag.map { [HTTPField(name: "ETag", value: $0)] } ?? []) + fields)
            }
            var metrics = TransactionMetrics(url: "https://origin.example/", fetchStartDate: fixture.now)
            metrics.responseStartDate = fixture.now
            result.progress.record(metrics)
            settlement.verdict = .completed(outcome, result, content)
        }
        try await fixture.settle(settlement)
    }

    /// A large content, whose file other rows may share.
    private func completeLarge(_ task: TaskID, digest: String) async throws {
        let content = NewContent(
            storage: .file("contents/00/\(task.rawValue)"), length: 100_000,
            digest: ContentDigest(algorithm: .sha256, value: digest))
        try await fixture.settle(
            Settlement(task: task, .completed(.succeeded, TaskResult(progress: TaskProgress()), content)))
    }

    @discardableResult
    func publish(_ version: SetVersionRecord) async throws -> SetVersionRecord {
        for event in [SetVersionState.Event.fetched, .verified] {
            _ = try await sets.handle(event, version.id, at: fixture.now)
        }
        _ = try await sets.publish(version.id, manifestDigest: "d", at: fixture.now)
        return try await sets.read(version.id)
    }

    func published(_ set: SetRecord, _ files: [SetFile], named name: String? = nil) async throws
        -> SetVersionRecord
    {
        let version = try await make(set, files, named: name)
        for task in try await start(version).values { try await complete(task, tag: "\"1\"") }
        return try await publish(version)
    }

    private func reasons() async throws -> LaunchRule.Reasons? {
        guard let launch = try await fixture.openLaunch(session) else { return nil }
        return try await Launches.reasons(of: launch, fixture.store)
    }

    @Test func `A version is published once each file is fetched, and the launch waits for it`() async throws {
        let set = try await set()
        let version = try await make(set, [file("b"), file("a/b")], named: "1")
        #expect(version.state == .fetching && version.files.total == 2)
        let tasks = try await start(version)
        try await complete(#require(tasks["b"]))
        #expect(try await sets.due(at: fixture.now).contains { $0.work == .version(version.id) })
        try await sets.waitForTasks(of: version.id)
        #expect(try await sets.standing(of: version.id)?.openFiles == 1)
        try await complete(#require(tasks["a/b"]))
        #expect(try await sets.due(at: fixture.now).map(\.work) == [.version(version.id)])
        #expect(try await fixture.openLaunch(session) == nil)
        try await expectSoundLedger(fixture)

        let read = try await publish(version)
        #expect(read.state == .published && read.files.fetched == 2 && read.bytes.fetched == 14)
        let now = try await sets.read("set", of: session.app)
        #expect(now.current?.id == version.id && now.revision == set.revision + 1)
        #expect(try await fixture.kinds(session).last == .didPublish)
        #expect(try await reasons() == [.tasksFinished, .setPublished])
        #expect(try await sets.keptFiles(of: version.id, after: "", limit: 10).map(\.file.path) == ["a/b", "b"])
        try await expectSoundLedger(fixture)
    }

    @Test func `A failed file fails the version, and a retry fetches it alone`() async throws {
        let set = try await set()
        let version = try await make(set, [file("a"), file("b")], named: "1")
        let tasks = try await start(version)
        try await complete(#require(tasks["a"]))
        try await complete(#require(tasks["b"]), .httpError, bytes: nil)
        var failed = try await sets.handle(.failed, version.id, at: fixture.now).version
        #expect(failed.state == .failed && failed.failures.map(\.path) == ["b"])
        #expect(failed.failures.first?.task == 2)
        #expect(try await fixture.kinds(session).last == .didFailToPublish)
        #expect(try await reasons() == [.tasksFinished, .setFailed])
        #expect(try await sets.read("set", of: session.app).current == nil)

        failed = try await sets.retry(version.id, ifRevision: nil, at: fixture.now).version
        #expect(failed.state == .fetching && failed.failures.isEmpty)
        let again = try await start(version)
        #expect(again.keys.map { $0 } == ["b"])
        try await complete(#require(again["b"]))
        #expect(try await publish(version).state == .published)
        try await expectSoundLedger(fixture)
    }

    @Test func `A name belongs to one request, until its version fails`() async throws {
        let set = try await set()
        let version = try await make(set, [file("a")], named: "1")
        #expect(try await make(set, [file("a")], named: "1").id == version.id)
        await #expect(throws: DomainError.setVersionExists) { try await make(set, [file("b")], named: "1") }
        _ = try await sets.handle(.cancel, version.id, at: fixture.now)
        let next = try await make(set, [file("b")], named: "1")
        #expect(next.id != version.id)
        #expect(try await sets.version("1", of: set.id).id == next.id)
        #expect(try await sets.version(version.publicId, of: set.id).state == .cancelled)
        _ = try await sets.handle(.failed, next.id, at: fixture.now)
        _ = try await make(set, [file("c")], named: "1")
        await #expect(throws: DomainError.setVersionExists) {
            try await sets.retry(next.id, ifRevision: nil, at: fixture.now)
        }
    }

    @Test(arguments: [["a", "a"], ["a/b", "a"], ["a", "a/b"], ["a", "a.b", "a/b/c"]])
    func `A path is one file and no folder`(_ paths: [String]) async throws {
        let set = try await set()
        let id = try await begin(set, paths.dropLast().map { file($0) })
        await #expect(throws: SetPathCollision.self) { try await sets.add([file(paths[paths.count - 1])], to: id) }
        await #expect(throws: SetPathCollision.self) { try await begin(set, paths.map { file($0) }) }
        try await sets.add([file("A"), file("a0"), file("ab/c")], to: id)
    }

    @Test func `A listed digest and a confirmed tag save a transfer`() async throws {
        let set = try await set()
        let digest = SetDigest(.gitBlobSHA1, "ab")
        let first = try await published(set, [file("a", digest: digest), file("b"), file("c")], named: "1")
        let other = SetFile("b", TransferRequest(url: "https://origin.example/other", method: "GET"))
        let second = try await make(set, [file("x", digest: digest), other, file("c")], named: "2")
        let wanted = try await sets.takeListed(second.id, revalidates: true, limit: 10, at: fixture.now)
        #expect(wanted.reused == 1 && wanted.wanted.map(\.file.path) == ["b", "c"])
        // The tag belongs to another URL.
        #expect(wanted.wanted.map(\.validator?.entityTag) == [nil, "\"1\""])
        let tasks = try await start(second)
        try await complete(#require(tasks["b"]))
        try await complete(#require(tasks["c"]), .notModified, bytes: nil)
        let read = try await publish(second)
        #expect(read.files.reused == 2 && read.files.fetched == 1 && read.bytes.reused == 14)
        #expect(try await sets.read(first.id).replacedAt == fixture.now)
        try await expectSoundLedger(fixture)
    }

    @Test func `A date saves a transfer if it is strong`() async throws {
        let set = try await set()
        let files = [file("a"), file("b"), file("c")]
        let (date, earlier) = ("Fri, 15 Jan 2027 08:00:00 GMT", "Thu, 14 Jan 2027 08:00:00 GMT")
        let first = try await make(set, files, named: "1")
        for (path, task) in try await start(first) {
            let modified = HTTPField(name: "Last-Modified", value: path == "b" ? date : earlier)
            try await complete(
                task, tag: path == "c" ? "W/\"1\"" : nil, fields: [HTTPField(name: "Date", value: date), modified])
        }
        try await publish(first)
        let second = try await make(set, files, named: "2")
        let wanted = try await sets.takeListed(second.id, revalidates: true, limit: 10, at: fixture.now).wanted
        let dates: [String?] = [earlier, nil, nil]
        #expect(wanted.map(\.validator?.lastModified) == dates)
        let tasks = try await start(second)
        try await complete(#require(tasks["a"]), .notModified, bytes: nil)
        for path in ["b", "c"] { try await complete(#require(tasks[path])) }
        let read = try await publish(second)
        #expect(read.files.reused == 1 && read.files.fetched == 2)
        try await expectSoundLedger(fixture)
    }

    @Test func `A confirmed tag is that of the request, whatever was published since`() async throws {
        let set = try await set()
        _ = try await published(set, [file("a")], named: "1")
        let second = try await make(set, [file("a")], named: "2")
        let third = try await make(set, [file("a")], named: "3")
        let (ofSecond, ofThird) = (try await start(second), try await start(third))
        try await complete(#require(ofSecond["a"]), bytes: Array("other".utf8), tag: "\"2\"")
        try await publish(second)
        // The origin confirms the first version's tag, whose bytes the newest version does not have.
        try await complete(#require(ofThird["a"]), .notModified, bytes: nil)
        #expect(try await sets.read(third.id).files.reused == 0)
        let again = try await sets.takeListed(third.id, revalidates: true, limit: 10, at: fixture.now).wanted
        #expect(again.map(\.validator?.entityTag) == ["\"2\""])
        try await expectSoundLedger(fixture)
    }

    @Test func `The response for an Idempotency-Key is stored with the version, or there is none`() async throws {
        let draft = try await begin(try await set(), [file("a")])
        func finish() async throws -> SetVersionRecord {
            let recording = Recording<ReceivedSetVersion>(principal: "app", key: "k", fingerprint: [1]) { received in
                StoredAnswer(
                    status: 201, headers: HTTPFields([]), body: Array(received.version.publicId.utf8),
                    holdsSecrets: true)
            }
            return try await sets.finish(draft, named: nil, fingerprint: [1], at: fixture.now, recording: recording)
                .received.version
        }
        let version = try await finish()
        let stored = try await fixture.store.apps.storedAnswer(principal: "app", key: "k", at: fixture.now)
        #expect(stored?.answer.body == Array(version.publicId.utf8))
        // Another node has answered the same request meanwhile.
        let other = try await begin(try await set(), [file("a")])
        await #expect(throws: DomainError.answeredMeanwhile) {
            try await sets.finish(
                other, named: nil, fingerprint: [1], at: fixture.now,
                recording: Recording(principal: "app", key: "k", fingerprint: [1]) { _ in
                    StoredAnswer(status: 201, headers: HTTPFields([]), body: [], holdsSecrets: false)
                })
        }
        #expect(try await sets.standing(of: other)?.isReceived == false)
    }

    @Test func `The version in flight of a deleted session is due, and is cancelled`() async throws {
        let set = try await set()
        _ = try await published(set, [file("b")])
        _ = try await sets.retire(set.id, but: [], at: fixture.now)
        let version = try await make(set, [file("a")])
        _ = try await start(version)
        try await sets.waitForTasks(of: version.id)
        #expect(try await sets.due(at: fixture.now).isEmpty)
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        #expect(try await sets.due(at: fixture.now).map(\.work) == [.version(version.id)])
        #expect(try await sets.standing(of: version.id)?.hasLostSession == true)
        #expect(try await sets.handle(.cancel, version.id, at: fixture.now).version.state == .cancelled)
    }

    @Test func `A set keeps the bytes that it shares with contents`() async throws {
        let set = try await set { $0.keep = 0 }
        let version = try await make(set, [file("a")], named: "1")
        let task = try #require(try await start(version)["a"])
        try await completeLarge(task, digest: "ab")
        try await publish(version)
        let path = "contents/00/\(task.rawValue)"
        #expect(try await fixture.store.files.claimContent(of: task, at: fixture.now).filesToRemove == [])
        #expect(try await fixture.store.files.isNeeded(file: path))
        try await expectSoundLedger(fixture)

        // Another set of the app takes the same bytes by their digest alone.
        let other = try await self.set("other")
        let copy = try await make(other, [file("b", digest: SetDigest(.sha256, "ab"), length: 100_000)], named: "1")
        #expect(try await sets.takeListed(copy.id, revalidates: true, limit: 10, at: fixture.now).reused == 1)
        let wrong = try await make(other, [file("b", digest: SetDigest(.sha256, "ab"), length: 7)], named: "2")
        #expect(try await sets.takeListed(wrong.id, revalidates: true, limit: 10, at: fixture.now).reused == 0)
        try await expectSoundLedger(fixture)

        for other in [copy, wrong] { _ = try await sets.handle(.cancel, other.id, at: fixture.now) }
        for id in [version.id, copy.id] {
            let removed = try await sets.remove(id, limit: 10, at: fixture.now)
            #expect(!removed.0 && removed.1.filesToRemove == (id == copy.id ? [path] : []))
        }
        try await expectSoundLedger(fixture)
    }

    @Test func `A small file of which a content or the cache has the digest is not fetched`() async throws {
        let task = try await fixture.create(fixture.download(), in: session).id
        _ = try await fixture.claim()
        var settlement = fixture.completion(task)
        if case .completed(_, _, let content?) = settlement.verdict {
            let response = CachedResponse { $0.response.statusCode = 200 }
            let key = CacheKey { $0.url = "https://origin.example/a" }
            settlement.landing = Landing(response, key, isReusable: true, content: content)
        }
        try await fixture.settle(settlement)
        let bytes = Array("content".utf8)
        try await sets.indexContents(of: session.app)
        let set = try await set()
        let digest = SetDigest(.sha256, Digest.of(bytes).hexadecimal)
        func isKnown(_ name: String) async throws -> Bool {
            let version = try await make(set, [file("a", digest: digest)], named: name)
            let reused = try await sets.takeListed(version.id, revalidates: true, limit: 10, at: fixture.now).reused
            if reused == 1 {
                guard case .bytes(bytes)? = try await sets.keptFiles(["a"], of: version.id).first?.storage else {
                    return false
                }
            }
            _ = try await sets.handle(.cancel, version.id, at: fixture.now)
            _ = try await sets.remove(version.id, limit: 10, at: fixture.now)
            try await expectSoundLedger(fixture)
            return reused == 1
        }
        #expect(try await isKnown("of the content"))
        _ = try await fixture.store.files.claimContent(of: task, at: fixture.now)
        #expect(try await isKnown("of the cache"))
        _ = try await fixture.store.cache.empty(of: session.app, url: nil, at: fixture.now)
        #expect(try await !isKnown("of neither"))
    }

    @Test func `Small contents are indexed from the first set of their app on, those from before too`() async throws {
        let other = try await fixture.makeSession("other", app: session.app)
        var wanted = [SetFile]()
        func keep(_ text: String, in session: SessionRecord) async throws {
            let task = try await fixture.create(fixture.download(), in: session).id
            _ = try await fixture.claim()
            try await fixture.settle(fixture.completion(task, bytes: Array(text.utf8)))
            let digest = SetDigest(.sha256, Digest.of(Array(text.utf8)).hexadecimal)
            wanted.append(file("\(wanted.count)", digest: digest))
        }
        func indexed() async throws -> Int64? {
            try await fixture.store.database.read { db in
                try db.value("SELECT count(*) FROM content WHERE indexed = 1") { $0.integer(0) }
            }
        }
        for n in 0..<5 { try await keep("content \(n)", in: n < 3 ? session : other) }
        #expect(try await indexed() == 0)
        try await sets.indexContents(of: session.app, atOnce: 2)
        let set = try await set()
        try await sets.indexContents(of: session.app)
        try await keep("content 5", in: other)
        let version = try await make(set, wanted)
        #expect(try await sets.takeListed(version.id, revalidates: true, limit: 10, at: fixture.now).reused == 6)
        for content in try await fixture.store.tasks.list(in: session.id, TaskFilter(), after: 0, limit: 10) {
            _ = try await fixture.store.files.claimContent(of: content.id, at: fixture.now)
        }
        #expect(try await indexed() == 3)
    }

    @Test func `Equal files of a version are freed together`() async throws {
        let version = try await make(try await set(), [file("a"), file("b"), file("c")], named: "1")
        let tasks = try await start(version)
        for (path, digest) in ["a": "ab", "b": "ab", "c": "cd"] {
            try await completeLarge(#require(tasks[path]), digest: digest)
        }
        for task in tasks.values { _ = try await fixture.store.files.claimContent(of: task, at: fixture.now) }
        try await expectSoundLedger(fixture)
        _ = try await sets.handle(.cancel, version.id, at: fixture.now)
        #expect(try await Set(sets.remove(version.id, limit: 10, at: fixture.now).1.filesToRemove).count == 2)
        try await expectSoundLedger(fixture)
    }

    @Test func `Versions beyond those to keep are retired after their grace`() async throws {
        let set = try await set {
            $0.keep = 1
            $0.grace = 100
        }
        var versions: [SetVersionRecord] = []
        for number in 1...4 {
            versions.append(try await published(set, [file("a")], named: "\(number)"))
            fixture.advance(.seconds(10))
        }
        _ = try await sets.retire(set.id, but: [], at: fixture.now)
        #expect(try await sets.read(set.id).kept.map(\.name) == ["4", "3", "2", "1"])
        // The second replaced the first 30 s ago.
        #expect(try await sets.nextDue() == fixture.now + .seconds(70))
        fixture.advance(.seconds(70))
        _ = try await sets.retire(set.id, but: [versions[0].id], at: fixture.now)
        #expect(try await sets.read(set.id).kept.map(\.name) == ["4", "3", "2", "1"], "a reader has it open")
        _ = try await sets.retire(set.id, but: [], at: fixture.now)
        #expect(try await sets.read(set.id).kept.map(\.name) == ["4", "3", "2"])
        fixture.advance(.seconds(10))
        _ = try await sets.retire(set.id, but: [], at: fixture.now)
        #expect(try await sets.read(set.id).kept.map(\.name) == ["4", "3"])
        await #expect(throws: DomainError.notFound) { try await sets.version("1", of: set.id) }
    }

    @Test func `A switch makes a kept version current, and an older version in flight is overtaken`() async throws {
        let set = try await set()
        let slow = try await make(set, [file("s")], named: "slow")
        let first = try await published(set, [file("a")], named: "1")
        let second = try await published(set, [file("a")], named: "2")
        #expect(try await sets.standing(of: slow.id)?.isOvertaken == true)
        await #expect(throws: DomainError.setVersionState(.fetching)) {
            try await sets.beginSwitch(of: set.id, to: slow.id, ifRevision: nil, at: fixture.now)
        }
        await #expect(throws: DomainError.revisionMismatch) {
            try await sets.beginSwitch(of: set.id, to: first.id, ifRevision: 99, at: fixture.now)
        }
        _ = try await sets.beginSwitch(of: set.id, to: first.id, ifRevision: nil, at: fixture.now)
        #expect(try await sets.read(set.id).current?.id == second.id)
        _ = try await sets.endSwitch(of: set.id, to: first.id, at: fixture.now)
        let now = try await sets.read(set.id)
        #expect(now.current?.id == first.id && now.current?.replacedAt == nil)
        #expect(now.kept.map(\.name) == ["1", "2"])
        // The second is not newer than itself because it is not current any more.
        #expect(try await sets.standing(of: slow.id)?.isOvertaken == true)
    }

    @Test func `Destination and layout stay once a version exists`() async throws {
        let set = try await set()
        for destination in [nil, SetDestination { $0.bucket = "b" }] {
            await #expect(throws: DomainError.setLayoutNeedsFolder) {
                try await self.set { ($0.layout, $0.destination) = (.hfCache, destination) }
            }
        }
        _ = try await self.set { $0.destination = Self.hub }
        _ = try await make(set, [file("a")])
        await #expect(throws: DomainError.setHasVersions) { try await self.set { $0.layout = .hfCache } }
        #expect(try await self.set { $0.keep = 7 }.configuration.keep == 7)
    }

    private static let hub = SetDestination { ($0.root, $0.path) = ("out", "hub") }

    @Test func `A repository in the cache of huggingface_hub belongs to one set, and a set has one`() async throws {
        func hub(_ name: String) async throws -> SetRecord {
            try await self.set(name) { ($0.layout, $0.destination) = (.hfCache, Self.hub) }
        }
        func make(_ set: SetRecord, _ repository: String) async throws {
            var source = SetSource()
            (source.kind, source.repository) = (.huggingface, repository)
            let id = try await sets.begin(
                NewSetVersion(publicId: Identifier.make(prefix: "sver_"), source: source, metadata: [:]), of: set,
                in: session, at: fixture.now)
            _ = try await sets.finish(id, named: nil, fingerprint: Array(repository.utf8), at: fixture.now)
        }
        let (first, second) = (try await hub("first"), try await hub("second"))
        try await make(first, "org/a")
        try await make(first, "org/a")
        await #expect(throws: DomainError.setRepositoryTaken) { try await make(second, "org/a") }
        await #expect(throws: DomainError.setRepositoryTaken) { try await make(first, "org/b") }
        try await make(second, "org/b")
        #expect(try await self.set("first") { $0.keep = 7 }.configuration.keep == 7)
        await #expect(throws: DomainError.setRepositoryTaken) { try await make(first, "org/b") }
        _ = try await sets.forget(first.id, keepsFiles: false, ifRevision: nil, at: fixture.now)
        #expect(try await !sets.isOccupied(second.id))
        let next = try await hub("first")
        try await make(next, "org/a")
        #expect(try await sets.isOccupied(next.id), "the deleted set's files are still there")
    }

    @Test func `An invalidated session ends after its versions`() async throws {
        let set = try await set()
        let version = try await make(set, [file("a")])
        _ = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        #expect(try await fixture.refresh(session).state == .invalidating)
        _ = try await sets.handle(.failed, version.id, detail: "The session was invalidated.", at: fixture.now)
        #expect(try await fixture.kinds(session) == [.didFailToPublish, .didBecomeInvalid])
        await #expect(throws: DomainError.sessionInvalidated) { try await make(set, [file("a")]) }
        try await expectSoundLedger(fixture)
    }

    @Test func `A version that is not received whole delays no launch, and its end does not count`() async throws {
        let draft = try await begin(try await set(), [file("a")])
        _ = try await sets.handle(.cancel, draft, at: fixture.now)
        try await expectSoundLedger(fixture)
        let task = try await fixture.create(fixture.download("/a"), in: session).id
        _ = try await fixture.claim()
        try await complete(task)
        #expect(try await reasons() == [.tasksFinished])
    }

    @Test func `The sets of a deleted app are forgotten before the app is gone`() async throws {
        let set = try await set()
        let version = try await published(set, [file("a")])
        _ = try await fixture.store.apps.delete(session.app)
        try await fixture.clean()
        #expect(try await sets.due(at: fixture.now).map(\.work).contains(.set(set.id)))
        #expect(try await sets.standing(of: set.id)?.isForgotten == true)
        #expect(try await !sets.remove(version.id, limit: 10, at: fixture.now).0)
        try await sets.remove(set.id)
        try await fixture.clean()
        #expect(try await sets.standing(of: set.id) == nil)
        let left = try await fixture.store.database.read { db in try db.exists("SELECT 1 FROM deleted_app") }
        #expect(!left)
    }
}
