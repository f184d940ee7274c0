package import Formats

/// The conditions that the operator declares for the whole service; a server has no radio and no battery to ask.
package struct Conditions: Shape {
    package struct Network: Shape {
        package var reachable = true
        package var cellular = false
        package var expensive = false
        package var constrained = false

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("reachable", &reachable)
            members.member("cellular", &cellular)
            members.member("expensive", &expensive)
            members.member("constrained", &constrained)
        }
    }

    package struct Power: Shape {
        package var external = true
        package var lowPowerMode = false

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("external", &external)
            members.member("lowPowerMode", &lowPowerMode)
        }
    }

    package var network = Network()
    package var power = Power()
    /// The load up to which discretionary work runs; nil for any. How long work waits, compared with how long it goes on.
    package var maximumLoad: Double?
    /// When discretionary work may run; none means always.
    package var windows: [ServiceWindow] = []

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("network", &network)
        members.member("power", &power)
        members.optional("maximumLoad", &maximumLoad)
        members.member("windows", &windows)
    }

    /// What a transfer asks of the conditions.
    package struct Demand: Hashable, Sendable {
        package var isDiscretionary: Bool
        package var allowsCellularAccess: Bool
        package var allowsExpensiveNetworkAccess: Bool
        package var allowsConstrainedNetworkAccess: Bool
        /// When its resource timeout began to run, and how long that is; nil for what never becomes urgent.
        package var patience: Patience?

        package init(
            isDiscretionary: Bool, allowsCellularAccess: Bool = true, allowsExpensiveNetworkAccess: Bool = true,
            allowsConstrainedNetworkAccess: Bool = true, patience: Patience? = nil
        ) {
            self.isDiscretionary = isDiscretionary
            self.allowsCellularAccess = allowsCellularAccess
            self.allowsExpensiveNetworkAccess = allowsExpensiveNetworkAccess
            self.allowsConstrainedNetworkAccess = allowsConstrainedNetworkAccess
            self.patience = patience
        }

        /// Of a background fetch: everything good, always.
        package static let fetch = Demand(isDiscretionary: true)
    }

    package struct Patience: Hashable, Sendable {
        package var began: Timestamp
        package var resourceTimeout: Duration

        package init(began: Timestamp, resourceTimeout: Duration) {
            self.began = began
            self.resourceTimeout = resourceTimeout
        }

        /// What is waived already: 0 nothing, 1 power, 2 expense too, 3 all but reachability.
        func leniency(at now: Timestamp) -> Int {
            (1...3).last { now >= moment(ofQuarter: $0) } ?? 0
        }

        fileprivate func moment(ofQuarter quarter: Int) -> Timestamp {
            began + .milliseconds(resourceTimeout.milliseconds / 4 * Int64(quarter))
        }
    }

    package enum Verdict: Hashable, Sendable {
        case go
        /// Why not, most basic first. Never empty.
        case wait([WaitingReason])

        /// The earliest moment at which waiting may end by itself; nil where only the operator can end it.
        package var until: Timestamp? {
            guard case .wait(let reasons) = self else { return nil }
            // Every reason has to go, and each says when it may.
            let moments = reasons.map(\.until)
            return moments.contains(nil) ? nil : moments.compactMap { $0 }.max()
        }
    }

    /// Whether a transfer may run now.
    ///
    /// A discretionary one demands everything for the first quarter of its resource timeout, then waives power, then
    /// expense, and in the last quarter wants reachability alone. What the session itself forbids is never waived.
    ///
    /// - Parameter load: How busy the machine is, where that is known.
    package func judge(_ demand: Demand, load: Double?, at now: Timestamp) -> Verdict {
        var reasons: [WaitingReason] = []
        func wait(_ kind: WaitingReason.Kind, _ detail: String, until: Timestamp? = nil) {
            reasons.append(WaitingReason(kind: kind, detail: detail, until: until))
        }
        if !network.reachable { wait(.connectivity, "The operator declares the network unreachable.") }
        if network.cellular, !demand.allowsCellularAccess {
            wait(.cellularAccess, "The network is cellular, which the session does not allow.")
        }
        if network.expensive, !demand.allowsExpensiveNetworkAccess {
            wait(.expensiveAccess, "The network is expensive, which the session does not allow.")
        }
        if network.constrained, !demand.allowsConstrainedNetworkAccess {
            wait(.constrainedAccess, "The network is constrained, which the session does not allow.")
        }
        if demand.isDiscretionary { reasons += whims(demand.patience, load: load, at: now) }
        return reasons.isEmpty ? .go : .wait(reasons)
    }

    /// What discretionary work waits for besides.
    private func whims(_ patience: Patience?, load: Double?, at now: Timestamp) -> [WaitingReason] {
        let leniency = patience?.leniency(at: now) ?? 0
        guard leniency < 3 else { return [] }
        var reasons: [WaitingReason] = []
        /// A reason that falls away by itself when the given quarter of the resource timeout has passed.
        func wait(_ kind: WaitingReason.Kind, _ detail: String, waivedAt quarter: Int, or other: Timestamp? = nil) {
            let until = [patience?.moment(ofQuarter: quarter), other].compactMap { $0 }.min()
            reasons.append(WaitingReason(kind: kind, detail: detail, until: until))
        }
        if leniency < 1, !power.external || power.lowPowerMode {
            let lack = power.external ? "the end of low power mode" : "external power"
            wait(.power, "Discretionary work waits for \(lack).", waivedAt: 1)
        }
        if leniency < 2, network.expensive || network.cellular {
            wait(.cheapNetwork, "Discretionary work waits for a network that costs nothing.", waivedAt: 2)
        }
        if network.constrained {
            wait(.unconstrainedNetwork, "Discretionary work waits for an unconstrained network.", waivedAt: 3)
        }
        if let maximumLoad, let load, load > maximumLoad {
            wait(.load, "Discretionary work waits for the load to fall.", waivedAt: 3)
        }
        if !windows.isEmpty, !windows.contains(where: { $0.isOpen(at: now) }) {
            let opening = windows.compactMap { $0.nextOpening(after: now) }.min()
            wait(.window, "Discretionary work waits for the operator's hours.", waivedAt: 3, or: opening)
        }
        return reasons
    }

    /// The tightest limit of the windows open now, in bytes per second; nil for none.
    package func bandwidthLimit(at now: Timestamp) -> Int64? {
        windows.filter { $0.bandwidthLimit != nil && $0.isOpen(at: now) }.compactMap(\.bandwidthLimit).min()
    }

    /// When a window opens or closes next.
    package func nextChange(after now: Timestamp) -> Timestamp? {
        windows.compactMap { $0.nextChange(after: now) }.min()
    }
}
