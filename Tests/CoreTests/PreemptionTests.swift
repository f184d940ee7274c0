import Core
import Testing

@Suite struct PreemptionTests {
    private let start = Timestamp(milliseconds: 1_800_000_000_000)

    /// Transfers of an app in the order of their start.
    private func transfers(_ app: Int64, _ count: Int, resumable: Range<Int> = 0..<0) -> [Preemption.Candidate] {
        (0..<count).map {
            Preemption.Candidate(
                task: app * 1000 + Int64($0), app: app, isResumable: resumable.contains($0),
                startedAt: start + .seconds($0))
        }
    }

    private func choose(
        _ machine: inout Preemption, _ candidates: [Preemption.Candidate], waiting: [Int64: Preemption.Demand],
        served: Set<Int64> = [], slots: Int, after seconds: Int
    ) -> [Int64] {
        machine.choose(
            from: candidates, waiting: waiting, served: served,
            held: Dictionary(candidates.map { ($0.app, 1) }, uniquingKeysWith: +), slots: slots, greed: 8,
            at: start + .seconds(seconds))
    }

    @Test func `An app that has waited ten seconds gets the slots that its share lacks`() {
        var machine = Preemption(patience: .seconds(10))
        let running = transfers(1, 8)
        let waiting: [Int64: Preemption.Demand] = [2: .init(tasks: 100)]
        #expect(choose(&machine, running, waiting: waiting, slots: 8, after: 0) == [])
        #expect(machine.next == start + .seconds(10))
        #expect(choose(&machine, running, waiting: waiting, slots: 8, after: 9) == [])
        #expect(choose(&machine, running, waiting: waiting, slots: 8, after: 10) == [1007, 1006, 1005, 1004])
        // Interrupted transfers take a moment to end: no others are chosen meanwhile.
        #expect(choose(&machine, running, waiting: waiting, slots: 8, after: 11) == [])
    }

    @Test func `No more transfers are interrupted than tasks could start`() {
        var machine = Preemption(patience: .seconds(10))
        _ = choose(&machine, transfers(1, 8), waiting: [2: .init(tasks: 1)], slots: 8, after: 0)
        #expect(choose(&machine, transfers(1, 8), waiting: [2: .init(tasks: 1)], slots: 8, after: 10) == [1007])
    }

    @Test func `Resumable transfers are interrupted first, and among them the latest`() {
        var machine = Preemption(patience: .seconds(10))
        let running = transfers(1, 8, resumable: 2..<5)
        _ = choose(&machine, running, waiting: [2: .init(tasks: 9)], slots: 8, after: 0)
        #expect(
            choose(&machine, running, waiting: [2: .init(tasks: 9)], slots: 8, after: 10) == [1004, 1003, 1002, 1007])
    }

    @Test func `A wait restarts with each slot that an app gets, and ends when the app has no task to start`() {
        var machine = Preemption(patience: .seconds(10))
        let waiting: [Int64: Preemption.Demand] = [2: .init(tasks: 9)]
        _ = choose(&machine, transfers(1, 8), waiting: waiting, slots: 8, after: 0)
        #expect(choose(&machine, transfers(1, 8), waiting: waiting, served: [2], slots: 8, after: 10) == [])
        #expect(choose(&machine, transfers(1, 8), waiting: [:], slots: 8, after: 15) == [])
        #expect(machine.next == nil)
        #expect(choose(&machine, transfers(1, 8), waiting: waiting, slots: 8, after: 20) == [])
    }

    @Test func `An app with a full share preempts no transfer, and loses none of its share`() {
        var machine = Preemption(patience: .seconds(10))
        let even = transfers(1, 4) + transfers(2, 4)
        let waiting: [Int64: Preemption.Demand] = [1: .init(tasks: 9), 2: .init(tasks: 9)]
        _ = choose(&machine, even, waiting: waiting, slots: 8, after: 0)
        #expect(machine.next == nil)
        #expect(choose(&machine, even, waiting: waiting, slots: 8, after: 10) == [])
        // A third app's share is two of eight: it takes one from each other app.
        let third: [Int64: Preemption.Demand] = [3: .init(tasks: 9)]
        _ = choose(&machine, even, waiting: third, slots: 8, after: 20)
        #expect(choose(&machine, even, waiting: third, slots: 8, after: 30) == [2003, 1003])
    }

    @Test func `Fair share admits the share that preemption grants`() {
        for slots in 1...300 {
            for apps in 1...20 {
                let share = Preemption.share(of: slots, apps: apps, greed: 8)
                #expect(share * apps <= slots && share <= slots / apps)
                guard share > 0 else { continue }
                #expect(FairShare.mayTake(share - 1, free: slots - apps * share + 1, greed: 8), "\(slots), \(apps)")
            }
        }
        #expect(Preemption.share(of: 8, apps: 2, greed: 8) == 4)
        #expect(Preemption.share(of: 256, apps: 2, greed: 8) == 120)
    }

    @Test func `Background sessions have a quarter of a share`() {
        var machine = Preemption(patience: .seconds(10))
        let waiting: [Int64: Preemption.Demand] = [2: .init(tasks: 9, isBackground: true)]
        _ = choose(&machine, transfers(1, 8), waiting: waiting, slots: 8, after: 0)
        #expect(choose(&machine, transfers(1, 8), waiting: waiting, slots: 8, after: 10) == [1007])
    }
}
