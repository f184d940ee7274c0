import Base
import Core
import TestSupport
import Testing

@testable import Store

@Suite struct MasterKeyTests {
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
        let secret = HTTPFields([HTTPField(name: "Authorization", value: "Bearer canary")])
        let lost = try await first.create(first.download { $0.request.headers = secret }, in: plain)
        let lostLater = try await first.create(
            first.download {
                $0.request.headers = secret
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
}
