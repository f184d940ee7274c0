import Base
import Core
import Store

/// This node's knowledge of the other nodes.
package final class Nodes: Sendable {
    private struct State {
        var records: [NodeRecord] = []
        var isDraining = false
        var isKeeper: Bool
        var onNews: @Sendable () -> Void = {}
        var progress: [SessionID: [TaskID: LiveState.Sample]] = [:]
    }

    private let state: Locked<State>
    let takeOvers: Metrics.Counter

    init(isShared: Bool, _ metrics: Metrics) {
        let state = Locked(State(isKeeper: !isShared))
        self.state = state
        takeOvers = metrics.counter("urlsessiond_takeovers_total", "Dead nodes whose work this node took over.")
        metrics.gauge("urlsessiond_nodes", "Living nodes that share the store, this one included.") {
            Double(max(1, state.withLock { $0.records.count(where: \.isAlive) }))
        }
    }

    /// Whether this node is drained: it claims nothing. Requests are still served.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// Whether other nodes share the store.
    var hasOthers: Bool { state.withLock { $0.records.count > 1 } }

    /// Whether this node runs the janitor, as exactly one of all live nodes does.
    var isKeeper: Bool { state.withLock { $0.isKeeper } }

    /// The number of nodes that transfer, including this one, and share a session's bandwidth.
    var transferring: Int {
        state.withLock { state in
            max(1, state.records.count { $0.isAlive && $0.profile.roles.contains(NodeRole.transfer.rawValue) })
        }
    }

    /// Whether other nodes share the store, and each that transfers has reported that it has no free slot.
    var areFull: Bool {
        state.withLock { state in
            let open = state.records.filter { $0.isAlive && !$0.isDraining && $0.profile.maximumTransfers > 0 }
            return state.records.count > 1
                && open.allSatisfy { $0.profile.transfersRunning >= $0.profile.maximumTransfers }
        }
    }

    /// Sets the closure to call when other nodes have committed something.
    package func onNews(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onNews = body } }

    func tellNews() { state.withLock { $0.onNews }() }

    /// The progress of other nodes' transfers in a session that is streamed here, as last stored.
    func samples(of session: SessionID) -> [TaskID: LiveState.Sample] {
        state.withLock { $0.progress[session] ?? [:] }
    }

    /// Notes the stored progress of other nodes' transfers.
    ///
    /// - Returns: Sessions whose progress changed.
    func note(_ progress: [SessionID: [TaskID: LiveState.Sample]]) -> [SessionID] {
        state.withLock { state in
            defer { state.progress = progress }
            return progress.filter { state.progress[$0.key] != $0.value }.map(\.key)
        }
    }

    func drain() { state.withLock { $0.isDraining = true } }

    /// Notes the nodes' rows.
    func note(_ records: [NodeRecord], own: String) {
        state.withLock { state in
            state.records = records
            let living = records.filter(\.isAlive)
            state.isKeeper = (living.first { !$0.isDraining } ?? living.first)?.id == own
        }
    }
}
