import Core
import Formats
import TestSupport
import Testing

@testable import Store

struct ResumeDataTests {
    private let nonce: [UInt8] = [9, 9, 9]

    private func cancelled(_ fixture: StoreFixture, _ session: SessionRecord) async throws {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.store.tasks.cancel(
            task.id, keeping: .file("partial/resume-1"), length: 100, nonce: nonce, at: fixture.now)
        #expect(try await fixture.store.tasks.read(task.id).outcome == .cancelled)
    }

    private func continued(_ fixture: StoreFixture, clientTaskId: String? = nil) -> NewTask {
        var task = fixture.download { $0.clientTaskId = clientTaskId }
        task.resumeNonce = nonce
        task.progress = TaskProgress()
        task.progress?.adoptedFile = "partial/resume-1"
        return task
    }

    @Test
    func `Resume data starts one task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        #expect(
            try await fixture.store.tasks.kept(for: nonce, app: session.app, at: fixture.now)
                == .file("partial/resume-1"))
        let first = continued(fixture, clientTaskId: "c")
        try await fixture.create([first], in: session)
        await #expect(throws: DomainError.resumeDataSpent(index: 0)) {
            try await fixture.create([continued(fixture)], in: session)
        }
        // The same order again does not use the data twice.
        #expect(try await fixture.create([first], in: session)[0].isExisting)
        #expect(try await fixture.store.files.isNeeded(file: "partial/resume-1"))
    }

    @Test
    func `The file is kept for a task that has not begun for days, until the task has adopted it or is gone`()
        async throws
    {
        for isDeleted in [false, true] {
            let fixture = try await StoreFixture()
            let files = fixture.store.files
            try await cancelled(fixture, try await fixture.makeSession())
            let session = try await fixture.makeSession("other", app: fixture.makeApp())
            try await fixture.create([continued(fixture)], in: session)
            fixture.advance(Store.Tasks.resumeDataPeriod * 3)
            _ = try await fixture.clean()
            #expect(try await files.isNeeded(file: "partial/resume-1"))
            let task = try #require(try await fixture.claim().first)
            if isDeleted {
                _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
                #expect(try await fixture.clean().filesToRemove.contains("partial/resume-1"))
            } else {
                try await fixture.settle(Settlement(task: task.id, .advanced(TaskProgress())))
            }
            #expect(try await files.need(of: "partial/resume-1") == .useless)
        }
    }

    @Test
    func `A held task is resumed if the service dies before its cancellation, and keeps its bytes`()
        async throws
    {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create((0..<3).map { _ in fixture.download() }, in: session).map(\.task.id)
        _ = try await fixture.store.tasks.command(.suspend, task: tasks[1], at: fixture.now)
        for task in tasks { _ = try await fixture.store.tasks.hold(task, at: fixture.now) }
        // The app suspends it meanwhile.
        _ = try await fixture.store.tasks.command(.suspend, task: tasks[2], at: fixture.now)
        _ = try await fixture.store.tasks.recoverInterrupted(at: fixture.now)
        var phases: [TaskLife.Phase?] = []
        for task in tasks { phases.append(try await fixture.store.tasks.read(task).phase) }
        #expect(phases == [.queued, .suspended, .suspended])
        _ = try await fixture.store.tasks.hold(tasks[0], at: fixture.now)
        _ = try await fixture.store.tasks.letGoOn(tasks[0], at: fixture.now)
        #expect(try await fixture.store.tasks.read(tasks[0]).phase == .queued)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A failed order does not use up the resume data`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        await #expect(throws: DomainError.tooManyTasks(limit: 0, index: 0)) {
            try await fixture.create([continued(fixture)], in: session, limit: 0)
        }
        try await fixture.create([continued(fixture)], in: session)
    }

    private func progress(_ offset: Int64) -> TaskProgress {
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = offset }, source: 0)
        return progress
    }

    @Test(arguments: [nil, Int64(10)])
    func `What a transfer wrote before its task was cancelled is kept for the retry`(_ recorded: Int64?) async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.create(fixture.download(), in: session)
        let task = try await fixture.claim()[0].id
        if let recorded { try await fixture.settle(Settlement(task: task, .advanced(progress(recorded)))) }
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task, at: fixture.now)
        #expect(try await fixture.store.apps.read(session.app).storedBytes == recorded ?? 0)
        let late = try await fixture.settle(Settlement(task: task, .interrupted(progress(100))))
        #expect(late.filesToRemove.isEmpty)
        let kept = try await fixture.store.tasks.kept(
            for: Store.Tasks.nonceOfRetry(task), app: session.app, at: fixture.now)
        #expect(kept == .file("partial/\(task.rawValue)"))
        #expect(try await fixture.store.tasks.read(task).result?.progress.keptOffset == 100)
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 100)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `What a transfer of a deleted session wrote is not kept`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.create(fixture.download(), in: session)
        let task = try await fixture.claim()[0].id
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task, at: fixture.now)
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        let late = try await fixture.settle(Settlement(task: task, .interrupted(progress(100))))
        #expect(late.filesToRemove == ["partial/\(task.rawValue)"])
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 0)
    }

    @Test
    func `Resume data is valid for a day and for its own app`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        #expect(try await fixture.store.tasks.kept(for: nonce, app: AppID(77), at: fixture.now) == nil)
        fixture.advance(.seconds(24 * 3600))
        #expect(try await fixture.store.tasks.kept(for: nonce, app: session.app, at: fixture.now) == nil)
        let swept = try await fixture.clean()
        #expect(swept.filesToRemove == ["partial/resume-1"])
        #expect(try await !fixture.store.files.isNeeded(file: "partial/resume-1"))
    }

    @Test
    func `The bytes of resume data count as stored until a task resumes or they are deleted`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        func stored() async throws -> Int64 {
            try await expectSoundLedger(fixture)
            return try await fixture.store.apps.read(session.app).storedBytes
        }
        try await cancelled(fixture, session)
        #expect(try await stored() == 100)
        try await fixture.create([continued(fixture)], in: session)
        #expect(try await stored() == 0)
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.store.tasks.cancel(
            task.id, keeping: .file("partial/2"), length: 7, nonce: [2], at: fixture.now)
        #expect(try await stored() == 7)
        fixture.advance(.seconds(24 * 3600))
        try await fixture.clean()
        #expect(try await stored() == 0)
    }

    @Test
    func `An app at its quota may still resume from resume data`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        func create(_ task: NewTask) async throws {
            _ = try await fixture.store.tasks.create(
                [task], in: session.id, limit: .max, storedLimit: 100, at: fixture.now)
        }
        try await cancelled(fixture, session)
        await #expect(throws: DomainError.storedBytesExceeded(index: 0)) { try await create(fixture.download()) }
        try await create(continued(fixture))
    }

    @Test
    func `Resume data is deleted with its app`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        _ = try await fixture.store.apps.delete(session.app)
        #expect(try await fixture.clean().filesToRemove.contains("partial/resume-1"))
        #expect(try await !fixture.store.files.isNeeded(file: "partial/resume-1"))
    }

    @Test
    func `The bytes of resume data no longer count when the master key is lost`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        try await fixture.store.upkeep.loseSecrets(at: fixture.now) { [1] }
        try await expectSoundLedger(fixture)
        #expect(try await fixture.store.apps.read(session.app).storedBytes == 0)
    }

    @Test
    func `The task's own partial file is kept, even after a late settlement`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.create(fixture.download(), in: session)
        let task = try await fixture.claim()[0]
        try await fixture.settle(Settlement(task: task.id, .advanced(TaskProgress())))
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        let file = "partial/\(task.id.rawValue)"
        let cancel = try await fixture.store.tasks.cancel(
            task.id, keeping: .file(file), length: 10, nonce: nonce, at: fixture.now)
        #expect(cancel.filesToRemove.isEmpty)
        let late = try await fixture.settle(Settlement(task: task.id, .interrupted(TaskProgress())))
        #expect(late.filesToRemove.isEmpty)
        #expect(try await fixture.store.files.isNeeded(file: file))
        #expect(try await fixture.store.files.discarded(limit: 10).isEmpty)
        // A task from the data that is cancelled in the same way before it has begun.
        var continued = fixture.download()
        continued.resumeNonce = nonce
        continued.progress = TaskProgress()
        continued.progress?.adoptedFile = file
        let next = try await fixture.create(continued, in: session)
        let again = try await fixture.store.tasks.cancel(
            next.id, keeping: .file(file), length: 10, nonce: [8], at: fixture.now)
        #expect(!again.filesToRemove.contains(file))
    }

    @Test
    func `The kept file is removed with a task that is cancelled before it adopts the file`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await cancelled(fixture, session)
        let task = try await fixture.create(continued(fixture), in: session)
        let (_, aftermath) = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        #expect(aftermath.filesToRemove.contains("partial/resume-1"))
    }
}

struct IdempotencyVerbTests {
    private func recording<Result>(_ key: String, secret: Bool = false) -> Recording<Result> {
        Recording(principal: "app/1", key: key, fingerprint: [1]) { _ in
            StoredAnswer(
                status: 201, headers: HTTPFields([HTTPField(name: "Location", value: "/x")]),
                body: Array("canary-answer".utf8), holdsSecrets: secret)
        }
    }

    @Test
    func `An idempotent response is stored with its tasks, or not at all`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await fixture.store.tasks.create(
            [fixture.download()], in: session.id, limit: .max, at: fixture.now, recording: recording("k1"))
        await #expect(throws: DomainError.bodyNotFound(index: 0)) {
            try await fixture.store.tasks.create(
                [fixture.download(body: .stored("none"))], in: session.id, limit: .max, at: fixture.now,
                recording: recording("k2"))
        }
        let kept = try #require(
            try await fixture.store.apps.storedAnswer(principal: "app/1", key: "k1", at: fixture.now))
        #expect(kept.fingerprint == [1])
        #expect(kept.answer.status == 201)
        #expect(kept.answer.headers["location"] == "/x")
        #expect(kept.answer.body == Array("canary-answer".utf8))
        #expect(try await fixture.store.apps.storedAnswer(principal: "app/1", key: "k2", at: fixture.now) == nil)
        #expect(try await fixture.store.apps.storedAnswer(principal: "app/2", key: "k1", at: fixture.now) == nil)
        fixture.advance(.seconds(24 * 3600))
        #expect(try await fixture.store.apps.storedAnswer(principal: "app/1", key: "k1", at: fixture.now) == nil)
    }

    @Test
    func `The database files contain no secret in plain text`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession {
            $0.httpAdditionalHeaders.append("Authorization", "canary-session")
            $0.proxy = SessionConfiguration.Proxy(
                kind: .http, host: "p", port: 1, user: "u", password: "canary-proxy")
        }
        try await fixture.create(
            [
                fixture.download { $0.request.headers.append("Cookie", "canary-task") },
                fixture.download {
                    $0.request.headers.append("X-Mine", "canary-sensitive")
                    $0.request.sensitiveHeaders = ["x-mine"]
                },
            ], in: session)
        let claimed = try await fixture.claim(1)
        try await fixture.settle(fixture.ask(claimed[0].id, "q"))
        let answer = Answer(
            disposition: .useCredential, credential: Credential(user: "canary-user", password: "canary-password"))
        _ = try await fixture.store.questions.answer("q", app: session.app, with: answer, origin: nil, at: fixture.now)
        let space = ProtectionSpace(
            host: "h", port: 1, scheme: "https", realm: nil, authenticationMethod: .bearer)
        try await fixture.store.questions.keep(
            Credential(token: "canary-token"), for: space, app: session.app, session: nil, credentialId: "cred_1",
            at: fixture.now)
        try await fixture.store.apps.rotateWebhookSecret(
            of: session.app, to: Array("canary-rotated".utf8), previousExpiresAt: fixture.now + .seconds(1),
            at: fixture.now)
        try await fixture.store.apps.record(recording("k", secret: true), at: fixture.now)
        // The secrets can be read with the key.
        #expect(try await fixture.store.apps.webhookSecrets(of: session.app, at: fixture.now).count == 2)
        let found = try await fixture.store.questions.credentials(
            host: "H", port: 1, app: session.app, session: session.id)
        #expect(found.map(\.credential.token) == ["canary-token"])
        let kept = try await fixture.store.apps.storedAnswer(principal: "app/1", key: "k", at: fixture.now)
        #expect(kept?.answer.body == Array("canary-answer".utf8))
        for name in filesBelow(fixture.folder.path) {
            let bytes = readFile(fixture.folder.file(name)) ?? []
            #expect(!contains(bytes, Array("canary".utf8)), "\(name)")
        }
    }

    private func contains(_ bytes: [UInt8], _ pattern: [UInt8]) -> Bool {
        guard bytes.count >= pattern.count else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            (0...(bytes.count - pattern.count)).contains { start in
                bytes[start] == pattern[0] && bytes[start..<start + pattern.count].elementsEqual(pattern)
            }
        }
    }
}
