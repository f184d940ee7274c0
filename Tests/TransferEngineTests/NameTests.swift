import Base
import Core
import TestSupport
import Testing

@testable import TransferEngine

/// Concurrent look-ups of host names.
@Suite struct NameTests {
    @Test func `Look-ups of pools alternate, however many each has queued`() {
        var turns = LookUpTurns(LookUpLimits(total: 4, perPool: 3))
        for index in 0..<100 { turns.add("a\(index)", for: 1) }
        let first = (0..<3).compactMap { _ in turns.next() }
        #expect(first.map(\.name) == ["a0", "a1", "a2"])
        #expect(turns.next() == nil, "a pool has its limit")
        turns.add("b0", for: 2)
        turns.add("b1", for: 2)
        #expect(turns.next()?.name == "b0")
        #expect(turns.next() == nil, "all together have theirs")
        turns.end(first[0])
        #expect(turns.next()?.name == "b1", "the pool with fewer under way goes first")
        turns.end(first[1])
        #expect(turns.next()?.name == "a3")
    }

    @Test func `A name for which one pool has no room is resolved for another pool`() {
        var turns = LookUpTurns(LookUpLimits(total: 8, perPool: 1))
        for name in ["silent", "shared"] { turns.add(name, for: 1) }
        #expect(turns.next() == LookUpTurns.Turn(name: "silent", pool: 1))
        #expect(turns.next() == nil)
        turns.add("shared", for: 2)
        #expect(turns.next() == LookUpTurns.Turn(name: "shared", pool: 2))
        turns.end(LookUpTurns.Turn(name: "silent", pool: 1))
        #expect(turns.next() == nil, "it is under way for both")
    }

    @Test func `A name is resolved once, and not at all if no exchange waits`() {
        var turns = LookUpTurns(LookUpLimits(total: 8, perPool: 8))
        turns.add("shared", for: 1)
        turns.add("shared", for: 2)
        turns.add("left", for: 1)
        turns.remove("left", of: 1)
        #expect(turns.next()?.name == "shared")
        #expect(turns.next() == nil)
    }

    @Test func `Unanswered names of one pool do not delay another pool's`() async throws {
        let gate = Gate()
        let harness = try EngineHarness(lookUps: LookUpLimits()) { name in
            guard name.hasPrefix("silent") else { return .addresses([.v4(0x7F00_0001)]) }
            gate.pass()
            return .failed
        }
        defer { gate.open() }
        harness.origin.serve("/", .text("x"))
        for index in 0..<60 {
            harness.engine.start(harness.request("http://silent\(index).test/"))
        }
        let result = try await harness.run(
            harness.request("http://good.test:\(harness.origin.port)/") {
                $0.pool = 2
            })
        #expect(result.outcome == .complete)
    }

    @Test func `A timeout in the queue is distinguished, and the look-up runs later`() async throws {
        let gate = Gate()
        let asked = Locked<[String]>([])
        let harness = try EngineHarness(lookUps: LookUpLimits(total: 1)) { name in
            asked.withLock { $0.append(name) }
            gate.pass()
            return .addresses([.v4(0x7F00_0001)])
        }
        defer { gate.open() }
        harness.origin.serve("/", .text("x"))
        func request(_ name: String, _ timeout: Duration) -> ExchangeRequest {
            harness.request("http://\(name).test:\(harness.origin.port)/") {
                $0.connectTimeout = timeout
            }
        }
        let slow = request("slow", .milliseconds(300))
        harness.engine.start(slow)
        try await eventually("it is looked up") { asked.withLock { $0.count } == 1 }
        let (late, patient) = (request("late", .milliseconds(300)), request("patient", .seconds(60)))
        harness.engine.start(late)
        harness.engine.start(patient)
        #expect(try await harness.result(of: late).outcome == .failed(.nameNotAsked))
        #expect(try await harness.result(of: slow).outcome == .failed(.couldNotResolve))
        gate.open()
        #expect(try await harness.result(of: patient).outcome == .complete)
        #expect(asked.withLock { $0 } == ["slow.test", "patient.test"], "nobody waits for the third any more")
    }

    @Test func `One name is resolved once for all exchanges, of any pool`() async throws {
        let gate = Gate()
        let count = Locked(0)
        let harness = try EngineHarness(threads: 2, lookUps: LookUpLimits()) { _ in
            count.withLock { $0 += 1 }
            gate.pass()
            return .addresses([.v4(0x7F00_0001)])
        }
        defer { gate.open() }
        harness.origin.serve("/", .text("x"))
        let requests = (0..<20).map { index in
            harness.request("http://one.test:\(harness.origin.port)/") {
                $0.pool = Int64(index % 4)
            }
        }
        for request in requests { harness.engine.start(request) }
        try await eventually("all have started") { harness.engine.count == requests.count }
        gate.open()
        for request in requests { #expect(try await harness.result(of: request).outcome == .complete) }
        #expect(count.withLock { $0 } == 1)
    }
}
