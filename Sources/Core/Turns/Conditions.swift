package import Formats

/// The conditions that the operator declares for the whole service, because a server has no radio or battery to query.
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
    /// The maximum load for discretionary work, as the ratio of waiting to running time; `nil` for any.
    package var maximumLoad: Double?
    /// The windows in which discretionary work may run; none for always.
    package var windows: [ServiceWindow] = []

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("network", &network)
        members.member("power", &power)
        members.optional("maximumLoad", &maximumLoad)
        members.member("windows", &windows)
    }

    /// The conditions that a transfer requires.
    package struct Demand: Hashable, Sendable {
        package var isDiscretionary: Bool
        package var allowsCellularAccess: Bool
        package var allowsExpensiveNetworkAccess: Bool
        package var allowsConstrainedNetworkAccess: Bool
        /// The start and length of the resource timeout; `nil` for work that never becomes urgent.
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

        /// The demand of a background fetch: all conditions, always.
        package static let fetch = Demand(isDiscretionary: true)
    }

    package struct Patience: Hashable, Sendable {
        package var began: Timestamp
        package var resourceTimeout: Duration

        package init(began: Timestamp, resourceTimeout: Duration) {
            self.began = began
            self.resourceTimeout = resourceTimeout
        }

        /// The waived conditions: 0 none, 1 power, 2 also expense, 3 all but reachability.
        func leniency(at now: Timestamp) -> Int {
            (1...3).last { now >= moment(ofQuarter: $0) } ?? 0
        }

        fileprivate func moment(ofQuarter quarter: Int) -> Timestamp {
            began + .milliseconds(resourceTimeout.milliseconds / 4 * Int64(quarter))
        }
    }

    package enum Verdict: Hashable, Sendable {
        case go
        /// The reasons to wait, the most basic first. Never empty.
        case wait([WaitingReason])

        /// Whether the declared network is a reason to wait.
        package var waitsForConnectivity: Bool {
            if case .wait(let reasons) = self { reasons.contains(where: \.kind.isConnectivity) } else { false }
        }

        /// The earliest time at which the wait may end by itself; `nil` if only the operator can end it.
        package var until: Timestamp? {
            guard case .wait(let reasons) = self else { return nil }
            // Every reason must end.
            let moments = reasons.map(\.until)
            return moments.contains(nil) ? nil : moments.compactMap { $0 }.max()
        }
    }

    /// Whether a transfer may run now.
    ///
    /// A discretionary transfer demands all conditions for the first quarter of its resource timeout, then waives
    /// power, then expense, and in the last quarter demands reachability only. Prohibitions by the session stay.
    ///
    /// - Parameter load: The load of the machine, if it is known.
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

    /// The additional conditions of discretionary work.
    private func whims(_ patience: Patience?, load: Double?, at now: Timestamp) -> [WaitingReason] {
        let leniency = patience?.leniency(at: now) ?? 0
        guard leniency < 3 else { return [] }
        var reasons: [WaitingReason] = []
        /// Adds a reason that ends when the given quarter of the resource timeout has passed.
        func wait(_ kind: WaitingReason.Kind, _ detail: String, waivedAt quarter: Int, or other: Timestamp? = nil) {
            let until = [patience?.moment(ofQuarter: quarter), other].compactMap { $0 }.min()
            reasons.append(WaitingReason(kind: kind, detail: detail, until: until))
        }
        if leniency < 1, !power.external || power.lowPowerMode {
            let lack = power.external ? "the end of low power mode" : "external power"
            wait(.power, "Discretionary work waits for \(lack).", waivedAt: 1)
        }
        if leniency < 2, network.expensive || network.cellular {
            wait(.cheapNetwork, "Discretionary work waits for an inexpensive network.", waivedAt: 2)
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

    /// The lowest limit of the open windows, in bytes per second; `nil` for none.
    package func bandwidthLimit(at now: Timestamp) -> Int64? {
        windows.filter { $0.bandwidthLimit != nil && $0.isOpen(at: now) }.compactMap(\.bandwidthLimit).min()
    }

    /// When a window next opens or closes.
    package func nextChange(after now: Timestamp) -> Timestamp? {
        windows.compactMap { $0.nextChange(after: now) }.min()
    }
}
