package import Core
import Store

/// The tasks that start in one round: a pass over a window of the queue, with the conditions at its start.
extension Agenda {
    struct Round: Sendable {
        fileprivate(set) var conditions: CurrentConditions.Snapshot
        let freeSlots: Int
        fileprivate let running: [String: Int]
        /// The fair shares before the round.
        fileprivate let fairness: FairShare
        /// The lanes from which the round chooses.
        fileprivate(set) var lanes: [Int64: QueuedLane] = [:]
        /// A task has to run alone, and others are in flight.
        fileprivate(set) var needsSolitude = false
        /// The task that the round claims has to run alone.
        fileprivate var isAlone = false
        /// The demand that the round's choice leaves.
        fileprivate var demands = Demands()
        /// Whether the queue was read to its end.
        fileprivate(set) var isLast = false

        fileprivate var now: Timestamp { conditions.now }
    }

    /// An app alone gets eight ninths of all slots, the next one eight ninths of the rest. With eight slots or fewer,
    /// one app may get all of them.
    static let greed = 8

    /// Whether the app may use the free slots.
    package func leavesSlots(to app: AppID) -> Bool {
        let running = (Array(lanes.values) + connections.values).reduce(0) {
            $1.app == app.rawValue ? $0 + $1.running : $0
        }
        return FairShare.mayTake(running, free: freeSlots(.anything), greed: Self.greed)
    }

    /// Begins a round, if anything may be claimed.
    ///
    /// - Returns: The position from which to read the queue; nil if nothing may be claimed.
    mutating func beginRound(_ conditions: CurrentConditions.Snapshot, _ room: Room) -> QueueCursor? {
        guard wantsTasks(room) else { return nil }
        if cursor.isAtStart { (look, found.waiting) = (.rest, [:]) }
        let lanes = Array(lanes.values) + deletions.values + connections.values
        round = Round(
            conditions: conditions, freeSlots: freeSlots(room),
            running: Dictionary(lanes.map { ($0.host, $0.running) }, uniquingKeysWith: +), fairness: fairness)
        return cursor
    }

    /// Notes the conditions that another node may have declared since the round began.
    mutating func declared(_ conditions: Conditions) { round?.conditions.conditions = conditions }

    /// How many transfers of an app an origin can get: none while the origin is full or paused.
    func room(at origin: String, for app: AppID) -> Int {
        guard let round, pauseEnd(of: origin, app: app, at: round.now) == nil else { return 0 }
        return max(0, maximumTransfersPerHost - (round.running[origin] ?? 0))
    }

    mutating func mayStart(_ lane: QueuedLane) -> Bool {
        guard let round, running(in: lane) < lane.limitPerHost else { return false }
        let verdict = round.conditions.verdict(lane.conditions, patience: lane.patience)
        if let until = verdict.until { hold(until: until) }
        return verdict == .go
    }

    /// Transfers of a lane, with the connections of its downloads in segments.
    private func running(in lane: QueuedLane) -> Int {
        (lanes[lane.id]?.running ?? 0) + connectionCount(at: lane.origin, of: lane.session.rawValue)
    }

    /// Chooses the tasks to start. A second call in a round discards the first choice, which was rolled back.
    mutating func pick(_ queue: Queue) -> Claim {
        guard var round else { return .tasks([]) }
        defer { self.round = round }
        elsewhere = queue.elsewhere
        fairness = round.fairness
        (round.lanes, round.needsSolitude, round.isAlone, round.demands) = ([:], false, false, Demands())
        if let (task, lane) = queue.suspect {
            if !solo.mayBegin(at: round.now) {
                if let next = solo.next { hold(until: next) }
            } else if lanes.isEmpty, deletions.isEmpty {
                (round.lanes, round.isAlone) = ([lane.id: lane], true)
                return .alone(task, lane)
            } else {
                round.needsSolitude = true
                return .tasks([])
            }
        }
        let chosen = Dictionary(queue.lanes.map { ($0.id, $0) }) { first, _ in first }
        round.lanes = chosen
        let table = queue.lanes.map { FairShare.Lane($0, running: running(in: $0)) }
        let chosenPlaces = Set(table.map { LanePlace($0) })
        let others =
            lanes.filter { chosen[$0.key] == nil }.map(\.value) + deletions.values
            + connections.values.filter { !chosenPlaces.contains(LanePlace($0)) }
        let grants = fairness.pick(
            table + others, freeSlots: round.freeSlots, hostLimit: maximumTransfersPerHost,
            elsewhere: queue.elsewhere.origins, greed: Self.greed)
        round.demands = Demands(
            table, grants, running: round.running, elsewhere: queue.elsewhere.origins,
            hostLimit: maximumTransfersPerHost)
        return .tasks(grants.filter { $0.lane < table.count }.map { (queue.lanes[$0.lane].id, $0.count) })
    }

    /// Ends a round whose choice is stored.
    ///
    /// - Parameter isWhole: Whether the queue was read to its end.
    /// - Returns: The round with its findings.
    mutating func endRound(at cursor: QueueCursor, isWhole: Bool, claimed: [TaskID]) -> Round? {
        guard var round else { return nil }
        round.isLast = isWhole
        self.round = nil
        found.merge(round.demands)
        self.cursor = cursor
        if look == .rest, isWhole, claimed.count < round.freeSlots { look = .nothing }
        if round.isAlone { for task in claimed { solo.begin(task, at: round.now) } }
        return round
    }
}

/// The host and the session of a lane's transfers.
private struct LanePlace: Hashable {
    let session: Int64
    let host: String

    init(_ lane: FairShare.Lane) { (session, host) = (lane.session, lane.host) }
}

extension FairShare.Lane {
    init(_ lane: QueuedLane, running: Int) {
        self.init(
            app: lane.app.rawValue, session: lane.session.rawValue, host: lane.origin, priority: lane.priority,
            ready: Int(clamping: lane.queued), running: running, limit: lane.limitPerHost,
            isBackground: lane.isBackground)
    }
}
