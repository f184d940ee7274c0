import Core

/// The apps that wait for a slot, and the transfers that are interrupted for them.
extension Agenda {
    /// The findings of passes over the queue since transfers were last chosen to be interrupted.
    struct Demands: Sendable {
        /// Apps with tasks that wait only for a slot.
        var waiting: [Int64: Preemption.Demand] = [:]
        /// Apps that got a slot.
        var served: Set<Int64> = []
    }

    /// Has the queue read if an app may have waited too long, and periodically while no slot is free.
    mutating func search(at now: Timestamp) {
        if searchAt == nil, !isSearching, look != .nothing, freeSlots(.anything) <= 0 {
            searchAt = searchedAt.map { max(now, $0 + searchInterval) } ?? now
        }
        guard let due = searchAt, due <= now else { return }
        (searchAt, isSearching) = (nil, true)
        lookAgain()
    }

    /// Chooses the transfers to interrupt, after a pass over the whole queue.
    mutating func victims(among candidates: @autoclosure () -> [Preemption.Candidate], at now: Timestamp) -> [Int64] {
        let held = (Array(lanes.values) + connections.values).reduce(into: [Int64: Int]()) { held, lane in
            held[lane.app, default: 0] += lane.running
        }
        let victims = preemption.choose(
            from: candidates(), waiting: found.waiting, served: found.served, held: held, slots: maximumTransfers,
            greed: Self.greed, at: now)
        found = Demands()
        (isSearching, searchedAt, searchAt) = (false, now, preemption.next)
        return victims
    }
}

extension Agenda.Demands {
    /// The demand that is left of a round's lanes after its grants.
    ///
    /// - Parameters:
    ///   - running: Transfers of this node, by host.
    ///   - elsewhere: Transfers of other nodes that count too, by host.
    init(
        _ lanes: [FairShare.Lane], _ grants: [FairShare.Grant], running: [String: Int], elsewhere: [String: Int],
        hostLimit: Int
    ) {
        let granted = Dictionary(uniqueKeysWithValues: grants.map { ($0.lane, $0.count) })
        var used = running.merging(elsewhere, uniquingKeysWith: +)
        for (index, count) in granted where index < lanes.count {
            used[lanes[index].host, default: 0] += count
            served.insert(lanes[index].app)
        }
        for (index, lane) in lanes.enumerated() {
            let count = granted[index] ?? 0
            let wanted = min(
                lane.ready - count, lane.limit - lane.running - count, hostLimit - (used[lane.host] ?? 0))
            guard wanted > 0 else { continue }
            add(Preemption.Demand(tasks: wanted, isBackground: lane.isBackground), of: lane.app)
        }
    }

    private mutating func add(_ demand: Preemption.Demand, of app: Int64) {
        let before = waiting[app] ?? Preemption.Demand(tasks: 0, isBackground: true)
        waiting[app] = Preemption.Demand(
            tasks: before.tasks + demand.tasks, isBackground: before.isBackground && demand.isBackground)
    }

    mutating func merge(_ other: Self) {
        for (app, demand) in other.waiting { add(demand, of: app) }
        served.formUnion(other.served)
    }
}
