import Base
import Core
import Testing

@testable import TransferEngine

/// Grants of memory for parts that are longer than usual.
struct PartMemoryTests {
    /// The number of times that a seat was woken.
    private final class Bell: Sendable {
        private let rings = Locked(0)

        var count: Int { rings.withLock { $0 } }

        func ring() { rings.withLock { $0 += 1 } }
    }

    @Test func `The memory is granted up to its limit, in the order of requests`() throws {
        let memory = PartMemory(limit: 100)
        let bells = (0..<4).map { _ in Bell() }
        let seats = bells.enumerated().map { index, bell in memory.seat(of: Int64(index)) { bell.ring() } }
        var first = seats[0].take(60)
        #expect(first != nil && memory.taken == 60)
        #expect(seats[1].take(50) == nil)
        // There is room, but an earlier request waits.
        #expect(seats[2].take(10) == nil && seats[2].take(10) == nil)
        #expect(bells.map(\.count) == [0, 0, 0, 0])
        first = nil
        #expect(bells.map(\.count) == [0, 1, 1, 0] && memory.taken == 60)
        let grants = [seats[1].take(50), seats[2].take(10)]
        #expect(grants.allSatisfy { $0 != nil } && memory.taken == 60)
        #expect(seats[3].take(40) != nil)
        #expect(memory.taken == 60)
    }

    @Test func `An app gets at most half of the memory, and other apps come first`() throws {
        let memory = PartMemory(limit: 100)
        let (own, other) = (Bell(), Bell())
        let seats = (0..<3).map { _ in memory.seat(of: 1) { own.ring() } }
        var grants = [seats[0].take(30), seats[1].take(30)]
        #expect(grants[0] != nil && grants[1] == nil)
        let stranger = memory.seat(of: 2) { other.ring() }
        grants.append(stranger.take(70))
        #expect(grants[2] != nil && memory.taken == 100)
        grants[0] = nil
        #expect(own.count == 1 && seats[1].take(30) != nil)
        #expect(other.count == 0)
    }

    @Test func `A request beyond the memory is granted alone, and a cancelled one stops waiting`() throws {
        let memory = PartMemory(limit: 100)
        let bell = Bell()
        var large: PartMemory.Grant? = memory.seat(of: 1) {}.take(500)
        #expect(large != nil)
        var seat: PartMemory.Seat? = memory.seat(of: 2) { bell.ring() }
        #expect(seat?.take(10) == nil)
        let next = memory.seat(of: 3) { bell.ring() }
        #expect(next.take(100) == nil)
        seat = nil
        large = nil
        #expect(bell.count == 1 && memory.taken == 100)
        var grant = next.take(100)
        #expect(grant != nil)
        grant = nil
        #expect(memory.taken == 0)
        // Woken, and released before it asked again.
        large = memory.seat(of: 1) {}.take(100)
        seat = memory.seat(of: 2) { bell.ring() }
        #expect(seat?.take(10) == nil)
        large = nil
        #expect(memory.taken == 10)
        seat = nil
        #expect(memory.taken == 0)
    }

    @Test func `A task waits for the bytes of a part`() async throws {
        let memory = PartMemory(limit: 100)
        var first = await memory.grant(100, of: 1)
        #expect(first != nil)
        async let second = memory.grant(10, of: 2)
        first = nil
        #expect(await second != nil)
    }

    @Test func `Longer parts are gathered one after the other, and reserve no memory before`() throws {
        let memory = PartMemory(limit: 100 << 20)
        let plan = PartPlan(expected: 1 << 40)
        let length = plan.length(ofPart: 1)
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        func take(_ gatherer: inout PartGatherer) -> [ContentPart] {
            piece.withUnsafeBytes { gatherer.take($0, ofContent: plan.expected) }
        }
        func mayTake(_ gatherer: inout PartGatherer, _ unrecorded: Int64) -> Bool {
            gatherer.mayTake(unrecorded: unrecorded)
        }
        var first = PartGatherer(plan, after: 0, memory.seat(of: 1) {})
        let answer1 = mayTake(&first, 0)
        #expect(answer1)
        _ = take(&first)
        #expect(memory.taken == 0)
        let answer2 = mayTake(&first, 1 << 20)
        #expect(answer2 && memory.taken == length - PartPlan.usual)
        var second = PartGatherer(plan, after: 0, memory.seat(of: 2) {})
        let answer3 = mayTake(&second, 0)
        #expect(answer3)
        _ = take(&second)
        let answer4 = mayTake(&second, 1 << 20)
        #expect(!answer4)
        var parts: [ContentPart] = []
        while parts.isEmpty { parts = take(&first) }
        #expect(parts[0].bytes.count == length)
        // The part is in flight, and so is its memory.
        let answer5 = mayTake(&second, 1 << 20)
        #expect(!answer5)
        parts = []
        let answer6 = mayTake(&second, 1 << 20)
        #expect(answer6)
    }
}
