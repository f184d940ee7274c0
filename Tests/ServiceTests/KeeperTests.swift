import Testing

@testable import Service

/// One node of many does the housekeeping and the work on sets.
struct KeeperTests {
    private static let period: Int64 = 400

    /// A role whose node reads the rows in each period of a time span.
    private static func keeper(
        isFirst: Bool = true, isAlone: Bool = false, in span: ClosedRange<Int64>
    ) -> Keeper {
        var keeper = Keeper()
        for now in stride(from: span.lowerBound, through: span.upperBound, by: Int(period)) {
            keeper.note(isFirst: isFirst, isAlone: isAlone, at: now)
        }
        return keeper
    }

    @Test func `A node begins at once if it is alone, and otherwise after the previous one has ended its work`() {
        #expect(!Keeper().holds(at: 0) && !Keeper().isFirst)
        #expect(Self.keeper(isAlone: true, in: 0...0).holds(at: 0))
        let second = Self.keeper(in: 0...Keeper.handOver)
        #expect(!second.holds(at: Keeper.handOver - 1) && second.holds(at: Keeper.handOver))
        #expect(!Self.keeper(isFirst: false, in: 0...10_000).holds(at: 10_000))
    }

    @Test func `A node ends its work as soon as it sees another one as the first`() {
        var keeper = Self.keeper(in: 0...10_000)
        #expect(keeper.holds(at: 10_000) && keeper.isFirst)
        keeper.note(isFirst: false, isAlone: false, at: 10_400)
        #expect(!keeper.holds(at: 10_400) && !keeper.isFirst)
        keeper.note(isFirst: true, isAlone: false, at: 10_800)
        #expect(!keeper.holds(at: 10_800) && keeper.isFirst)
    }

    @Test func `A node that has paused relies on no old rows, and waits once more`() {
        var keeper = Self.keeper(in: 0...10_000)
        let back = 10_000 + Keeper.validity + 1
        #expect(!keeper.holds(at: back))
        keeper.note(isFirst: true, isAlone: false, at: back)
        #expect(!keeper.holds(at: back) && !keeper.holds(at: back + Keeper.handOver - 1))
        #expect(keeper.holds(at: back + Keeper.handOver))
    }
}
