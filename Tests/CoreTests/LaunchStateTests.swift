import TestSupport
import Testing

@testable import Core

@Suite struct LaunchStateTests {
    typealias State = LaunchState
    typealias Event = LaunchState.Event

    static let failure = State.Failure(jitter: 0)
    static let pending = State.pending(attempts: 2, nextAttemptAt: now)
    static let delivering = State.delivering(attempt: 3, leaseUntil: .after(45))
    static let launched = State.launched(attempts: 3, deadline: .after(60))
    static let parked = State.parked(attempts: 2, reason: .paused)
    static let completed = State.completed(at: now)
    static let superseded = State.superseded(at: now)
    static let exhausted = State.exhausted(attempts: 11, at: now)
    static let states = [pending, delivering, launched, parked, completed, superseded, exhausted]

    static let success = Event.succeeded(deadline: .after(90))
    static let events: [Event] = [
        .claim(leaseUntil: .after(45)), success, .failed(failure), .deadlinePassed(failure), .interrupted,
        .leaseExpired, .complete, .clientAttached, .park(.disabled), .enabled(nextAttemptAt: .after(7)), .redeliver,
        .sessionEnded, .putOff(until: .after(70)),
    ]

    struct Row: Sendable {
        var from: State
        var event: Event
        var second: Double
        var to: State
        var effects: [State.Effect]

        init(_ from: State, _ event: Event, _ to: State, _ effects: [State.Effect] = [], at second: Double = 60) {
            (self.from, self.event, self.second, self.to, self.effects) = (from, event, second, to, effects)
        }
    }

    static let done: [State.Effect] = [.acknowledge, .finishEvents]
    static let rows: [Row] = [
        Row(
            pending, .claim(leaseUntil: .after(99)), .delivering(attempt: 3, leaseUntil: .after(99)),
            [.send(attempt: 3)]),
        Row(pending, .complete, .completed(at: .after(60)), done),
        Row(pending, .clientAttached, .superseded(at: .after(60)), [.makeRoom]),
        Row(pending, .park(.noURL), .parked(attempts: 2, reason: .noURL)),
        Row(pending, .redeliver, .pending(attempts: 2, nextAttemptAt: .after(60))),
        Row(delivering, success, .launched(attempts: 3, deadline: .after(90))),
        Row(delivering, .failed(failure), .pending(attempts: 3, nextAttemptAt: .after(360))),
        Row(delivering, .interrupted, .pending(attempts: 2, nextAttemptAt: .after(60))),
        Row(delivering, .leaseExpired, .pending(attempts: 2, nextAttemptAt: .after(45)), at: 45),
        Row(delivering, .complete, .completed(at: .after(60)), done),
        Row(delivering, .clientAttached, delivering),
        Row(delivering, .park(.disabled), .parked(attempts: 3, reason: .disabled)),
        Row(delivering, .redeliver, delivering),
        Row(launched, .deadlinePassed(failure), .pending(attempts: 3, nextAttemptAt: .after(360))),
        Row(launched, .complete, .completed(at: .after(60)), done),
        Row(launched, .clientAttached, launched),
        Row(launched, .park(.paused), .parked(attempts: 3, reason: .paused)),
        Row(launched, .redeliver, .pending(attempts: 3, nextAttemptAt: .after(60))),
        Row(parked, success, .launched(attempts: 2, deadline: .after(90))),
        Row(parked, .failed(failure), parked),
        Row(parked, .complete, .completed(at: .after(60)), done),
        Row(parked, .clientAttached, .superseded(at: .after(60)), [.makeRoom]),
        Row(parked, .park(.disabled), .parked(attempts: 2, reason: .disabled)),
        Row(parked, .enabled(nextAttemptAt: .after(7)), .pending(attempts: 2, nextAttemptAt: .after(7))),
        Row(parked, .redeliver, parked),
        Row(pending, .sessionEnded, .superseded(at: .after(60)), [.makeRoom]),
        Row(delivering, .sessionEnded, .superseded(at: .after(60)), [.makeRoom]),
        Row(launched, .sessionEnded, .superseded(at: .after(60)), [.makeRoom]),
        Row(parked, .sessionEnded, .superseded(at: .after(60)), [.makeRoom]),
        Row(pending, .putOff(until: .after(70)), .pending(attempts: 2, nextAttemptAt: .after(70))),
        Row(pending, .putOff(until: .after(-7)), pending),
        Row(completed, .complete, completed),
        Row(superseded, .complete, superseded, [.acknowledge]),
        Row(exhausted, .complete, exhausted, [.acknowledge]),
        Row(exhausted, .redeliver, .pending(attempts: 11, nextAttemptAt: .after(60))),
    ]

    @Test(arguments: rows)
    func `The machine follows each arrow of the diagram`(_ row: Row) throws {
        var state = row.from
        #expect(try state.handle(row.event, at: .after(row.second)) == row.effects)
        #expect(state == row.to)
    }

    private func name(_ event: Event) -> String { Refused("", event).event }

    @Test(arguments: states)
    func `Every other event is refused and moves nothing`(_ from: State) {
        for event in Self.events {
            guard !Self.rows.contains(where: { $0.from == from && name($0.event) == name(event) }) else { continue }
            var state = from
            #expect(throws: Refused(state: from.name, event: name(event))) { try state.handle(event, at: .after(60)) }
            #expect(state == from)
        }
    }

    @Test func `No transition happens before its time`() {
        for (from, event) in [
            (Self.pending, Event.claim(leaseUntil: now)), (Self.delivering, .leaseExpired),
            (Self.launched, .deadlinePassed(Self.failure)),
        ] {
            var state = from
            #expect(throws: Refused.self) { try state.handle(event, at: .after(-1)) }
            #expect(state == from)
        }
    }

    @Test func `Eleven attempts follow the schedule, and the last exhausts it`() throws {
        var state = State.pending(attempts: 0, nextAttemptAt: now)
        var time = now
        var waits: [Double] = []
        for attempt in 1...11 {
            #expect(try state.handle(.claim(leaseUntil: time), at: time) == [.send(attempt: attempt)])
            let effects = try state.handle(.failed(Self.failure), at: time)
            guard case .pending(attempt, let next) = state else {
                #expect(effects == [.giveUp])
                break
            }
            waits.append((next - time).seconds)
            time = next
        }
        #expect(waits == [5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
        #expect(state == .exhausted(attempts: 11, at: time))
        _ = try state.handle(.redeliver, at: time)
        _ = try state.handle(.claim(leaseUntil: time), at: time)
        #expect(try state.handle(.failed(Self.failure), at: time) == [.giveUp])
    }

    @Test func `Jitter only lengthens the delay, and a longer Retry-After counts`() {
        let schedule = LaunchSchedule.standard
        #expect(schedule.delay(afterAttempt: 2, jitter: 0.5, retryAfter: nil) == .seconds(33))
        #expect(schedule.delay(afterAttempt: 2, jitter: 7, retryAfter: .seconds(9)) == .seconds(36))
        #expect(schedule.delay(afterAttempt: 2, jitter: 0, retryAfter: .seconds(99)) == .seconds(99))
        #expect(schedule.delay(afterAttempt: 2, jitter: 0, retryAfter: .seconds(172_800)) == .seconds(172_800))
        #expect(schedule.delay(afterAttempt: 0, jitter: 0, retryAfter: nil) == nil)
        #expect(LaunchSchedule.fetch.delay(afterAttempt: 2, jitter: 0, retryAfter: nil) == nil)
        #expect(LaunchSchedule.once.delay(afterAttempt: 1, jitter: 0, retryAfter: nil) == nil)
        let most = schedule.delays.reduce(Duration.zero, +)
        #expect(most.seconds == 272_135)
        #expect(most.seconds * 1.2 < LaunchSchedule.lifetime.seconds)
    }

    @Test func `Attempts end when the launch expires`() throws {
        var state = Self.delivering
        let failure = State.Failure(jitter: 0, expiresAt: .after(300))
        #expect(try state.handle(.failed(failure), at: now) == [.giveUp])
        #expect(state == .exhausted(attempts: 3, at: now))
    }

    @Test(arguments: [(3600, 3600), (172_800, 172_800), (345_540, 345_540), (345_600, 345_540)] as [(Int64, Double)])
    func `Retry-After counts up to a minute before the launch expires`(_ wait: Int64, _ second: Double) throws {
        var state = State.delivering(attempt: 1, leaseUntil: .after(45))
        let failure = State.Failure(jitter: 0, retryAfter: .seconds(wait), expiresAt: .after(345_600))
        #expect(try state.handle(.failed(failure), at: now) == [])
        #expect(state == .pending(attempts: 1, nextAttemptAt: .after(second)))
    }

    @Test func `Each state reports whether it is open and when it is due`() {
        #expect(Self.states.map(\.isOpen) == [true, true, true, true, false, false, false])
        #expect(Self.states.map(\.dueAt) == [now, .after(45), .after(60), nil, nil, nil, nil])
        #expect(Self.states.map(\.phase) == State.Phase.allCases)
    }

    @Test(arguments: 0..<20)
    func `A random walk never loses an attempt nor leaves the end`(_ seed: Int) {
        var generator = SeededGenerator(state: UInt64(seed))
        var state = State.pending(attempts: 0, nextAttemptAt: now)
        var time = now
        var completions = 0
        for _ in 0..<400 {
            time = time + .seconds(Int.random(in: 0...40_000, using: &generator))
            let event: Event = Self.events.randomElement(using: &generator) ?? .complete
            let before = state
            guard let effects = try? state.handle(event, at: time) else {
                #expect(state == before)
                continue
            }
            if effects.contains(.finishEvents) { completions += 1 }
            if case .completed = before { #expect(state == before) }
            if case .superseded = before { #expect(state == before) }
            if case .delivering(let attempt, _) = state, case .pending(let attempts, _) = before {
                #expect(attempt == attempts + 1)
            }
            if !state.isOpen, state == before, completions == 0 { state = .pending(attempts: 0, nextAttemptAt: time) }
        }
        #expect(completions <= 1)
    }
}
