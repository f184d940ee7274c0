import Core
import SQL
import TestSupport
import Testing

@testable import Store

/// Random walks through the model and the store: both agree after every step.
struct LaunchModelWalkTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `The store agrees with the model`(seed: UInt64) async throws {
        var random = SeededGenerator(state: seed)
        for _ in 0..<6 {
            var walk = try await ModelWalk()
            for _ in 0..<80 {
                guard let step = walk.choose(&random) else { break }
                let faults: [String]
                do {
                    try await walk.take(step)
                    faults = try await walk.faults()
                } catch {
                    faults = ["\(error)"]
                }
                guard faults.isEmpty else {
                    Issue.record("\(faults) after \(walk.steps)")
                    return
                }
            }
        }
    }
}

private struct ModelWalk {
    private(set) var steps: [LaunchModel.Step] = []
    private var model: LaunchModel
    private var fixture: StoreFixture
    private let app: AppID
    private var sessions: [SessionRecord] = []
    private var tasks: [[TaskID]] = []
    private var questions: [String: String] = [:]
    /// Attempts in flight, by session.
    private var attempts: [Int: ClaimedLaunch] = [:]
    /// The times of checks from the aftermath.
    private var checks: [Int: Timestamp] = [:]
    private var failuresInARow = 0

    init() async throws {
        var scope = LaunchModel.Scope()
        scope.tasks = 4
        (scope.crashes, scope.failures, scope.parts, scope.arrivals) = (4, 100, 100, 100)
        (scope.questions, scope.redeliveries) = (4, 10)
        (scope.schedule, scope.attemptLease, scope.deadline) = (.standard, .seconds(60), .seconds(60))
        (scope.ttl, scope.eventsOfCompletion) = (.seconds(30), 2)
        model = LaunchModel(scope)
        fixture = try await StoreFixture()
        app = try await fixture.makeApp()
        for name in ["a", "b"] {
            let session = try await fixture.makeSession(name, app: app)
            sessions.append(session)
            tasks.append(
                try await fixture.create((0..<4).map { fixture.download("/\($0)") }, in: session).map(\.task.id))
        }
    }

    /// Five failures in a row would open the webhook's circuit breaker, which the model does not have.
    func choose(_ random: inout SeededGenerator) -> LaunchModel.Step? {
        let possible = model.steps().filter { step in
            if case .failed = step { return failuresInARow < 4 }
            // Rarely, or no other step would occur; and not where a start would spread launches.
            if case .crash = step { return !isLongOverdue && Int.random(in: 0..<5, using: &random) == 0 }
            return true
        }
        return possible.randomElement(using: &random)
    }

    private var isLongOverdue: Bool {
        model.sessions.contains { session in
            guard case .pending(_, let due)? = session.launch?.state else { return false }
            return due <= model.now - Store.Launches.longStop
        }
    }

    // MARK: Steps

    mutating func take(_ step: LaunchModel.Step) async throws {
        steps.append(step)
        switch step {
        // The sender claims all due launches, and ends all expired ones.
        case .claim:
            for s in model.sessions.indices {
                if case .pending(_, let due)? = model.sessions[s].launch?.state, due <= model.now {
                    try model.take(.claim(s))
                }
            }
            try await claim()
        case .expire:
            for s in model.sessions.indices {
                switch model.sessions[s].launch?.state {
                case .delivering(_, let due)? where due <= model.now, .launched(_, let due)? where due <= model.now:
                    try model.take(.expire(s))
                default: break
                }
            }
            note(try await fixture.store.launches.expire(at: fixture.now, limit: 100) { 0 })
        default:
            try await follow(step)
            try model.take(step)
        }
        try await learnNames()
    }

    /// Performs the same step in the store, before the model.
    private mutating func follow(_ step: LaunchModel.Step) async throws {
        let store = fixture.store
        let now = fixture.now
        switch step {
        case .finish(let s, let task):
            _ = try await fixture.claim()
            note(try await fixture.settle(fixture.completion(tasks[s][task], .succeeded, bytes: nil)))
        case .ask(let s, let task):
            _ = try await fixture.claim()
            questions["\(s).\(task)"] = "q\(steps.count)"
            // A realm of its own, so that each question is asked.
            var space = StoreFixture.space
            space.realm = "\(steps.count)"
            note(try await fixture.settle(fixture.ask(tasks[s][task], "q\(steps.count)", about: space)))
        case .answer(let s, let task):
            note(
                try await store.questions.answer(
                    questions["\(s).\(task)"] ?? "", app: app, with: Answer(disposition: .performDefaultHandling),
                    origin: nil, at: now
                ).1)
        case .answered(let s): try await report(s, .succeeded(nil))
        case .answeredInline(let s, let through): try await report(s, .succeeded(.completed(through: through)))
        case .failed(let s): try await report(s, .failed(retryAfter: nil, wasAnswered: false))
        case .complete(let s, let late, let through, let epoch):
            let launch = late ? model.sessions[s].late : model.sessions[s].launch
            note(
                try await store.launches.answer(
                    launch?.name ?? "", app: app, with: .completed(through: through), epoch: epoch, at: now))
        case .redeliver(let s):
            do {
                note(try await store.launches.redeliver(model.sessions[s].late?.name ?? "", app: app, at: now).1)
            } catch DomainError.launchNotOpen {}
        case .check(let s):
            checks[s] = nil
            note(try await store.launches.askRules(of: [sessions[s].id], at: now))
        case .tick: fixture.advance(try model.next() - now)
        case .crash: try await crash()
        default: try await meet(step)
        }
    }

    private mutating func meet(_ step: LaunchModel.Step) async throws {
        switch step {
        case .open(_, let s):
            guard !model.clients.contains(.stream(s)) else { return }
            fixture.setAttached(true, sessions[s].id)
            note(try await fixture.store.sessions.clientAttached(to: sessions[s].id, .wait, at: fixture.now))
        case .close(let client):
            guard case .stream(let s) = model.clients[client] else { return }
            guard model.clients.filter({ $0 == .stream(s) }).count == 1 else { return }
            fixture.setAttached(false, sessions[s].id)
            look(s, at: fixture.now + LaunchRule.grace)
        case .take(_, let s, let forLaunch, let takeover):
            let name = forLaunch ? model.sessions[s].launch?.name : nil
            try await attach(s, .take(ttl: model.scope.ttl, launchId: name, takeover: takeover))
        case .renew(let client):
            guard case .lease(let s, let epoch) = model.clients[client] else { return }
            try await attach(s, .renew(epoch: epoch, ttl: model.scope.ttl))
        case .release(let client):
            guard case .lease(let s, let epoch) = model.clients[client] else { return }
            try await attach(s, .release(epoch: epoch))
        case .acknowledge(let client, let through):
            switch model.clients[client] {
            case .stream(let s): try await acknowledge(s, through, nil)
            case .lease(let s, let epoch):
                // The fenced client is refused, and nothing changes.
                await #expect(throws: DomainError.attachmentFenced) {
                    try await fixture.store.sessions.acknowledge(
                        through: through, epoch: epoch - 1, in: sessions[s].id, at: fixture.now)
                }
                try await acknowledge(s, through, epoch)
            case .away: break
            }
        default: Issue.record("the store knows no \(step)")
        }
    }

    private mutating func acknowledge(_ s: Int, _ through: Int64, _ epoch: Int64?) async throws {
        note(
            try await fixture.store.sessions.acknowledge(
                through: through, epoch: epoch, in: sessions[s].id, at: fixture.now
            ).1)
    }

    private mutating func attach(_ s: Int, _ event: Core.Attachment.Event) async throws {
        let (session, aftermath) = try await fixture.store.sessions.attach(event, to: sessions[s].id, at: fixture.now)
        note(aftermath)
        look(s, at: (session.attachment?.lease?.expiresAt ?? fixture.now) + LaunchRule.grace)
    }

    private mutating func claim() async throws {
        let claimed = try await fixture.store.launches.claimDue(
            LaunchSlots(), limit: 64, leaseUntil: fixture.now + model.scope.attemptLease, at: fixture.now)
        note(claimed.aftermath)
        for launch in claimed.claimed {
            guard let s = sessions.firstIndex(where: { $0.id == launch.session }) else { continue }
            attempts[s] = launch
            _ = try await fixture.store.launches.freezeBody([1], of: launch.id)
        }
    }

    private mutating func report(_ s: Int, _ verdict: LaunchReport.Verdict) async throws {
        let launch = try #require(attempts[s])
        if case .failed = verdict { failuresInARow += 1 } else { failuresInARow = 0 }
        let attempt = LaunchAttempt(
            number: launch.attempt, startedAt: fixture.now, duration: .zero, statusCode: nil, error: nil, excerpt: nil)
        note(
            try await fixture.store.launches.record(
                LaunchReport(launch: launch, attempt: attempt, verdict: verdict), jitter: 0, at: fixture.now))
    }

    private mutating func crash() async throws {
        let now = fixture.now
        fixture.store.close()
        fixture = try await StoreFixture(folder: fixture.folder)
        fixture.advance(now - fixture.now)
        checks = [:]
        attempts = [:]
        for session in sessions { fixture.setAttached(false, session.id) }
        _ = try await fixture.store.tasks.recoverInterrupted(at: now)
        note(try await fixture.store.launches.recover(at: now))
        for id in try await fixture.store.sessions.unacknowledged(after: SessionID(0), limit: 100) {
            if let s = sessions.firstIndex(where: { $0.id == id }) { look(s, at: now + LaunchRule.grace) }
        }
    }

    private mutating func note(_ aftermath: Aftermath) {
        for (id, time) in aftermath.launchChecks {
            if let s = sessions.firstIndex(where: { $0.id == id }) { look(s, at: time) }
        }
    }

    private mutating func look(_ s: Int, at time: Timestamp) { checks[s] = min(checks[s] ?? time, time) }

    // MARK: Comparison

    /// Assigns the store's identifiers to the model's launches.
    private mutating func learnNames() async throws {
        for s in sessions.indices {
            if model.sessions[s].launch?.name.hasPrefix("lnch_") == false,
                let name = try await fixture.openLaunch(sessions[s])
            {
                model.sessions[s].launch?.name = name
            }
        }
    }

    /// The differences of the two.
    func faults() async throws -> [String] {
        var faults: [String] = []
        if model.now != fixture.now { faults.append("\(model.now), \(fixture.now)") }
        for s in sessions.indices {
            let expected = model.sessions[s]
            let id = sessions[s].id
            let stored = try await fixture.store.database.read { db in
                try SessionEntry.ask([id], db).get()[0].first.map { ($0.book, $0.attachment, $0.counts.running) }
            }
            let entry: (book: LaunchBook, attachment: [UInt8]?, running: Int64) = try #require(stored)
            var book = entry.book
            if book.openLaunch != nil { book.openLaunch = expected.book.openLaunch }
            if book != expected.book { faults.append("\(expected.book), stored \(entry.book)") }
            let attachment = try entry.attachment.map { try fixture.store.documents.decode(Core.Attachment.self, $0) }
            if attachment ?? Core.Attachment() != expected.attachment {
                faults.append("\(expected.attachment), stored \(String(describing: attachment))")
            }
            if entry.running != expected.unfinished { faults.append("\(expected.unfinished), stored \(entry.running)") }
            if checks[s] != expected.check {
                faults.append("check \(String(describing: expected.check)), \(String(describing: checks[s]))")
            }
            faults += try await self.faults(s, expected.launch) + self.faults(s, expected.late)
        }
        return faults + (try await Ledger.faults(of: fixture.store))
    }

    private func faults(_ s: Int, _ expected: LaunchModel.Launch?) async throws -> [String] {
        guard let expected else { return [] }
        guard expected.name.hasPrefix("lnch_") else { return ["\(expected) is not stored"] }
        let stored = try await fixture.store.launches.read(expected.name, app: app)
        return stored.state == expected.state && stored.lastSeq == expected.lastSeq
            ? [] : ["\(expected), stored \(stored.state) of \(stored.lastSeq)"]
    }
}
