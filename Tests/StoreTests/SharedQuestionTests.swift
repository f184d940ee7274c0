import Core
import TestSupport
import Testing

@testable import Store

/// Tasks of a session that meet one protection space wait for one question.
struct SharedQuestionTests {
    private let fixture: StoreFixture
    private let session: SessionRecord

    init() async throws {
        fixture = try await StoreFixture()
        session = try await fixture.makeSession()
    }

    private var store: Store { fixture.store }

    /// Tasks that meet the protection space one after the other; their questions would be `q1`, `q2`, ….
    private func meet(_ count: Int, failures: Int = 0) async throws -> [TaskID] {
        try await fixture.create((0..<count).map { _ in fixture.download() }, in: session)
        return try await ask(failures: failures)
    }

    /// All claimable tasks meet the protection space.
    private func ask(failures: Int = 0) async throws -> [TaskID] {
        let claimed = try await fixture.claim().sorted { $0.number < $1.number }
        let asked = claimed.map { fixture.ask($0.id, "q\($0.number)-\(failures)", failures: failures) }
        _ = try await store.tasks.settle(asked, at: fixture.now)
        return claimed.map(\.id)
    }

    private func answer(
        _ questionId: String, _ disposition: Answer.Disposition, _ credential: Credential? = nil
    ) async throws {
        _ = try await store.questions.answer(
            questionId, app: session.app, with: Answer(disposition: disposition, credential: credential), origin: nil,
            credentialId: "c", at: fixture.now)
    }

    private func open() async throws -> [QuestionRecord] {
        try await store.questions.list(of: session.app, session: session.id, states: [.open], after: 0, limit: 100)
            .map(\.question)
    }

    private func stages(_ tasks: [TaskID]) async throws -> [TaskLife.Phase?] {
        var stages: [TaskLife.Phase?] = []
        for task in tasks { stages.append(try await store.tasks.read(task).phase) }
        return stages
    }

    @Test
    func `Several tasks share one event and one question, which each task names`() async throws {
        let tasks = try await meet(3)
        #expect(try await fixture.kinds(session) == [.didReceiveChallenge])
        let question = try #require(try await open().first)
        #expect(question.questionId == "q1-0" && question.task == tasks[0] && question.taskCount == 3)
        for task in tasks { #expect(try await store.tasks.read(task).life.question?.publicId == "q1-0") }
        #expect(try await open().count == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Only the counts of a question's event change while tasks join it`() async throws {
        func event() async throws -> (seq: Int64, question: QuestionRecord) {
            let event = try #require(try await store.sessions.events(of: session.id, after: 0, limit: 10).events.first)
            guard case .question(let question) = event.payload else { throw DomainError.notFound }
            return (event.seq, question)
        }
        _ = try await meet(1)
        let before = try await event()
        _ = try await meet(1, failures: 2)
        var after = try await event()
        #expect(before.question.taskCount == 1 && before.question.question.previousFailureCount == 0)
        #expect(after.question.taskCount == 2 && after.question.question.previousFailureCount == 2)
        after.question.taskCount = 1
        after.question.question.previousFailureCount = 0
        #expect("\(before)" == "\(after)")
    }

    @Test
    func `Another realm, another server key and another session have questions of their own`() async throws {
        _ = try await meet(1)
        var (realm, first, second) = (StoreFixture.space, StoreFixture.space, StoreFixture.space)
        realm.realm = "other"
        first.authenticationMethod = .serverTrust
        first.serverPublicKey = "sha256/one"
        second.authenticationMethod = .serverTrust
        second.serverPublicKey = "sha256/two"
        for (index, space) in [realm, first, second].enumerated() {
            let task = try await fixture.create(fixture.download(), in: session)
            _ = try await fixture.claim()
            try await fixture.settle(fixture.ask(task.id, "other\(index)", about: space))
        }
        #expect(try await open().map(\.taskCount) == [1, 1, 1, 1])
        let neighbour = try await fixture.makeSession(app: session.app)
        let task = try await fixture.create(fixture.download(), in: neighbour)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.ask(task.id, "neighbour"))
        #expect(try await store.questions.read("neighbour", app: session.app).state == .open)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An answer applies to all tasks that wait at that moment, and to no other`() async throws {
        let tasks = try await meet(3)
        try await answer("q1-0", .useCredential, Credential(user: "u", password: "p"))
        let claimed = try await fixture.claim()
        let ids = claimed.map(\.id).sorted { $0.rawValue < $1.rawValue }
        #expect(ids == tasks)
        #expect(claimed.allSatisfy { $0.progress.authentication.map(\.questionId) == ["q1-0"] })
        #expect(try await store.questions.read("q1-0", app: session.app).taskCount == 3)
        for task in claimed { try await fixture.settle(fixture.completion(task.id)) }
        _ = try await meet(1)
        #expect(try await open().count == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A server is trusted by the session that was asked alone`() async throws {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        let space = ProtectionSpace(
            host: "origin.example", port: 443, scheme: "https", realm: nil, authenticationMethod: .serverTrust)
        try await fixture.settle(fixture.ask(task.id, "q1", about: space))
        try await answer("q1", .useCredential, Credential(trustPublicKey: "sha256/k", persistence: .permanent))
        let other = try await fixture.makeSession("other", app: session.app)
        for (session, count) in [(session, 1), (other, 0)] {
            let found = try await store.questions.credentials(
                host: "origin.example", port: 443, app: session.app, session: session.id)
            #expect(found.count == count)
        }
    }

    @Test
    func `A kept credential serves tasks that meet the question later`() async throws {
        try await fixture.create((0..<3).map { _ in fixture.download() }, in: session)
        let claimed = try await fixture.claim().sorted { $0.number < $1.number }
        try await fixture.settle(fixture.ask(claimed[0].id, "q1"))
        try await answer("q1", .useCredential, Credential(user: "u", password: "p", persistence: .forSession))
        try await fixture.settle(fixture.ask(claimed[1].id, "q2"))
        #expect(try await store.tasks.read(claimed[1].id).phase == .queued)
        #expect(try await open().isEmpty)
        // A task that used the credential and was refused asks again.
        var refused = fixture.ask(claimed[2].id, "q3")
        refused.credentialsKnown = ["c"]
        try await fixture.settle(refused)
        #expect(try await open().map(\.questionId) == ["q3"])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A task that is refused again asks once, with an incremented count`() async throws {
        _ = try await meet(3)
        try await answer("q1-0", .useCredential, Credential(user: "u", password: "wrong"))
        // A new task is the first to meet it again.
        let new = try await fixture.create(fixture.download(), in: session)
        let all = try await fixture.claim()
        try await fixture.settle(fixture.ask(new.id, "new"))
        for task in all where task.id != new.id {
            try await fixture.settle(fixture.ask(task.id, "again\(task.number)", failures: 1))
        }
        let question = try #require(try await open().first)
        #expect(question.questionId == "new" && question.taskCount == 4 && question.question.previousFailureCount == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A question passes to the next task when its first one ends, and ends with its last`() async throws {
        let tasks = try await meet(3)
        _ = try await store.tasks.command(.cancel(reason: nil), task: tasks[0], at: fixture.now)
        let question = try #require(try await open().first)
        #expect(question.task == tasks[1] && question.taskIdentifier == 2 && question.taskCount == 2)
        // G4: no event of the first task follows, and the question still has its one event.
        #expect(try await fixture.kinds(session).count { $0 == .didReceiveChallenge } == 1)
        try await expectSoundLedger(fixture)
        _ = try await store.tasks.command(.cancel(reason: nil), task: tasks[2], at: fixture.now)
        #expect(try await open().map(\.taskCount) == [1])
        _ = try await store.tasks.command(.cancel(reason: nil), task: tasks[1], at: fixture.now)
        #expect(try await store.questions.read("q1-0", app: session.app).state == .expired)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A question's deadline fails its task alone, and the other tasks ask again`() async throws {
        let tasks = try await meet(3)
        _ = try await store.tasks.command(.suspend, task: tasks[2], at: fixture.now)
        fixture.advance(.seconds(24 * 3600))
        _ = try await store.questions.expire(at: fixture.now, limit: 100)
        #expect(try await store.tasks.read(tasks[0]).result?.error?.code == .userAuthenticationRequired)
        #expect(try await stages(tasks) == [nil, .queued, .suspended])
        try await expectSoundLedger(fixture)
        _ = try await store.tasks.command(.resume, task: tasks[2], at: fixture.now)
        _ = try await ask(failures: 0)
        let question = try #require(try await open().first)
        #expect(question.questionId == "q2-0" && question.taskCount == 2)
        #expect(question.deadline == fixture.now + .seconds(24 * 3600))
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Each task's own resource timeout elapses`() async throws {
        let tasks = try await meet(2)
        fixture.advance(.seconds(12 * 3600))
        let late = try await meet(1)
        fixture.advance(.seconds(6 * 24 * 3600 + 13 * 3600))
        // The question was not swept: the tasks' own time ends first.
        _ = try await store.tasks.expire(at: fixture.now, limit: 100)
        #expect(try await store.tasks.read(tasks[0]).result?.error?.code == .timedOut)
        #expect(try await store.tasks.read(tasks[1]).result?.error?.code == .timedOut)
        let asked = try await open().map(\.task)
        #expect(asked == late)
        try await expectSoundLedger(fixture)
    }

    @Test(
        arguments: [
            Answer.Disposition.performDefaultHandling, .rejectProtectionSpace, .cancelAuthenticationChallenge,
        ]
    )
    func `Many waiting tasks are resumed in batches, whatever the answer`(_ disposition: Answer.Disposition)
        async throws
    {
        let tasks = try await meet(450)
        _ = try await store.tasks.command(.suspend, task: tasks[440], at: fixture.now)
        try await answer("q1-0", disposition)
        let held = try await stages(tasks).count { $0 == .awaitingAnswer }
        #expect(held == 249, "the first piece goes on at once")
        // The rest is due, also after a restart; until then it waits.
        #expect(try await store.tasks.nextDueTime() == Timestamp(milliseconds: 0))
        _ = try await store.tasks.command(.resume, task: tasks[440], at: fixture.now)
        #expect(try await store.tasks.read(tasks[440]).phase == .awaitingAnswer)
        try await expectSoundLedger(fixture)
        for _ in 0..<2 { _ = try await store.questions.expire(at: fixture.now, limit: 1000) }
        #expect(try await store.tasks.nextDueTime() != Timestamp(milliseconds: 0))
        let isCancelled = disposition == .cancelAuthenticationChallenge
        #expect(try await stages(tasks) == Array(repeating: isCancelled ? nil : .queued, count: 450))
        try await expectSoundLedger(fixture)
    }
}
