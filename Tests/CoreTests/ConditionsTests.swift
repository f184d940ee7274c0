import Testing

@testable import Core

@Suite struct ConditionsTests {
    static let day = 86_400.0
    static let patient = Conditions.Demand(
        isDiscretionary: true, patience: .init(began: now, resourceTimeout: .seconds(4000)))

    static func conditions(_ change: (inout Conditions) -> Void) -> Conditions {
        var conditions = Conditions()
        change(&conditions)
        return conditions
    }

    static func kinds(_ verdict: Conditions.Verdict) -> [WaitingReason.Kind] {
        guard case .wait(let reasons) = verdict else { return [] }
        return reasons.map(\.kind)
    }

    static let worst = conditions {
        $0.network.cellular = true
        $0.network.expensive = true
        $0.network.constrained = true
        $0.power.external = false
        $0.maximumLoad = 1
        $0.windows = [ServiceWindow(days: [.sunday], from: 0, to: 60)]
    }

    @Test func `Good conditions admit every task`() {
        #expect(Conditions().judge(Self.patient, load: 99, at: now) == .go)
        #expect(Conditions().judge(.fetch, load: nil, at: now) == .go)
    }

    @Test(
        arguments: [
            (0, [.power, .cheapNetwork, .unconstrainedNetwork, .load, .window]),
            (999, [.power, .cheapNetwork, .unconstrainedNetwork, .load, .window]),
            (1000, [.cheapNetwork, .unconstrainedNetwork, .load, .window]),
            (2000, [.unconstrainedNetwork, .load, .window]), (3000, []), (9999, []),
        ] as [(Double, [WaitingReason.Kind])])
    func `Demands relax with each quarter of the timeout`(_ second: Double, _ kinds: [WaitingReason.Kind]) {
        let verdict = Self.worst.judge(Self.patient, load: 2, at: .after(second))
        #expect(Self.kinds(verdict) == kinds)
        #expect(verdict.until == (kinds.isEmpty ? nil : .after(3000)))
    }

    @Test func `A fetch never becomes urgent`() {
        #expect(Self.kinds(Self.worst.judge(.fetch, load: 0.5, at: .after(1e6))).contains(.power))
        let saver = Self.conditions { $0.power.lowPowerMode = true }
        #expect(Self.kinds(saver.judge(.fetch, load: nil, at: now)) == [.power])
        #expect(saver.judge(.fetch, load: nil, at: now).until == nil)
    }

    @Test func `Other tasks wait for reachability alone`() {
        let plain = Conditions.Demand(isDiscretionary: false)
        #expect(Self.worst.judge(plain, load: 9, at: now) == .go)
        let cut = Self.conditions { $0.network.reachable = false }
        #expect(Self.kinds(cut.judge(plain, load: nil, at: now)) == [.connectivity])
        #expect(Self.kinds(cut.judge(Self.patient, load: nil, at: .after(3999))) == [.connectivity])
        #expect(Conditions.Verdict.go.until == nil)
    }

    @Test func `A condition that the session requires is never waived`() {
        let strict = Conditions.Demand(
            isDiscretionary: true, allowsCellularAccess: false, allowsExpensiveNetworkAccess: false,
            allowsConstrainedNetworkAccess: false, patience: .init(began: now, resourceTimeout: .seconds(4)))
        #expect(
            Self.kinds(Self.worst.judge(strict, load: nil, at: .after(3.9)))
                == [.cellularAccess, .expensiveAccess, .constrainedAccess])
    }

    @Test func `Load counts only against a limit`() {
        let limited = Self.conditions { $0.maximumLoad = 1 }
        #expect(limited.judge(.fetch, load: 1, at: now) == .go)
        #expect(limited.judge(.fetch, load: nil, at: now) == .go)
        #expect(Self.kinds(limited.judge(.fetch, load: 1.1, at: now)) == [.load])
    }

    /// `now` is a Tuesday, 00:00 UTC.
    @Test(
        arguments: [
            (0, 60, 0, true), (0, 60, 3599, true), (0, 60, 3600, false), (60, 120, 0, false),
            (1380, 60, 0, false), (1380, 60, 82_800, true), (1380, 60, 86_400 + 3599, true),
            (1380, 60, 86_400 + 3600, false),
            (600, 600, 36_000, true), (600, 600, 86_400 + 35_999, true), (0, 1440, 86_399, true),
            (0, 1440, 86_400, false),
        ] as [(Int, Int, Double, Bool)])
    func `A window opens on its days and may pass midnight`(_ from: Int, _ to: Int, _ second: Double, _ isOpen: Bool) {
        let window = ServiceWindow(days: [.tuesday], from: from, to: to)
        #expect(window.isOpen(at: .after(second)) == isOpen)
    }

    @Test func `The next opening and the next change are computed`() {
        let window = ServiceWindow(days: [.tuesday], from: 60, to: 120)
        #expect(window.nextOpening(after: now) == .after(3600))
        #expect(window.nextOpening(after: .after(3600)) == .after(3600 + 7 * Self.day))
        #expect(window.nextChange(after: .after(3600)) == .after(7200))
        #expect(ServiceWindow(days: [], from: 0, to: 1).nextOpening(after: now) == nil)
        let conditions = Self.conditions { $0.windows = [window] }
        #expect(conditions.nextChange(after: now) == .after(3600))
        #expect(Conditions().nextChange(after: now) == nil)
        #expect(conditions.judge(.fetch, load: nil, at: now).until == .after(3600))
        #expect(Self.kinds(conditions.judge(.fetch, load: nil, at: now)) == [.window])
        #expect(conditions.judge(.fetch, load: nil, at: .after(3600)) == .go)
    }

    @Test func `The tightest open window limits the bandwidth`() {
        let conditions = Self.conditions {
            $0.windows = [
                ServiceWindow(from: 0, to: 60, bandwidthLimit: 500),
                ServiceWindow(from: 0, to: 30, bandwidthLimit: 100),
                ServiceWindow(from: 0, to: 1440),
            ]
        }
        #expect(conditions.bandwidthLimit(at: now) == 100)
        #expect(conditions.bandwidthLimit(at: .after(1800)) == 500)
        #expect(conditions.bandwidthLimit(at: .after(3600)) == nil)
    }
}
