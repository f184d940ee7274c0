@testable import Core

/// Sessions, tasks, clients, launches and one clock, with every possible step.
///
/// The decisions are those of the real machines: ``LaunchBook``, ``LaunchRule``, ``LaunchState``, ``Attachment``,
/// ``Presence`` and ``TaskLife``. The model has the store's part around them, without its rows; `LaunchModelWalkTests`
/// compares both step by step.
struct LaunchModel: Sendable {
    /// The limits of a walk.
    struct Scope: Sendable {
        var sessions = 2
        var tasks = 2
        var clients = 2
        var crashes = 1
        /// The number of attempts that fail.
        var failures = 1
        /// The number of partial completions and acknowledgements.
        var parts = 1
        /// The number of arrivals of clients.
        var arrivals = 2
        var questions = 1
        var redeliveries = 1
        var schedule = LaunchSchedule(delays: [.seconds(5)])
        var attemptLease = Duration.seconds(5)
        var deadline = Duration.seconds(5)
        var ttl = Duration.seconds(5)
        var eventsOfCompletion: Int64 = 1
    }

    struct Launch: Sendable {
        var id: Int64
        /// The name for clients.
        var name: String
        var state: LaunchState
        var lastSeq: Int64
        /// The time of the last attempt.
        var expiresAt: Timestamp
        /// Whether its body was stored, and is fixed from then on.
        var isTold = false
    }

    struct Session: Sendable {
        /// The tasks; `nil` for a completed one.
        var tasks: [TaskLife?]
        /// The events of open questions, by task; 0 for none.
        var questions: [Int64]
        var book = LaunchBook()
        var attachment = Attachment()
        var lastDetachedAt = LaunchModel.start - .seconds(3600)
        /// The time of the next evaluation of the rule; in memory.
        var check: Timestamp?
        var launch: Launch?
        /// The last launch that ended without completion and that a receiver has received.
        var late: Launch?
        var launches: Int64 = 0

        var unfinished: Int64 { Int64(tasks.filter { $0?.state == .running }.count) }
        var isDone: Bool { tasks.allSatisfy { $0 == nil } }
    }

    enum Place: Hashable, Sendable {
        case away
        case stream(Int)
        case lease(Int, epoch: Int64)
    }

    enum Step: Hashable, Sendable {
        case finish(Int, task: Int)
        case ask(Int, task: Int)
        case answer(Int, task: Int)
        case claim(Int)
        /// The receiver responds 2xx; a completed launch has the acknowledged event.
        case answered(Int)
        case answeredInline(Int, through: Int64?)
        case failed(Int)
        /// The lease of an attempt or the app's deadline ends.
        case expire(Int)
        case complete(Int, late: Bool, through: Int64?, epoch: Int64?)
        case redeliver(Int)
        case check(Int)
        case open(client: Int, Int)
        case close(client: Int)
        case take(client: Int, Int, forLaunch: Bool, takeover: Bool)
        case renew(client: Int)
        case release(client: Int)
        case acknowledge(client: Int, through: Int64)
        case tick
        case crash
    }

    /// A violated invariant.
    struct Violation: Error, CustomStringConvertible { var description: String }

    static let start = Timestamp(milliseconds: 1_800_000_000_000)
    private static let queued = TaskLife.running(.queued, deadline: start + .seconds(3600))

    var scope: Scope
    var now = LaunchModel.start
    var sessions: [Session]
    var clients: [Place]

    init(_ scope: Scope) {
        self.scope = scope
        sessions = Array(
            repeating: Session(
                tasks: Array(repeating: Self.queued, count: scope.tasks),
                questions: Array(repeating: 0, count: scope.tasks)
            ),
            count: scope.sessions)
        clients = Array(repeating: .away, count: scope.clients)
    }

    // MARK: Steps

    mutating func take(_ step: Step) throws {
        switch step {
        case .finish(let s, let task): try finish(s, task)
        case .ask(let s, let task): try ask(s, task)
        case .answer(let s, let task):
            // This causes no launch.
            try change(task, of: s, .answered)
            sessions[s].questions[task] = 0
        case .claim(let s):
            _ = try move(s, .claim(leaseUntil: now + scope.attemptLease))
            let last = sessions[s].book.lastSeq
            if sessions[s].launch?.isTold == false { sessions[s].launch?.lastSeq = last }
            sessions[s].launch?.isTold = true
        case .answered(let s): _ = try move(s, .succeeded(deadline: now + scope.deadline))
        case .answeredInline(let s, let through):
            if through != nil { scope.parts -= 1 }
            if let launch = sessions[s].launch, !sessions[s].attachment.admits(responseTo: launch.name, at: now) {
                _ = try move(s, .succeeded(deadline: now + scope.deadline))
            } else {
                try complete(s, through)
            }
        case .failed(let s):
            scope.failures -= 1
            try failed(s) { .failed($0) }
        case .expire(let s):
            if case .delivering = sessions[s].launch?.state {
                _ = try move(s, .leaseExpired)
            } else {
                try failed(s) { .deadlinePassed($0) }
            }
        case .complete(let s, let late, let through, let epoch):
            if through != nil { scope.parts -= 1 }
            guard sessions[s].attachment.admits(epoch: epoch, at: now) else { throw Violation(description: "fenced") }
            if late { try completeLate(s, through) } else { try complete(s, through) }
        case .redeliver(let s): try redeliver(s)
        case .check(let s):
            sessions[s].check = nil
            try settle(s)
        case .tick: now = try next()
        case .crash: try crash()
        default: try meet(step)
        }
        try holds()
    }

    private mutating func change(_ task: Int, of s: Int, _ event: TaskLife.Event) throws {
        guard var life = sessions[s].tasks[task] else { throw Violation(description: "task \(task) is over") }
        _ = try life.handle(event, at: now)
        sessions[s].tasks[task] = life
    }

    private mutating func finish(_ s: Int, _ task: Int) throws {
        if sessions[s].tasks[task]?.phase == .queued { try change(task, of: s, .claim) }
        sessions[s].tasks[task] = nil
        sessions[s].book.lastSeq += scope.eventsOfCompletion
        sessions[s].book.lastCompletionSeq = sessions[s].book.lastSeq
        try settle(s)
    }

    private mutating func ask(_ s: Int, _ task: Int) throws {
        scope.questions -= 1
        if sessions[s].tasks[task]?.phase == .queued { try change(task, of: s, .claim) }
        try change(task, of: s, .ask(QuestionID(1, publicId: "q")))
        sessions[s].book.lastSeq += 1
        sessions[s].questions[task] = sessions[s].book.lastSeq
        try settle(s)
    }

    /// Passes an event to the open launch.
    private mutating func move(_ s: Int, _ event: LaunchState.Event) throws -> [LaunchState.Effect] {
        guard var launch = sessions[s].launch else { throw Violation(description: "no launch is open") }
        let effects = try launch.state.handle(event, at: now)
        sessions[s].launch = launch
        guard !launch.state.isOpen else { return effects }
        sessions[s].launch = nil
        if case .completed = launch.state { return effects }
        if launch.isTold { sessions[s].late = launch }
        return effects
    }

    private mutating func failed(_ s: Int, _ event: (LaunchState.Failure) -> LaunchState.Event) throws {
        guard let launch = sessions[s].launch else { throw Violation(description: "no launch is open") }
        let failure = LaunchState.Failure(schedule: scope.schedule, jitter: 0, expiresAt: launch.expiresAt)
        guard try move(s, event(failure)).contains(.giveUp) else { return }
        sessions[s].book.exhausted(launch.id, tellingThrough: launch.lastSeq)
        try settle(s)
    }

    private mutating func complete(_ s: Int, _ through: Int64?) throws {
        guard let launch = sessions[s].launch else { throw Violation(description: "no launch is open") }
        guard try move(s, .complete) == [.acknowledge, .finishEvents] else {
            throw Violation(description: "an open launch does not complete")
        }
        try acknowledge(s, through: through ?? launch.lastSeq)
        sessions[s].book.lastSeq += 1
        guard sessions[s].book.lastSeq > launch.lastSeq else {
            throw Violation(description: "didFinishEvents before what its launch covered")
        }
        sessions[s].book.completed(launch.id, at: now)
        try sessions[s].attachment.handle(.launchCompleted(launchId: launch.name), at: now)
        try settle(s)
    }

    private mutating func completeLate(_ s: Int, _ through: Int64?) throws {
        guard var launch = sessions[s].late else { throw Violation(description: "no late launch") }
        let state = launch.state
        guard try launch.state.handle(.complete, at: now) == [.acknowledge], launch.state == state else {
            throw Violation(description: "a launch that ended finishes events")
        }
        try acknowledge(s, through: through ?? launch.lastSeq)
        try settle(s)
    }

    private mutating func redeliver(_ s: Int) throws {
        guard var launch = sessions[s].late, case .exhausted = launch.state else {
            throw Violation(description: "nothing to send again")
        }
        _ = try launch.state.handle(.redeliver, at: now)
        do { try sessions[s].book.reopened(launch.id) } catch { return }
        guard sessions[s].launch == nil else { throw Violation(description: "two launches are open") }
        scope.redeliveries -= 1
        sessions[s].late = nil
        sessions[s].launch = launch
        try settle(s)
    }

    /// Acknowledges in order and once: the position only advances, and never beyond the end.
    mutating func acknowledge(_ s: Int, through seq: Int64) throws {
        let before = sessions[s].book.acknowledgedSeq
        let moved = sessions[s].book.acknowledge(through: seq)
        let after = sessions[s].book.acknowledgedSeq
        guard after <= sessions[s].book.lastSeq, moved ? before < after : before == after else {
            throw Violation(description: "acknowledged \(before), then \(after) of \(sessions[s].book.lastSeq)")
        }
    }

    private mutating func crash() throws {
        scope.crashes -= 1
        for client in clients.indices { if case .stream = clients[client] { clients[client] = .away } }
        for s in sessions.indices {
            sessions[s].lastDetachedAt = now
            sessions[s].check = nil
            for task in sessions[s].tasks.indices where sessions[s].tasks[task]?.phase == .active {
                try change(task, of: s, .interrupted)
            }
            if case .delivering = sessions[s].launch?.state { _ = try move(s, .interrupted) }
            let book = sessions[s].book
            if book.lastSeq > book.acknowledgedSeq { look(s, at: now + LaunchRule.grace) }
        }
    }

    // MARK: Effects of the store after each change

    func presence(_ s: Int) -> Presence {
        Presence(isAttached: clients.contains(.stream(s)), lastDetachedAt: sessions[s].lastDetachedAt)
    }

    mutating func look(_ s: Int, at time: Timestamp) { sessions[s].check = min(sessions[s].check ?? time, time) }

    func rule(_ s: Int) -> LaunchRule {
        var presence = presence(s)
        _ = presence.join(sessions[s].attachment, at: now)
        var rule = sessions[s].book.rule(presence: presence, unfinishedTasks: sessions[s].unfinished)
        rule.unansweredChallengeSeq = sessions[s].questions.max() ?? 0
        return rule
    }

    /// Evaluates the rule, like every transaction that changed the session.
    mutating func settle(_ s: Int) throws {
        var presence = presence(s)
        if let end = presence.join(sessions[s].attachment, at: now) { look(s, at: end) }
        switch rule(s).evaluate(at: now) {
        case .launch:
            guard sessions[s].launch == nil else { throw Violation(description: "a second launch is opened") }
            guard !presence.isAttached, presence.lastDetachedAt + LaunchRule.grace <= now else {
                throw Violation(description: "launched with a client there")
            }
            sessions[s].launches += 1
            let id = sessions[s].launches
            sessions[s].launch = Launch(
                id: id, name: "\(s).\(id)", state: .pending(attempts: 0, nextAttemptAt: now),
                lastSeq: sessions[s].book.lastSeq, expiresAt: now + LaunchSchedule.lifetime)
            sessions[s].book.openLaunch = id
        case .notNow(let until?): look(s, at: until)
        case .join, .notNow(nil), .no: break
        }
    }
}
