import Base
import Core
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// Conditions and discretion with a clock that the test advances.
@Suite(.serialized)
struct ConditionsTests {
    /// A running service at Friday, 2027-01-15, 08:00 UTC.
    static func run(
        configured configure: (inout ServiceSettings) -> Void = { _ in },
        _ body: (ServiceStage, ManualClock) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        try await ServiceStage.run(clock: clock.clock, configured: configure) { try await body($0, clock) }
    }

    /// Advances the clock, and wakes the scheduler and the janitor.
    static func advance(_ seconds: Int64, _ clock: ManualClock, _ stage: ServiceStage) {
        clock.advance(by: seconds * 1000)
        stage.service.inbox.bell.ring()
        stage.service.outlet.janitor.bell.ring()
    }

    /// A discretionary configuration for an origin for which hours pass in a moment.
    static func discretionary(_ configuration: inout SessionConfiguration) {
        configuration.isDiscretionary = true
        configuration.timeoutIntervalForRequest = 86_400
    }

    @Test func `A window that closes stops transfers, resumable, until it opens again`() async throws {
        try await Self.run { stage, clock in
            var conditions = Conditions()
            conditions.windows = [ServiceWindow(from: 7 * 60, to: 9 * 60)]
            try await stage.service.declareConditions(conditions, .available)
            let session = try await stage.session { Self.discretionary(&$0) }
            let other = try await stage.session("eager") { $0.timeoutIntervalForRequest = 86_400 }
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), turns: [[.holdBody(after: 400_000, gate)]])
            stage.origin.serve("/b", .generated(seed: 2, length: 1 << 20), turns: [[.holdBody(after: 400_000, gate)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let eager = try await stage.create(stage.order("/b"), in: other)[0]
            try await eventually { gate.waiting == 2 }
            try await stage.received(300_000, of: task, eager)
            Self.advance(3599, clock, stage)
            try await stays("it continues", for: .milliseconds(200)) { stage.origin.inFlight.now == 2 }
            Self.advance(1, clock, stage)
            let queued = try await stage.task(task, reaches: .queued)
            let reasons = stage.service.waitingReasons(of: queued, in: session)
            #expect(reasons.map(\.kind) == [.window])
            #expect(reasons.first?.until == stage.service.clock.now + .seconds(22 * 3600))
            #expect(queued.progress?.attempts.attempts == 0)
            #expect(try await stage.service.task(eager.number, in: other.id).phase == .active)
            gate.open()
            #expect(try await stage.completed(eager).outcome == .succeeded)
            // Only the clock wakes it on the next morning.
            Self.advance(22 * 3600, clock, stage)
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(stage.origin.requests("/a").last?.fields.contains("Range") == true)
        }
    }

    @Test func `A task of another session does not wait for a transfer that conditions have interrupted`() async throws
    {
        try await Self.run { stage, clock in
            var conditions = Conditions()
            conditions.windows = [ServiceWindow(from: 7 * 60, to: 9 * 60)]
            try await stage.service.declareConditions(conditions, .available)
            let session = try await stage.session {
                Self.discretionary(&$0)
                $0.requestCachePolicy = .returnCacheDataElseLoad
            }
            let other = try await stage.session("eager") {
                $0.timeoutIntervalForRequest = 86_400
                $0.requestCachePolicy = .returnCacheDataElseLoad
            }
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), turns: [[.holdBody(after: 400_000, gate)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await stage.received(300_000, of: task)
            let eager = try await stage.create(stage.order("/a"), in: other)[0]
            _ = try await stage.task(eager, reaches: .following)
            Self.advance(3600, clock, stage)
            _ = try await stage.task(task, reaches: .queued)
            #expect(try await stage.completed(eager).outcome == .succeeded)
            gate.open()
            Self.advance(22 * 3600, clock, stage)
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
    }

    @Test func `A task's demands relax with its remaining time, and in the last quarter it runs`() async throws {
        try await Self.run { stage, clock in
            var worst = Conditions()
            worst.power.external = false
            worst.network.expensive = true
            worst.network.constrained = true
            worst.windows = [ServiceWindow(days: [.sunday], from: 0, to: 60)]
            try await stage.service.declareConditions(worst, .available)
            stage.origin.serve("/a", .text("x"))
            let session = try await stage.session {
                Self.discretionary(&$0)
                $0.timeoutIntervalForResource = 40_000
            }
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let queued = try await stage.task(task, reaches: .queued)
            let expected: [[WaitingReason.Kind]] = [
                [.power, .cheapNetwork, .unconstrainedNetwork, .window],
                [.cheapNetwork, .unconstrainedNetwork, .window], [.unconstrainedNetwork, .window],
            ]
            for kinds in expected {
                let reasons = stage.service.waitingReasons(of: queued, in: session)
                #expect(reasons.map(\.kind) == kinds && reasons.allSatisfy { !$0.detail.isEmpty })
                Self.advance(9999, clock, stage)
                #expect(stage.service.waitingReasons(of: queued, in: session).map(\.kind) == kinds)
                Self.advance(1, clock, stage)
                #expect(stage.origin.requests.isEmpty || kinds == expected.last)
            }
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
    }

    @Test func `Without reachability no task runs, however urgent, and its time elapses`() async throws {
        try await Self.run { stage, clock in
            var cut = Conditions()
            cut.network.reachable = false
            try await stage.service.declareConditions(cut, .available)
            stage.origin.serve("/a", .text("x"))
            let session = try await stage.session {
                Self.discretionary(&$0)
                $0.timeoutIntervalForResource = 1000
            }
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let queued = try await stage.task(task, reaches: .queued)
            Self.advance(999, clock, stage)
            #expect(stage.service.waitingReasons(of: queued, in: session).map(\.kind) == [.connectivity])
            try await stays("it waits", for: .milliseconds(200)) { stage.origin.requests.isEmpty }
            Self.advance(1, clock, stage)
            #expect(try await stage.completed(task).result?.error?.code == .timedOut)
            #expect(stage.origin.requests.isEmpty)
        }
    }

    @Test func `A load over the operator's limit stops discretionary transfers and no others`() async throws {
        let load = Locked<Double?>(0.2)
        try await Self.run(configured: { $0.load = { load.withLock { $0 } } }) { stage, clock in
            var limited = Conditions()
            limited.maximumLoad = 1
            try await stage.service.declareConditions(limited, .available)
            let session = try await stage.session { Self.discretionary(&$0) }
            let other = try await stage.session("eager")
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), always: [.holdBody(after: 400_000, gate)])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let eager = try await stage.create(stage.order("/a"), in: other)[0]
            try await eventually { gate.waiting == 2 }
            load.withLock { $0 = 1.5 }
            Self.advance(5, clock, stage)
            let queued = try await stage.task(task, reaches: .queued)
            #expect(stage.service.waitingReasons(of: queued, in: session).map(\.kind) == [.load])
            #expect(try await stage.service.task(eager.number, in: other.id).phase == .active)
            load.withLock { $0 = 1 }
            Self.advance(5, clock, stage)
            gate.open()
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(try await stage.completed(eager).outcome == .succeeded)
        }
    }

    @Test func `An open window limits the bandwidth of all sessions together`() async throws {
        try await ServiceStage.run { stage in
            var slow = Conditions()
            slow.windows = [ServiceWindow(from: 0, to: 1440, bandwidthLimit: 400_000)]
            try await stage.service.declareConditions(slow, .available)
            stage.origin.serve("/a", .generated(seed: 1, length: 600_000))
            let start = ContinuousClock.now
            var tasks: [TaskRecord] = []
            for name in ["a", "b"] {
                tasks += try await stage.create(stage.order("/a"), in: try await stage.session(name))
            }
            for task in tasks { #expect(try await stage.completed(task).outcome == .succeeded) }
            // 1,200,000 bytes at 400,000 a second, minus the first burst of one second.
            #expect(ContinuousClock.now - start > .milliseconds(1500))
        }
    }
}
