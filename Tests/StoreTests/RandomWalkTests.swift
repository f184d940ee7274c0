import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Store

/// After many steps in any order every counter, clock and event still matches the rows.
struct RandomWalkTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `Counters equal the rows after any walk`(seed: UInt64) async throws {
        var walk = try await Walk(seed: seed)
        for step in 0..<400 {
            let what = try await walk.step()
            let faults = try await Ledger.faults(of: walk.fixture.store)
            guard faults.isEmpty else {
                Issue.record("after step \(step), \(what): \(faults)")
                return
            }
        }
    }
}

/// A store with random calls of its operations.
struct Walk {
    let fixture: StoreFixture
    private var random: SeededGenerator
    private let app: AppID
    private var sessions: [SessionRecord]
    private var claimed: [TaskID] = []
    private var questions: [String] = []
    private var names = 0

    init(seed: UInt64) async throws {
        fixture = try await StoreFixture()
        random = SeededGenerator(state: seed)
        app = try await fixture.makeApp()
        sessions = []
        for name in ["a", "b"] {
            sessions.append(
                try await fixture.makeSession(name, app: app) { $0.timeoutIntervalForResource = 2000 })
        }
        _ = try await fixture.store.files.addBody(
            "body_0", app: app, storage: .bytes([1]), length: 1, digest: "", mediaType: nil, isComplete: true,
            limit: .max, at: fixture.now)
    }

    private mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func session() -> SessionRecord { sessions[number(0..<sessions.count)] }

    private mutating func name(_ prefix: String) -> String {
        names += 1
        return "\(prefix)\(names)"
    }

    private mutating func task() async throws -> TaskID? {
        let session = session()
        let tasks = try await fixture.store.tasks.list(in: session.id, TaskFilter(), after: 0, limit: 1000)
        return tasks.randomElement(using: &random)?.id
    }

    /// Performs one step. A step that the state does not permit is refused and changes nothing.
    mutating func step() async throws -> String {
        let kind = number(0..<18)
        do {
            try await perform(kind)
            return "\(kind)"
        } catch let error as DomainError {
            return "\(kind), refused: \(error)"
        }
    }

    private mutating func perform(_ kind: Int) async throws {
        let store = fixture.store
        switch kind {
        case 0, 1, 2: try await create()
        case 3, 4: claimed += try await fixture.claim(number(1..<4)).map(\.id)
        case 5, 6, 7, 8: try await settle()
        case 9:
            if let task = try await task() { _ = try await store.tasks.command(.suspend, task: task, at: fixture.now) }
        case 10:
            if let task = try await task() { _ = try await store.tasks.command(.resume, task: task, at: fixture.now) }
        case 11:
            guard let task = try await task() else { return }
            _ = try await store.tasks.command(.cancel(reason: nil), task: task, at: fixture.now)
        case 12: try await change()
        case 13: try await answer()
        case 14:
            fixture.advance(.seconds(number(1..<900)))
            _ = try await store.tasks.expire(at: fixture.now, limit: 100)
            _ = try await store.questions.expire(at: fixture.now, limit: 100)
            for chore in Chore.allCases { _ = try await store.upkeep.clean(chore, at: fixture.now, rows: 20) }
        case 15: try await acknowledge()
        case 16: if let task = try await task() { _ = try await store.files.claimContent(of: task, at: fixture.now) }
        default: try await renew()
        }
    }

    private mutating func create() async throws {
        let now = fixture.now
        let tasks = (0..<number(1..<5)).map { _ -> NewTask in
            let (host, delay, kind, priority) = (number(0..<3), number(0..<4), number(0..<2), Double(number(0..<3)))
            let client = number(0..<3) == 0 ? "c\(number(0..<6))" : nil
            let body: NewTask.Body? =
                switch number(0..<4) {
                case 0: .stored("body_0")
                case 1: .bytes([1, 2], mediaType: nil, publicId: name("body_"))
                default: nil
                }
            return fixture.download(host: "h\(host)", suspended: number(0..<5) == 0, body: body) {
                $0.kind = kind == 0 ? .download : .upload
                $0.priority = priority / 2
                $0.clientTaskId = client
                if delay == 0 { $0.earliestBeginDate = now + .seconds(600) }
            }
        }
        try await fixture.create(tasks, in: session(), limit: 60)
    }

    private mutating func settle() async throws {
        var settlements: [Settlement] = []
        for _ in 0..<number(1..<4) where !claimed.isEmpty {
            let task = claimed.remove(at: number(0..<claimed.count))
            var progress = TaskProgress()
            progress.kept = .file(ResumePoint { $0.offset = Int64(number(0..<1000)) }, source: 0)
            switch number(0..<6) {
            case 0, 1:
                settlements.append(fixture.completion(task, Outcome.allCases[number(0..<5)]))
            case 2:
                let at = fixture.now + .seconds(number(1..<600))
                settlements.append(
                    Settlement(task: task, .retry(at: at, waitsForConnectivity: number(0..<2) == 0, progress)))
            case 3: settlements.append(Settlement(task: task, .interrupted(progress)))
            case 4:
                settlements.append(Settlement(task: task, .advanced(progress)))
                claimed.append(task)
            default:
                let question = name("q")
                questions.append(question)
                settlements.append(fixture.ask(task, question, number(0..<2) == 0 ? .challenge : .delayedRequest))
            }
        }
        _ = try await fixture.store.tasks.settle(settlements, at: fixture.now)
    }

    private mutating func change() async throws {
        guard let task = try await task() else { return }
        let (priority, host, delay) = (Double(number(0..<3)) / 2, number(0..<3), number(0..<4))
        let now = fixture.now
        let changes = TaskChanges.with {
            $0.priority = priority
            if delay < 2 { $0.earliestBeginDate = delay == 0 ? .some(nil) : .some(now + .seconds(300)) }
            if delay == 2 {
                $0.request = TransferRequest(url: "https://h\(host)/new", method: "GET")
                $0.origin = "https://h\(host):443"
            }
        }
        _ = try await fixture.store.tasks.change(task, changes, ifRevision: nil, at: now)
    }

    private mutating func answer() async throws {
        guard !questions.isEmpty else { return }
        let question = questions[number(0..<questions.count)]
        let dispositions: [Answer.Disposition] = [.performDefaultHandling, .continueLoading, .cancel, .useCredential]
        _ = try await fixture.store.questions.answer(
            question, app: app, with: Answer(disposition: dispositions[number(0..<4)]), origin: nil, at: fixture.now)
    }

    private mutating func acknowledge() async throws {
        let session = try await fixture.refresh(session())
        if let launch = session.openLaunch, number(0..<2) == 0 {
            _ = try await fixture.store.launches.answer(
                launch, app: app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        } else if session.lastEventSeq > 0 {
            let seq = Int64(number(0..<Int(session.lastEventSeq) + 1))
            _ = try await fixture.store.sessions.acknowledge(through: seq, epoch: nil, in: session.id, at: fixture.now)
        }
    }

    /// Rarely, ends a session or deletes it, and begins a new one.
    private mutating func renew() async throws {
        guard number(0..<4) == 0 else { return }
        let index = number(0..<sessions.count)
        let session = sessions[index]
        if number(0..<2) == 0 {
            _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        } else {
            _ = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
            _ = try await fixture.store.tasks.command(
                .cancel(reason: nil), TaskFilter(), in: session.id, after: 0, limit: 1000, at: fixture.now)
        }
        sessions[index] =
            try await fixture.store.sessions.open(
                session.identifier, app: app, configuration: nil, description: nil, onlyCreates: false,
                at: fixture.now
            ).session
    }
}
