import TestSupport
import Testing

@testable import Core

struct TaskLifeTests {
    private static let question = QuestionID(1, publicId: "q")
    private static let deadline = Timestamp.after(100)
    private static let result = TaskResult(progress: TaskProgress())

    private static let events: [TaskLife.Event] = [
        .suspend, .resume(beginsAt: nil), .resume(beginsAt: .after(5)),
        .reschedule(beginsAt: nil, timeout: .seconds(50)), .reschedule(beginsAt: .after(5), timeout: .seconds(50)),
        .due, .claim,
        .retry(at: .after(7), waitsForConnectivity: false), .retry(at: .after(7), waitsForConnectivity: true),
        .ask(question), .noRoom(needed: 3, kept: 4, notBefore: .after(8)), .emptied, .answered, .interrupted, .cleared,
        .suspected,
        .finish(.succeeded, result), .end(.cancelled, result), .follow,
    ]

    private static let suspended = TaskLife.suspended(remaining: .seconds(100), question: nil)
    private static let asked = TaskLife.suspended(remaining: .seconds(100), question: question)
    private static let delayed = running(.delayed(until: .after(20)))
    private static let queued = running(.queued)
    private static let active = running(.active)
    private static let retryWait = running(.retryWait(until: .after(7)))
    private static let waitingForConnectivity = running(.waitingForConnectivity(until: .after(7)))
    private static let waitingForDisk = running(.waitingForDisk(needed: 3, kept: 4, notBefore: .after(8)))
    private static let awaitingAnswer = running(.awaitingAnswer(question))
    private static let quarantined = running(.quarantined)
    private static let following = running(.following)
    private static let finished = TaskLife.completed(.succeeded, result, at: now)
    private static let ended = TaskLife.completed(.cancelled, result, at: now)

    private static func running(_ stage: TaskLife.Stage) -> TaskLife { .running(stage, deadline: deadline) }

    /// The result of each event at `now`, in the order of `events`; `nil` if it is refused.
    private static let table: [(TaskLife, [TaskLife?])] = [
        (
            suspended,
            [
                suspended, queued, .running(.delayed(until: .after(5)), deadline: .after(105)), suspended, suspended,
                nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, finished, ended, nil,
            ]
        ),
        (
            asked,
            [
                asked, awaitingAnswer, .running(.awaitingAnswer(question), deadline: .after(105)), asked, asked, nil,
                nil, nil, nil, nil, nil, nil, suspended, nil, nil, nil, finished, ended, nil,
            ]
        ),
        (
            delayed,
            [
                .suspended(remaining: .seconds(80), question: nil), delayed, delayed,
                .running(.queued, deadline: .after(50)), .running(.delayed(until: .after(5)), deadline: .after(55)),
                queued, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, finished, ended, nil,
            ]
        ),
        (
            queued,
            [
                suspended, queued, queued, .running(.queued, deadline: .after(50)),
                .running(.delayed(until: .after(5)), deadline: .after(55)), nil, active, nil, nil, nil, nil, nil, nil,
                nil, nil, quarantined, finished, ended, nil,
            ]
        ),
        (
            quarantined,
            [
                suspended, quarantined, quarantined, .running(.queued, deadline: .after(50)),
                .running(.delayed(until: .after(5)), deadline: .after(55)), nil, active, nil, nil, nil, nil, nil, nil,
                nil, queued, nil, finished, ended, nil,
            ]
        ),
        (
            active,
            [
                suspended, active, active, active, active, nil, nil, retryWait, waitingForConnectivity, awaitingAnswer,
                waitingForDisk, nil, nil, queued, nil, nil, finished, ended, following,
            ]
        ),
        (
            retryWait,
            [
                suspended, queued, queued, retryWait, retryWait, queued, nil, nil, nil, nil, nil, nil, nil, nil, nil,
                nil, nil, ended, nil,
            ]
        ),
        (
            waitingForConnectivity,
            [
                suspended, queued, queued, waitingForConnectivity, waitingForConnectivity, queued, nil, nil, nil, nil,
                nil, nil, nil, nil, nil, nil, nil, ended, nil,
            ]
        ),
        (
            waitingForDisk,
            [
                suspended, waitingForDisk, waitingForDisk, waitingForDisk, waitingForDisk, queued, nil, nil, nil, nil,
                nil, running(.waitingForDisk(needed: 7, kept: 0, notBefore: .after(8))), nil, nil, nil, nil, nil, ended,
                nil,
            ]
        ),
        (
            awaitingAnswer,
            [
                asked, awaitingAnswer, awaitingAnswer, awaitingAnswer, awaitingAnswer, nil, nil, nil, nil, nil, nil,
                nil, queued, nil, nil, nil, nil, ended, nil,
            ]
        ),
        (finished, Array(repeating: nil, count: 19)),
        (
            following,
            [
                suspended, following, following, following, following, queued, nil, nil, nil, nil, nil, nil, nil, nil,
                nil, nil, nil, ended, nil,
            ]
        ),
    ]

    @Test(arguments: table.indices)
    func `Every event has one resulting state, or is refused and changes nothing`(_ index: Int) throws {
        let (life, row) = Self.table[index]
        #expect(row.count == Self.events.count)
        for (event, expected) in zip(Self.events, row) {
            var next = life
            if let expected {
                _ = try next.handle(event, at: now)
                #expect(next == expected, "\(life) on \(event)")
            } else {
                #expect(throws: Refused.self, "\(life) on \(event)") { try next.handle(event, at: now) }
                #expect(next == life)
            }
        }
    }

    @Test func `The table has every phase`() {
        #expect(Set(Self.table.map(\.0.phase)) == Set(TaskLife.Phase.allCases.map(Optional.some) + [nil]))
    }

    @Test(arguments: table.indices)
    func `A suspect is quarantined wherever another task would be queued`(_ index: Int) throws {
        let (life, row) = Self.table[index]
        for (event, expected) in zip(Self.events, row) {
            guard let expected else { continue }
            var next = life
            _ = try next.handle(event, isSuspect: true, at: now)
            let isUnmoved = expected == life
            if case .running(.queued, let deadline) = expected, !isUnmoved || event.reschedules {
                #expect(next == .running(.quarantined, deadline: deadline), "\(life) on \(event)")
            } else {
                #expect(next == expected, "\(life) on \(event)")
            }
        }
    }

    @Test
    func `Only suspending or ending what is active stops a transfer`() throws {
        for (life, _) in Self.table {
            for event in Self.events {
                var next = life
                guard let effects = try? next.handle(event, at: now) else { continue }
                let isStopped = life == Self.active && [.suspend, .end(.cancelled, Self.result)].contains(event)
                #expect(effects == (isStopped ? [.stopTransfer] : []), "\(life) on \(event)")
            }
        }
    }

    @Test
    func `Clients see suspended, running or completed, and waiting phases with a date`() {
        for (life, _) in Self.table {
            #expect(
                life.state == (life.phase == .suspended ? .suspended : life.phase == nil ? .completed : .running))
            let phases: [TaskLife.Phase] = [.delayed, .retryWait, .waitingForConnectivity]
            #expect((life.dueAt != nil) == life.phase.map(phases.contains) ?? false)
        }
    }

    @Test
    func `A refusal names the phase and the event without their values`() {
        var life = Self.finished
        #expect(throws: Refused(state: "completed", event: "retry")) {
            try life.handle(.retry(at: now, waitsForConnectivity: true), at: now)
        }
        life = Self.retryWait
        #expect(throws: Refused(state: "retryWait", event: "claim")) { try life.handle(.claim, at: now) }
    }

    @Test
    func `A new task has its full time from its begin date on`() {
        func new(_ isSuspended: Bool, _ beginsAt: Timestamp?) -> TaskLife {
            TaskLife(isSuspended: isSuspended, beginsAt: beginsAt, timeout: .seconds(100), at: now)
        }
        #expect(new(true, .after(5)) == Self.suspended)
        #expect(new(false, nil) == Self.queued)
        #expect(new(false, .after(-5)) == Self.queued)
        #expect(new(false, .after(5)) == .running(.delayed(until: .after(5)), deadline: .after(105)))
    }

    @Test
    func `On a random walk a task is active only after a claim, and a suspension always holds`() throws {
        var random = SeededGenerator(state: 11)
        var life = Self.queued
        let events = Self.events.dropLast(2)
        for _ in 0..<20_000 {
            let event = try #require(events.randomElement(using: &random))
            let before = life
            guard (try? life.handle(event, at: now)) != nil else {
                #expect(life == before)
                continue
            }
            if life.phase == .active {
                #expect(before.phase == .active || ([.queued, .quarantined].contains(before.phase) && event == .claim))
            }
            if event == .suspend { #expect(life.phase == .suspended) }
            if before.phase == .suspended, life.phase != .suspended {
                guard case .resume = event else {
                    Issue.record("left suspended by \(event)")
                    return
                }
            }
        }
    }
}

extension TaskLife.Event {
    fileprivate var reschedules: Bool { if case .reschedule = self { true } else { false } }
}
