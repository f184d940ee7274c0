package import Base
package import Core
import Store

/// The declared conditions, in memory for the scheduler and for the explanation of a waiting task.
package final class CurrentConditions: Sendable {
    private struct State {
        var conditions = Conditions()
        var refreshStatus = BackgroundRefreshStatus.available
        var load: Double?
        var nextChange: Timestamp?
        var version = 0
        var seen = 0
    }

    private let state = Locked(State())
    private let clock: Clock

    package init(clock: Clock) { self.clock = clock }

    package var conditions: Conditions { state.withLock { $0.conditions } }

    /// The load of the machine when it was last measured; nil if the kernel does not report it.
    package var load: Double? { state.withLock { $0.load } }

    /// The operator's declarations, both of the same moment.
    package var declared: (conditions: Conditions, refreshStatus: BackgroundRefreshStatus) {
        state.withLock { ($0.conditions, $0.refreshStatus) }
    }

    package var refreshStatus: BackgroundRefreshStatus { state.withLock { $0.refreshStatus } }

    package func set(_ conditions: Conditions, _ refreshStatus: BackgroundRefreshStatus) {
        let now = clock.now
        state.withLock { state in
            guard conditions != state.conditions || refreshStatus != state.refreshStatus else { return }
            state.conditions = conditions
            state.refreshStatus = refreshStatus
            state.nextChange = conditions.nextChange(after: now)
            state.version += 1
        }
    }

    /// Notes the load of the machine.
    ///
    /// - Returns: Whether it has crossed the operator's limit, so that transfers start or stop.
    package func note(load: Double?) -> Bool {
        state.withLock { state in
            func isOver(_ load: Double?) -> Bool {
                guard let load, let limit = state.conditions.maximumLoad else { return false }
                return load > limit
            }
            let hasChanged = isOver(load) != isOver(state.load)
            state.load = load
            if hasChanged { state.version += 1 }
            return hasChanged
        }
    }

    var nextChange: Timestamp? { state.withLock { $0.nextChange } }

    /// Whether conditions changed since the last call, through the operator or with time.
    func changed(at now: Timestamp) -> Bool {
        state.withLock { state in
            if let next = state.nextChange, next <= now {
                state.nextChange = state.conditions.nextChange(after: now)
                state.version += 1
            }
            defer { state.seen = state.version }
            return state.seen != state.version
        }
    }

    package struct Snapshot: Sendable {
        var conditions: Conditions
        var load: Double?
        var now: Timestamp

        func verdict(_ demands: LaneConditions, patience: Conditions.Patience? = nil) -> Conditions.Verdict {
            conditions.judge(
                Conditions.Demand(
                    isDiscretionary: demands.contains(.discretionary),
                    allowsCellularAccess: !demands.contains(.noCellular),
                    allowsExpensiveNetworkAccess: !demands.contains(.noExpensive),
                    allowsConstrainedNetworkAccess: !demands.contains(.noConstrained), patience: patience),
                load: load, at: now)
        }

        /// - Parameter deadline: The deadline of a task of the session.
        package func verdict(on session: SessionConfiguration, until deadline: Timestamp?) -> Conditions.Verdict {
            let timeout = Duration.milliseconds(Int64(session.timeoutIntervalForResource * 1000))
            let patience = deadline.map { Conditions.Patience(began: $0 - timeout, resourceTimeout: timeout) }
            return verdict(LaneConditions(session), patience: patience)
        }

        var bandwidthLimit: Int64? { conditions.bandwidthLimit(at: now) }
    }

    package var snapshot: Snapshot {
        let now = clock.now
        return state.withLock { Snapshot(conditions: $0.conditions, load: $0.load, now: now) }
    }
}
