import Base
import Core
import Store

/// This node's knowledge of the other nodes.
package final class Nodes: Sendable {
    private struct State {
        var records: [NodeRecord] = []
        var isDraining = false
        var keeper = Keeper()
        var onNews: @Sendable () -> Void = {}
        var progress: [SessionID: [TaskID: LiveState.Sample]] = [:]
    }

    private let state: Locked<State>
    private let isShared: Bool
    private let clock: Clock
    let takeOvers: Metrics.Counter

    init(isShared: Bool, clock: Clock, _ metrics: Metrics) {
        let state = Locked(State())
        self.state = state
        self.isShared = isShared
        self.clock = clock
        takeOvers = metrics.counter("urlsessiond_takeovers_total", "Dead nodes whose work this node took over.")
        metrics.gauge("urlsessiond_nodes", "Living nodes that share the store, this one included.") {
            Double(max(1, state.withLock { $0.records.count(where: \.isAlive) }))
        }
    }

    /// Whether this node is drained: it claims nothing. Requests are still served.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// Whether other nodes share the store.
    var hasOthers: Bool { state.withLock { $0.records.count > 1 } }

    /// Whether this node begins the housekeeping and the work on sets, as at most one of all nodes does.
    var isKeeper: Bool { !isShared || state.withLock { $0.keeper.holds(at: clock.monotonic()) } }

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

    /// The objects of an unfinished content, with those into which another node has copied its file.
    ///
    /// Only copies of the stored version by the node with the file count: others may be of a process that has lost its
    /// claim.
    func withCopy(_ task: TaskID, _ objects: ArrivingObjects) -> ArrivingObjects {
        guard let file = objects.file else { return objects }
        let copies = state.withLock { state in state.records.first { $0.id == file.node }?.profile.copies }
        let copy = copies?.first { $0.task == task.rawValue && $0.version == file.version }
        return copy.map(objects.copied) ?? objects
    }

    /// Versions of sets that readers had open at the living nodes, when these described themselves last.
    var openVersions: Set<SetVersionID> {
        state.withLock { state in
            Set(state.records.filter(\.isAlive).flatMap(\.profile.openVersions).map { SetVersionID($0) })
        }
    }

    func drain() { state.withLock { $0.isDraining = true } }

    /// Whether the keeper's work that this node has begun may continue.
    var remainsKeeper: Bool { !isShared || state.withLock { $0.keeper.isFirst } }

    /// Notes the nodes' rows.
    func note(_ records: [NodeRecord], own: String) {
        state.withLock { state in
            state.records = records
            let living = records.filter(\.isAlive)
            let isFirst = (living.first { !$0.isDraining } ?? living.first)?.id == own
            state.keeper.note(isFirst: isFirst, isAlone: records.count == 1, at: clock.monotonic())
        }
    }
}

/// The role of the node that is the first of all by name. Times are monotonic, in milliseconds.
struct Keeper {
    /// The previous keeper sees within this time that another node is the first, and ends its work.
    static let handOver: Int64 = 2000
    /// The time for which a node relies on the rows that it has read last.
    static let validity: Int64 = 5000

    /// The time since which this node is the first.
    private var since: Int64?
    private var notedAt: Int64 = 0

    /// Whether this node was the first when it read the rows last.
    var isFirst: Bool { since != nil }

    /// - Parameters:
    ///   - isFirst: Whether this node is the first according to the rows.
    ///   - isAlone: Whether there is no other row.
    mutating func note(isFirst: Bool, isAlone: Bool, at now: Int64) {
        // Another node may have been the keeper while this one paused.
        let isNew = since == nil || now - notedAt > Self.validity
        if !isFirst { since = nil } else if isNew { since = isAlone ? now - Self.handOver : now }
        notedAt = now
    }

    /// Whether this node may begin work.
    func holds(at now: Int64) -> Bool {
        guard let since else { return false }
        return now - since >= Self.handOver && now - notedAt <= Self.validity
    }
}
