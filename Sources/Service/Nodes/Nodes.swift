import Base
import Core
import Store

/// What this node knows of the others.
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
        metrics.gauge("urlsessiond_nodes", "Nodes that share the store and live, this one included.") {
            Double(max(1, state.withLock { $0.records.count(where: \.isAlive) }))
        }
    }

    /// Whether this node was asked to take nothing more. Requests are still answered.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// Whether others share the store.
    var hasOthers: Bool { state.withLock { $0.records.count > 1 } }

    /// Whether this node keeps house: one of all that live does.
    var isKeeper: Bool { state.withLock { $0.isKeeper } }

    /// Nodes that transfer, this one included, and share a session's bandwidth.
    var transferring: Int {
        state.withLock { state in
            max(1, state.records.count { $0.isAlive && $0.profile.roles.contains(NodeRole.transfer.rawValue) })
        }
    }

    /// Whether others share the store, and each that transfers has said that it has no free slot.
    var areFull: Bool {
        state.withLock { state in
            let open = state.records.filter { $0.isAlive && !$0.isDraining && $0.profile.maximumTransfers > 0 }
            return state.records.count > 1
                && open.allSatisfy { $0.profile.transfersRunning >= $0.profile.maximumTransfers }
        }
    }

    /// Has `body` called when other nodes have committed something.
    package func onNews(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onNews = body } }

    func tellNews() { state.withLock { $0.onNews }() }

    /// How far transfers of other nodes are in a session that is streamed here, as they stored it last.
    func samples(of session: SessionID) -> [TaskID: LiveState.Sample] {
        state.withLock { $0.progress[session] ?? [:] }
    }

    /// Takes what is stored of other nodes' transfers.
    ///
    /// - Returns: Sessions of which there is news.
    func note(_ progress: [SessionID: [TaskID: LiveState.Sample]]) -> [SessionID] {
        state.withLock { state in
            defer { state.progress = progress }
            return progress.filter { state.progress[$0.key] != $0.value }.map(\.key)
        }
    }

    func drain() { state.withLock { $0.isDraining = true } }

    /// Takes what the store says of the nodes.
    func note(_ records: [NodeRecord], own: String) {
        state.withLock { state in
            state.records = records
            let living = records.filter(\.isAlive)
            state.isKeeper = (living.first { !$0.isDraining } ?? living.first)?.id == own
        }
    }
}
