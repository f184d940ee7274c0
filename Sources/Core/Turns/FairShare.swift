/// Chooses the transfers that start in free slots: rounds over apps, then over their sessions, then over hosts.
///
/// The turn goes to the candidate with the fewest running transfers for its weight, then to the one served longest ago,
/// so that even a single slot is shared. A session of service type `background` weighs a quarter. Within a session the
/// higher priority is first. Each pick is deterministic: equal input and history, equal output.
package struct FairShare: Sendable {
    /// Tasks of one session for one host.
    package struct Lane: Hashable, Sendable {
        package var app: Int64
        package var session: Int64
        package var host: String
        /// The priority of the task that would start first.
        package var priority: Double
        /// The number of tasks that could start now.
        package var ready: Int
        /// The number of running tasks of the lane.
        package var running: Int
        /// The maximum of concurrent transfers of the lane (`httpMaximumConnectionsPerHost`).
        package var limit: Int
        /// Whether the session's service type is `background`.
        package var isBackground: Bool

        package init(
            app: Int64, session: Int64, host: String, priority: Double, ready: Int, running: Int, limit: Int,
            isBackground: Bool = false
        ) {
            self.app = app
            self.session = session
            self.host = host
            self.priority = priority
            self.ready = ready
            self.running = running
            self.limit = limit
            self.isBackground = isBackground
        }
    }

    /// The number of tasks of a lane that start.
    package struct Grant: Hashable, Sendable {
        /// Index into the lanes given.
        package var lane: Int
        package var count: Int
    }

    private var turn: UInt64 = 0
    private var servedApps: [Int64: UInt64] = [:]
    private var servedSessions: [Int64: UInt64] = [:]
    /// The maximum number of remembered apps and sessions; those served longest ago are removed first.
    private static let memory = 16_384

    package init() {}

    /// Distributes the free slots. Costs O((lanes + slots) · log lanes).
    ///
    /// - Parameters:
    ///   - lanes: Every lane with ready or running tasks.
    ///   - freeSlots: The number of transfers that may start in the whole service.
    ///   - hostLimit: The maximum of transfers to one host in the whole service, including running ones.
    ///   - elsewhere: Further transfers to hosts that count.
    ///   - greed: See ``mayTake(_:free:greed:)``.
    /// - Returns: Grants in the order of their first start.
    package mutating func pick(
        _ lanes: [Lane], freeSlots: Int, hostLimit: Int, elsewhere: [String: Int] = [:], greed: Int = .max
    ) -> [Grant] {
        var table = Table(
            lanes, hostLimit: hostLimit, elsewhere: elsewhere, servedApps: servedApps, servedSessions: servedSessions)
        var counts: [Int: Int] = [:]
        var order: [Int] = []
        for taken in 0..<max(0, freeSlots) {
            let mayTake = { (running: Int) in Self.mayTake(running, free: freeSlots - taken, greed: greed) }
            guard let index = table.next(turn: turn, where: mayTake) else { break }
            turn += 1
            servedApps[lanes[index].app] = turn
            servedSessions[lanes[index].session] = turn
            if counts[index] == nil { order.append(index) }
            counts[index, default: 0] += 1
        }
        Self.forget(&servedApps)
        Self.forget(&servedSessions)
        return order.map { Grant(lane: $0, count: counts[$0] ?? 0) }
    }

    /// Whether an app that holds `running` slots may take another: while they are fewer than `greed` times the free
    /// ones. The rest is left for apps with few slots, so that endless transfers delay only their own app.
    package static func mayTake(_ running: Int, free: Int, greed: Int) -> Bool { running / greed < free }

    private static func forget(_ served: inout [Int64: UInt64]) {
        guard served.count > memory else { return }
        let newest = served.sorted { $0.value > $1.value }.prefix(memory / 2)
        served = Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) })
    }
}

extension FairShare {
    /// A position in a queue: load for its weight, then the time of the last turn, then its number.
    private struct Rank: Comparable {
        var load: Double
        var servedAt: UInt64
        var key: Int64

        static func < (left: Rank, right: Rank) -> Bool {
            (left.load, left.servedAt, left.key) < (right.load, right.servedAt, right.key)
        }
    }

    private struct LaneRank: Comparable {
        var priority: Double
        var running: Int
        var host: String
        var index: Int

        static func < (left: LaneRank, right: LaneRank) -> Bool {
            if left.priority != right.priority { return left.priority > right.priority }
            return (left.running, left.host, left.index) < (right.running, right.host, right.index)
        }
    }

    private struct SessionTurn {
        var isBackground: Bool
        var running = 0
        var servedAt: UInt64
        var lanes = Heap<LaneRank>()

        var weight: Double { isBackground ? 0.25 : 1 }
    }

    private struct AppTurn {
        var running = 0
        /// The number of sessions with ready tasks that are not `background`.
        var foreground = 0
        var servedAt: UInt64
        var sessions = Heap<Rank>()

        var weight: Double { foreground > 0 ? 1 : 0.25 }
    }

    /// The queues of one round: apps, their sessions, and their lanes.
    private struct Table {
        private let lanes: [Lane]
        private var ready: [Int]
        private var running: [Int]
        private var hostRoom: [String: Int] = [:]
        private var sessions: [Int64: SessionTurn] = [:]
        private var apps: [Int64: AppTurn] = [:]
        private var queue = Heap<Rank>()

        init(
            _ lanes: [Lane], hostLimit: Int, elsewhere: [String: Int], servedApps: [Int64: UInt64],
            servedSessions: [Int64: UInt64]
        ) {
            self.lanes = lanes
            hostRoom = elsewhere.mapValues { hostLimit - $0 }
            ready = lanes.map(\.ready)
            running = lanes.map(\.running)
            var appOf: [Int64: Int64] = [:]
            for (index, lane) in lanes.enumerated() {
                hostRoom[lane.host, default: hostLimit] -= lane.running
                apps[lane.app, default: AppTurn(servedAt: servedApps[lane.app] ?? 0)].running += lane.running
                sessions[
                    lane.session,
                    default: SessionTurn(isBackground: lane.isBackground, servedAt: servedSessions[lane.session] ?? 0)
                ].running += lane.running
                guard lane.ready > 0, lane.running < lane.limit else { continue }
                appOf[lane.session] = lane.app
                let rank = rank(ofLane: index)
                sessions[lane.session]?.lanes.insert(rank)
            }
            for (session, app) in appOf {
                guard let turn = sessions[session] else { continue }
                let rank = rank(of: session, turn)
                apps[app]?.sessions.insert(rank)
                if !turn.isBackground { apps[app]?.foreground += 1 }
            }
            for (app, turn) in apps where !turn.sessions.isEmpty { queue.insert(rank(of: app, turn)) }
        }

        /// The lane that starts a task next; `nil` if none can.
        ///
        /// - Parameter mayTake: Whether an app with that many transfers may have another. A refused app leaves the
        ///   queue, because the number of free slots only decreases in a round.
        mutating func next(turn: UInt64, where mayTake: (Int) -> Bool) -> Int? {
            while let rank = queue.popLeast() {
                // Removed while it changes, so that its heap is not copied.
                guard var app = apps.removeValue(forKey: rank.key), mayTake(app.running) else { continue }
                let index = nextLane(of: &app, turn: turn)
                if index != nil {
                    app.running += 1
                    app.servedAt = turn + 1
                }
                if !app.sessions.isEmpty { queue.insert(self.rank(of: rank.key, app)) }
                apps[rank.key] = app
                if let index { return index }
            }
            return nil
        }

        private mutating func nextLane(of app: inout AppTurn, turn: UInt64) -> Int? {
            while let rank = app.sessions.popLeast() {
                guard var session = sessions.removeValue(forKey: rank.key) else { continue }
                let index = nextLane(of: &session)
                if index != nil {
                    session.running += 1
                    session.servedAt = turn + 1
                }
                if session.lanes.isEmpty {
                    if !session.isBackground { app.foreground -= 1 }
                } else {
                    app.sessions.insert(self.rank(of: rank.key, session))
                }
                sessions[rank.key] = session
                if let index { return index }
            }
            return nil
        }

        private mutating func nextLane(of session: inout SessionTurn) -> Int? {
            while let rank = session.lanes.popLeast() {
                let lane = lanes[rank.index]
                // A full host stays full in this round: its lanes leave the queue.
                guard let room = hostRoom[lane.host], room > 0 else { continue }
                hostRoom[lane.host] = room - 1
                ready[rank.index] -= 1
                running[rank.index] += 1
                if ready[rank.index] > 0, running[rank.index] < lane.limit {
                    session.lanes.insert(self.rank(ofLane: rank.index))
                }
                return rank.index
            }
            return nil
        }

        private func rank(ofLane index: Int) -> LaneRank {
            LaneRank(priority: lanes[index].priority, running: running[index], host: lanes[index].host, index: index)
        }

        private func rank(of key: Int64, _ turn: SessionTurn) -> Rank {
            Rank(load: Double(turn.running + 1) / turn.weight, servedAt: turn.servedAt, key: key)
        }

        private func rank(of key: Int64, _ turn: AppTurn) -> Rank {
            Rank(load: Double(turn.running + 1) / turn.weight, servedAt: turn.servedAt, key: key)
        }
    }
}
