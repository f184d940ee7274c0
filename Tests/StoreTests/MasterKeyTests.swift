import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Store

@Suite struct MasterKeyTests {
    private static let secret = HTTPFields([HTTPField(name: "Authorization", value: "Bearer canary")])

    private let folder = TemporaryFolder()

    private func open(key: UInt8) async throws -> StoreFixture { try await StoreFixture(folder: folder, key: key) }

    @Test func `A store distinguishes its key from any other`() async throws {
        let first = try await open(key: 1)
        #expect(try await first.store.upkeep.hasRightKey())
        try await first.store.upkeep.keepKeyCheck()
        try await first.store.upkeep.keepKeyCheck()
        first.store.close()
        for (key, isRight) in [(1, true), (2, false), (1, true)] as [(UInt8, Bool)] {
            let next = try await open(key: key)
            #expect(try await next.store.upkeep.hasRightKey() == isRight)
            next.store.close()
        }
    }

    @Test func `A store without a key check is recognized by its apps' secrets`() async throws {
        let first = try await open(key: 1)
        _ = try await first.makeApp()
        first.store.close()
        for (key, isRight) in [(2, false), (1, true)] as [(UInt8, Bool)] {
            let next = try await open(key: key)
            #expect(try await next.store.upkeep.hasRightKey() == isRight)
            next.store.close()
        }
    }

    @Test func `Without the key, rows without secrets stay, and unreadable ones are removed`() async throws {
        let first = try await open(key: 1)
        try await first.store.upkeep.keepKeyCheck()
        let app = try await first.makeApp("app")
        let plain = try await first.makeSession("plain", app: app)
        let sealed = try await first.makeSession("sealed", app: app) {
            $0.proxy = .init(kind: .http, host: "proxy.example", port: 8080, user: "u", password: "p")
        }
        let done = try await first.finished(plain)
        let lost = try await first.create(first.download { $0.request.headers = Self.secret }, in: plain)
        let lostLater = try await first.create(
            first.download {
                $0.request.headers = Self.secret
                $0.clientTaskId = "c"
            }, in: plain)
        _ = try await first.claim()
        try await first.settle(first.completion(lostLater.id), first.ask(lost.id, "q"))
        _ = try await first.store.questions.answer(
            "q", app: app,
            with: Answer(disposition: .useCredential, credential: Credential(user: "u", password: "p")), origin: nil,
            at: first.now)
        let waiting = try await first.create(first.download(suspended: true), in: plain)
        let inSealed = try await first.create(first.download(suspended: true), in: sealed)
        _ = try await first.store.tasks.settle([], cookies: [plain.id: CookieChange(after: ["canary"])], at: first.now)
        first.store.close()

        let next = try await open(key: 2)
        #expect(try await !next.store.upkeep.hasRightKey())
        try await next.store.upkeep.loseSecrets(at: next.now) { [9] }
        #expect(try await next.store.upkeep.hasRightKey())
        #expect(try await next.store.apps.webhookSecrets(of: app, at: next.now) == [[9]])
        #expect(try await next.store.sessions.cookies(of: plain.id) == [])
        let isAnswered = try await next.store.questions.answerGiven(to: "q") != nil
        #expect(!isAnswered)

        let tasks = try await next.store.tasks.list(in: plain.id, TaskFilter(), after: 0, limit: 10)
        #expect(tasks.map(\.outcome) == [.succeeded, .failed, .succeeded, nil])
        #expect(tasks[0].specification.request.url == done.specification.request.url)
        #expect(tasks[1].result?.error?.underlying?.code == "master-key-lost")
        #expect(tasks[2].specification.clientTaskId == "c" && tasks[2].specification.request.headers == HTTPFields())
        #expect(tasks[3].id == waiting.id && tasks[3].phase == .suspended)

        let ended = try await next.store.sessions.read(sealed.id)
        #expect(ended.state.phase == .invalid && ended.counts.failed == 1)
        #expect(try await next.kinds(ended).last == .didBecomeInvalid)
        #expect(try await next.store.tasks.read(inSealed.id).outcome == .failed)
        #expect(try await next.store.sessions.read(plain.id).state == .active)
        _ = try await next.finished(try await next.store.sessions.read(plain.id))
        next.store.close()
    }

    @Test func `An interrupted repair starts again, and no key passes the check until then`() async throws {
        let first = try await open(key: 1)
        try await first.store.upkeep.keepKeyCheck()
        let session = try await first.makeSession()
        let lost = try await first.create(first.download { $0.request.headers = Self.secret }, in: session)
        first.store.close()

        let interrupted = try await open(key: 2)
        try await interrupted.store.database.write { try $0.execute("ALTER TABLE task RENAME TO away") }
        await #expect(throws: (any Error).self) {
            try await interrupted.store.upkeep.loseSecrets(at: interrupted.now) { [9] }
        }
        try await interrupted.store.database.write { try $0.execute("ALTER TABLE away RENAME TO task") }
        interrupted.store.close()
        for key in [1, 2] as [UInt8] {
            let next = try await open(key: key)
            #expect(try await !next.store.upkeep.hasRightKey(), "\(key)")
            next.store.close()
        }

        let next = try await open(key: 2)
        try await next.store.upkeep.loseSecrets(at: next.now) { [9] }
        #expect(try await next.store.upkeep.hasRightKey())
        #expect(try await next.store.tasks.read(lost.id).result?.error?.underlying?.code == "master-key-lost")
        #expect(try await next.store.apps.webhookSecrets(of: session.app, at: next.now) == [[9]])
        next.store.close()
    }

    @Test func `A task whose request cannot be opened can be cancelled`() async throws {
        let first = try await open(key: 1)
        let session = try await first.makeSession()
        try await first.create([first.download { $0.request.headers = Self.secret }], in: session)
        first.store.close()

        let next = try await open(key: 2)
        let (step, aftermath) = try await next.store.tasks.command(
            .cancel(reason: nil), TaskFilter(), in: session.id, after: 0, limit: 10, at: next.now)
        #expect(step.changed == 1)
        let ended = try #require(aftermath.completedTasks.first)
        #expect(ended.outcome == .cancelled)
        #expect(ended.error != nil && ended.error?.failingURL == nil)
        #expect(try await next.openLaunch(session) != nil)
        next.store.close()
    }

    @Test func `The event of a lost question stays readable`() async throws {
        let first = try await open(key: 1)
        try await first.store.upkeep.keepKeyCheck()
        let session = try await first.makeSession()
        let task = try await first.create(first.download { $0.request.headers = Self.secret }, in: session)
        _ = try await first.claim()
        try await first.settle(
            Settlement(
                task: task.id,
                .asked(
                    Question(kind: .delayedRequest, request: task.specification.request), questionId: "q",
                    deadline: first.now + .seconds(3600), TaskProgress())))
        first.store.close()

        let next = try await open(key: 2)
        try await next.store.upkeep.loseSecrets(at: next.now) { [9] }
        #expect(
            try await next.kinds(session) == [.willBeginDelayedRequest, .didFinishCollectingMetrics, .didComplete])
        let event = try #require(try await next.store.sessions.events(of: session.id, after: 0, limit: 1).events.first)
        if case .question(let question) = event.payload {
            #expect(question.questionId == "q" && question.state == .expired && question.task == task.id)
            #expect(question.question.request?.url == "https://lost.invalid/")
        } else {
            Issue.record("\(event.payload)")
        }
        next.store.close()
    }
}
