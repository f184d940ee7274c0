import TestSupport
import Testing

@testable import Core

@Suite struct FairShareTests {
    typealias Lane = FairShare.Lane

    static func lane(
        _ app: Int64, _ session: Int64, _ host: String = "a", priority: Double = 0.5, ready: Int = 100,
        running: Int = 0,
        limit: Int = 6, background: Bool = false
    ) -> Lane {
        Lane(
            app: app, session: session, host: host, priority: priority, ready: ready, running: running, limit: limit,
            isBackground: background)
    }

    static func counts(_ lanes: [Lane], slots: Int, hostLimit: Int = 1000) -> [Int] {
        var share = FairShare()
        var counts = Array(repeating: 0, count: lanes.count)
        for grant in share.pick(lanes, freeSlots: slots, hostLimit: hostLimit) { counts[grant.lane] += grant.count }
        return counts
    }

    @Test func `Apps get equal shares, however many sessions and hosts they have`() {
        let lanes = (1...9).map { Self.lane(1, Int64($0), "h\($0)", limit: 100) } + [Self.lane(2, 10, limit: 100)]
        let counts = Self.counts(lanes, slots: 40)
        #expect(counts.last == 20)
        #expect(counts.dropLast().reduce(0, +) == 20)
        #expect(counts.dropLast().allSatisfy { $0 == 2 || $0 == 3 })
    }

    @Test func `An app with many transfers waits`() {
        #expect(Self.counts([Self.lane(1, 1, running: 3), Self.lane(2, 2)], slots: 3) == [0, 3])
        #expect(Self.counts([Self.lane(1, 1, running: 3), Self.lane(2, 2)], slots: 5) == [1, 4])
    }

    @Test func `An app that holds many times the free slots gets none of them`() {
        func counts(_ running: Int..., slots: Int) -> [Int] {
            let lanes = running.enumerated().map { index, running in
                Self.lane(Int64(index), Int64(index), ready: 1000, running: running, limit: 1000)
            }
            var share = FairShare()
            let grants = share.pick(lanes, freeSlots: slots, hostLimit: 1000, greed: 8)
            return lanes.indices.map { index in grants.filter { $0.lane == index }.reduce(0) { $0 + $1.count } }
        }
        #expect(counts(0, slots: 8) == [8])
        #expect(counts(0, slots: 256) == [228])
        #expect(counts(228, slots: 28) == [0])
        #expect(counts(228, 0, slots: 28) == [0, 25])
        #expect(counts(228, 25, 0, slots: 3) == [0, 0, 3])
    }

    @Test func `The limits of session and host are kept`() {
        #expect(Self.counts([Self.lane(1, 1, limit: 6)], slots: 100) == [6])
        #expect(Self.counts([Self.lane(1, 1, running: 6, limit: 6)], slots: 100) == [0])
        #expect(
            Self.counts([Self.lane(1, 1), Self.lane(2, 2), Self.lane(2, 3, "b")], slots: 100, hostLimit: 4) == [
                3, 1, 4,
            ])
        #expect(Self.counts([Self.lane(1, 1, running: 4), Self.lane(2, 2)], slots: 100, hostLimit: 4) == [0, 0])
        #expect(Self.counts([Self.lane(1, 1, ready: 2)], slots: 100) == [2])
        #expect(Self.counts([Self.lane(1, 1, ready: 0, running: 9)], slots: 5) == [0])
        #expect(Self.counts([], slots: 5) == [])
        #expect(Self.counts([Self.lane(1, 1)], slots: 0) == [0])
        #expect(Self.counts([Self.lane(1, 1)], slots: -3) == [0])
    }

    @Test func `Within a session the higher priority comes first`() {
        let lanes = [
            Self.lane(1, 1, "a", priority: 0.2), Self.lane(1, 1, "b", priority: 0.9),
            Self.lane(1, 1, "c", priority: 0.2),
        ]
        #expect(Self.counts(lanes, slots: 6) == [0, 6, 0])
        #expect(Self.counts(lanes, slots: 10) == [2, 6, 2])
    }

    @Test func `Background sessions get a quarter of a share`() {
        let mixed = [Self.lane(1, 1, limit: 100), Self.lane(1, 2, limit: 100, background: true)]
        #expect(Self.counts(mixed, slots: 50) == [40, 10])
        let apps = [Self.lane(1, 1, limit: 100), Self.lane(2, 2, limit: 100, background: true)]
        #expect(Self.counts(apps, slots: 50) == [40, 10])
        #expect(Self.counts([Self.lane(2, 2, limit: 100, background: true)], slots: 50) == [50])
    }

    @Test func `A single slot rotates among the apps`() {
        var share = FairShare()
        let lanes = [Self.lane(1, 1), Self.lane(1, 2), Self.lane(2, 3), Self.lane(3, 4, background: true)]
        var served: [Int] = []
        for _ in 0..<8 { served += share.pick(lanes, freeSlots: 1, hostLimit: 9).map(\.lane) }
        #expect(served.filter { $0 == 0 }.count == 2)
        #expect(served.filter { $0 == 1 }.count == 2)
        #expect(served.filter { $0 == 2 }.count == 4)
    }

    @Test func `The result does not depend on the order of the lanes`() {
        var generator = SeededGenerator(state: 3)
        let lanes = (0..<60).map { (index: Int) -> Lane in
            let host = "h\(index % 7)x\(index / 15)"
            let ready = Int.random(in: 0...9, using: &generator)
            let running = Int.random(in: 0...3, using: &generator)
            return Self.lane(
                Int64(index % 5), Int64(index % 15), host, priority: Double(index % 3), ready: ready, running: running)
        }
        func started(_ lanes: [Lane]) -> [Lane: Int] {
            var share = FairShare()
            var counts: [Lane: Int] = [:]
            for grant in share.pick(lanes, freeSlots: 37, hostLimit: 8) {
                counts[lanes[grant.lane], default: 0] += grant.count
            }
            return counts
        }
        let once = started(lanes)
        #expect(once.values.reduce(0, +) == 37)
        for _ in 0..<5 { #expect(started(lanes.shuffled(using: &generator)) == once) }
    }

    static func randomLane(_ index: Int, using generator: inout SeededGenerator) -> Lane {
        let priority = Double.random(in: 0...1, using: &generator)
        let ready = Int.random(in: 0...5, using: &generator)
        let running = Int.random(in: 0...4, using: &generator)
        let limit = Int.random(in: 1...6, using: &generator)
        return lane(
            Int64(index % 4), Int64(index % 12), "h\(index / 12)", priority: priority, ready: ready, running: running,
            limit: limit, background: index % 12 == 3)
    }

    @Test(arguments: 0..<20)
    func `A random load never exceeds a limit nor leaves a slot unused`(_ seed: Int) {
        var generator = SeededGenerator(state: UInt64(seed))
        var share = FairShare()
        for _ in 0..<20 {
            let size = Int.random(in: 0...40, using: &generator)
            let lanes = (0..<size).map { Self.randomLane($0, using: &generator) }
            let slots = Int.random(in: 0...50, using: &generator)
            let hostLimit = Int.random(in: 1...30, using: &generator)
            let grants = share.pick(lanes, freeSlots: slots, hostLimit: hostLimit)
            var hosts: [String: Int] = [:]
            for lane in lanes { hosts[lane.host, default: 0] += lane.running }
            var left = lanes
            for grant in grants {
                left[grant.lane].ready -= grant.count
                left[grant.lane].running += grant.count
                hosts[lanes[grant.lane].host, default: 0] += grant.count
                #expect(left[grant.lane].ready >= 0)
                #expect(left[grant.lane].running <= lanes[grant.lane].limit)
                #expect((hosts[lanes[grant.lane].host] ?? 0) <= hostLimit)
            }
            let started = grants.reduce(0) { $0 + $1.count }
            #expect(started <= slots)
            let idle = left.filter { lane in
                lane.ready > 0 && lane.running < lane.limit && (hosts[lane.host] ?? 0) < hostLimit
            }
            #expect(started == slots || idle.isEmpty)
        }
    }

    @Test func `A round over ten thousand lanes is fast`() {
        let lanes = (0..<10_000 as Range<Int64>).map { Self.lane($0 % 100, $0 % 1000, "h\($0)") }
        var share = FairShare()
        #expect(share.pick(lanes, freeSlots: 256, hostLimit: 32).reduce(0) { $0 + $1.count } == 256)
        let many = (0..<20_000).map { Self.lane(Int64($0), Int64($0), "h\($0)", ready: 1) }
        #expect(share.pick(many, freeSlots: 20_000, hostLimit: 32).count == 20_000)
    }
}
