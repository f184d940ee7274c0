import Core
import TestSupport
import Testing

@testable import Store

struct QuestionTests {
    private func asked(
        _ fixture: StoreFixture, _ session: SessionRecord, _ kind: Question.Kind = .challenge
    ) async throws -> TaskID {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.ask(task.id, "q\(task.number)", kind))
        return task.id
    }

    @Test
    func `A question has an event and makes its task wait, and the answer resumes the task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        #expect(try await fixture.kinds(session) == [.didReceiveChallenge])
        #expect(try await fixture.store.tasks.read(task).phase == .awaitingAnswer)
        let open = try await fixture.store.questions.read("q1", app: session.app)
        #expect(open.state == .open)
        #expect(open.question.protectionSpace?.realm == "r")
        let answer = Answer(disposition: .useCredential, credential: Credential(user: "u", password: "canary-password"))
        let (answered, aftermath) = try await fixture.store.questions.answer(
            "q1", app: session.app, with: answer, origin: nil, at: fixture.now)
        #expect(answered.state.phase == .answered)
        #expect(answered.state.disposition == .useCredential)
        #expect(aftermath.hasQueuedTasks)
        #expect(try await fixture.store.questions.answerGiven(to: "q1")?.answer == answer)
        let claimed = try #require(try await fixture.claim().first)
        let step = AuthenticationStep(
            questionId: "q1", disposition: .useCredential, space: open.question.protectionSpace)
        #expect(claimed.progress.authentication == [step])
        await #expect(throws: DomainError.questionAnswered) {
            try await fixture.store.questions.answer("q1", app: session.app, with: answer, origin: nil, at: fixture.now)
        }
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Questions are listed from either end, and by time`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        var times: [Timestamp] = []
        for _ in 1...3 {
            fixture.advance(.seconds(1))
            times.append(fixture.now)
            _ = try await asked(fixture, session, .delayedRequest)
        }
        let filters: [(SessionID?, Set<QuestionState.Phase>)] = [
            (nil, []), (nil, [.open]), (nil, [.open, .expired]), (session.id, []), (session.id, [.expired, .open]),
        ]
        for (place, states) in filters {
            func names(_ span: ListSpan, after cursor: Int64 = 0, limit: Int = 10) async throws -> [String] {
                try await fixture.store.questions.list(
                    of: session.app, session: place, states: states, span, after: cursor, limit: limit
                ).map(\.question.questionId)
            }
            #expect(try await names(ListSpan()) == ["q1", "q2", "q3"])
            #expect(try await names(ListSpan(.descending)) == ["q3", "q2", "q1"])
            #expect(try await names(ListSpan(.descending), limit: 2) == ["q3", "q2"])
            #expect(try await names(ListSpan(.descending, createdBefore: times[2])) == ["q2", "q1"])
            #expect(try await names(ListSpan(createdAfter: times[0])) == ["q2", "q3"])
            #expect(try await names(ListSpan(createdAfter: times[0], createdBefore: times[1])) == [])
        }
    }

    @Test
    func `A question belongs to its app`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        _ = try await asked(fixture, session)
        let other = try await fixture.makeApp()
        await #expect(throws: DomainError.notFound) { try await fixture.store.questions.read("q1", app: other) }
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.questions.answer(
                "q1", app: other, with: Answer(disposition: .cancel), origin: nil, at: fixture.now)
        }
        #expect(
            try await fixture.store.questions.list(of: other, session: nil, states: [], after: 0, limit: 10).isEmpty)
        let own = try await fixture.store.questions.list(
            of: session.app, session: session.id, states: [.open], after: 0, limit: 10)
        #expect(own.map(\.question.questionId) == ["q1"])
    }

    @Test
    func `An answer that cancels the challenge cancels the task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        _ = try await fixture.store.questions.answer(
            "q1", app: session.app, with: Answer(disposition: .cancelAuthenticationChallenge), origin: nil,
            at: fixture.now)
        let cancelled = try await fixture.store.tasks.read(task)
        #expect(cancelled.outcome == .cancelled)
        #expect(cancelled.result?.error?.code == .cancelled)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An unanswered question fails its task alone`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        let other = try await fixture.create(fixture.download(), in: session)
        #expect(try await fixture.store.tasks.nextDueTime() == fixture.now + .seconds(24 * 3600))
        fixture.advance(.seconds(24 * 3600))
        _ = try await fixture.store.questions.expire(at: fixture.now, limit: 10)
        #expect(try await fixture.store.tasks.read(task).result?.error?.code == .userAuthenticationRequired)
        #expect(try await fixture.store.questions.read("q1", app: session.app).state == .expired)
        #expect(try await fixture.store.tasks.read(other.id).outcome == nil)
        await #expect(throws: DomainError.questionAnswered) {
            try await fixture.store.questions.answer(
                "q1", app: session.app, with: Answer(disposition: .performDefaultHandling), origin: nil,
                at: fixture.now)
        }
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An answer after the deadline is refused, before and after the sweep`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        fixture.advance(.seconds(24 * 3600))
        await #expect(throws: DomainError.questionAnswered) {
            try await fixture.store.questions.answer(
                "q1", app: session.app, with: Answer(disposition: .performDefaultHandling), origin: nil,
                at: fixture.now)
        }
        #expect(try await fixture.store.tasks.read(task).phase == .awaitingAnswer)
        _ = try await fixture.store.questions.expire(at: fixture.now, limit: 10)
        #expect(try await fixture.store.tasks.read(task).result?.error?.code == .userAuthenticationRequired)
    }

    @Test
    func `A task that was suspended with an open question waits for its answer again`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        _ = try await fixture.store.tasks.command(.suspend, task: task, at: fixture.now)
        #expect(try await fixture.store.tasks.command(.resume, task: task, at: fixture.now).0.phase == .awaitingAnswer)
        _ = try await fixture.store.tasks.command(.suspend, task: task, at: fixture.now)
        _ = try await fixture.store.questions.answer(
            "q1", app: session.app, with: Answer(disposition: .performDefaultHandling), origin: nil, at: fixture.now)
        #expect(try await fixture.store.tasks.read(task).phase == .suspended)
        #expect(try await fixture.store.tasks.command(.resume, task: task, at: fixture.now).0.phase == .queued)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A delayed request proceeds unchanged, or with a new request in its new lane`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let first = try await asked(fixture, session, .delayedRequest)
        let second = try await asked(fixture, session, .delayedRequest)
        #expect(try await fixture.kinds(session) == [.willBeginDelayedRequest, .willBeginDelayedRequest])
        _ = try await fixture.store.questions.answer(
            "q1", app: session.app, with: Answer(disposition: .continueLoading), origin: nil, at: fixture.now)
        let request = TransferRequest(
            url: "https://other.example/x", method: "GET",
            headers: HTTPFields([HTTPField(name: "Authorization", value: "canary-fresh")]))
        _ = try await fixture.store.questions.answer(
            "q2", app: session.app, with: Answer(disposition: .useNewRequest, request: request),
            origin: "https://other.example:443", at: fixture.now)
        let claimed = try await fixture.claim().sorted { $0.number < $1.number }
        #expect(claimed.map(\.id) == [first, second])
        #expect(claimed.map(\.progress.isConfirmed) == [true, true])
        #expect(claimed[1].specification.request == request)
        #expect(claimed[0].lane != claimed[1].lane)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Completing a task closes its question`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await asked(fixture, session)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task, at: fixture.now)
        #expect(try await fixture.store.questions.read("q1", app: session.app).state == .expired)
        #expect(try await fixture.store.tasks.nextDueTime() == nil)
    }
}

struct AttachmentVerbTests {
    @Test
    func `One lease is valid at a time, and a fenced client neither acknowledges nor renews`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        let store = fixture.store
        func take(_ takeover: Bool) async throws -> Int64? {
            try await store.sessions.attach(
                .take(ttl: .seconds(30), launchId: nil, takeover: takeover), to: session.id, at: fixture.now
            ).0.attachment?.epoch
        }
        #expect(try await take(false) == 1)
        await #expect(throws: DomainError.sessionInUse) { try await take(false) }
        _ = try await store.sessions.attach(.renew(epoch: 1, ttl: .seconds(60)), to: session.id, at: fixture.now)
        await #expect(throws: DomainError.attachmentFenced) {
            try await store.sessions.acknowledge(through: 1, epoch: nil, in: session.id, at: fixture.now)
        }
        #expect(try await take(true) == 2)
        await #expect(throws: DomainError.attachmentFenced) {
            try await store.sessions.attach(.renew(epoch: 1, ttl: .seconds(30)), to: session.id, at: fixture.now)
        }
        for epoch in [nil, 1] as [Int64?] {
            await #expect(throws: DomainError.attachmentFenced) {
                try await store.sessions.acknowledge(through: 1, epoch: epoch, in: session.id, at: fixture.now)
            }
        }
        _ = try await store.sessions.acknowledge(through: 1, epoch: 2, in: session.id, at: fixture.now)
        fixture.advance(.seconds(100))
        // After a takeover every client needs the epoch.
        await #expect(throws: DomainError.attachmentFenced) {
            try await store.sessions.acknowledge(through: 2, epoch: nil, in: session.id, at: fixture.now)
        }
        _ = try await store.sessions.attach(.release(epoch: 2), to: session.id, at: fixture.now)
        #expect(try await take(false) == 3)
    }
}
