package import Core
package import Store
import TransferEngine

/// The state from which the scheduler decides: transfers in flight, limits and pauses, and the time of the next pass.
///
/// It has no clock and no I/O. The scheduler's loop changes it, the writer's thread queries it while it reads the
/// queue, and the explanation of a waiting task reads it.
package struct Agenda: Sendable {
    /// The free disk space, as far as it limits new transfers.
    package enum Room {
        case anything
        /// The floor is free: a transfer that needs no more may continue.
        case oneTransfer
        case nothing
    }

    /// The part of the queue that is still to be read.
    enum Look {
        case nothing
        /// The part that the passes so far have not reached.
        case rest
        /// All of the queue, because something changed after its pass began.
        case all
    }

    let maximumTransfers: Int
    let maximumTransfersPerHost: Int

    var look = Look.all
    /// The position up to which the queue was read.
    var cursor = QueueCursor()
    var fairness = FairShare()
    /// The round in progress.
    var round: Round?

    /// Transfers in flight, by lane.
    var lanes: [Int64: FairShare.Lane] = [:]
    private var transfers = 0
    /// Exchanges that delete cancelled uploads.
    var deletions: [ExchangeID: FairShare.Lane] = [:]
    /// Connections of downloads in segments beyond the one that each task has through its lane.
    var connections: [ExchangeID: FairShare.Lane] = [:]
    /// The slots of ``connections``; nil if no other node shares the store.
    var places: ConnectionPlaces?

    /// Transfers of other nodes in flight when the queue was last read.
    package var elsewhere = TransfersElsewhere()

    var pauses = OriginPauses()
    /// The ends of origin pauses, at which the loop wakes for the waiting tasks.
    private var pauseEnds = PauseEnds()
    /// When a lane that waits for conditions may start without a change of them.
    private var heldUntil: Timestamp?
    /// The task that runs alone, and the time from which others may run.
    var solo = SoloTurns()
    private(set) var isDraining = false
    /// Whether this node transfers, or leaves that to others.
    private let takesTasks: Bool

    /// The apps that wait for their share of the slots, and the findings of the current pass about them.
    var preemption: Preemption
    var found = Demands()
    /// Interval of passes over a queue from which nothing can be claimed.
    let searchInterval: Duration
    /// The queue is read to find waiting apps, whether or not a task may start.
    var isSearching = false
    /// When the queue is to be read for waiting apps.
    var searchAt: Timestamp?
    /// When the queue was last read for waiting apps.
    var searchedAt: Timestamp?

    private var dueAt: Timestamp?
    /// A commit was made since ``dueAt`` was read.
    private var dueTimeIsStale = true
    /// When ``dueAt`` was read (monotonic ms).
    private var dueTimeAskedAt: Int64 = 0
    /// A task is due, which the next commit moves into the queue.
    private var hasDue = false

    /// - Parameter slotPatience: How long an app waits for a slot before transfers of others are interrupted for it.
    init(
        maximumTransfers: Int, maximumTransfersPerHost: Int, takesTasks: Bool = true, isShared: Bool = false,
        slotPatience: Duration = .seconds(10)
    ) {
        places = isShared ? ConnectionPlaces() : nil
        self.takesTasks = takesTasks
        preemption = Preemption(patience: slotPatience)
        searchInterval = slotPatience / 2
        self.maximumTransfers = maximumTransfers
        self.maximumTransfersPerHost = maximumTransfersPerHost
    }

    // MARK: Transfers in flight

    mutating func began(in lane: QueuedLane) {
        lanes[lane.id, default: FairShare.Lane(lane, running: 0)].running += 1
        transfers += 1
    }

    mutating func ended(_ task: TaskID, in lane: Int64, at now: Timestamp) {
        lanes[lane]?.running -= 1
        if lanes[lane]?.running == 0 { lanes[lane] = nil }
        transfers -= 1
        solo.ended(task, at: now)
        lookAgain()
    }

    mutating func began(deletion exchange: ExchangeID, _ lane: FairShare.Lane) { deletions[exchange] = lane }

    mutating func ended(deletion exchange: ExchangeID) {
        if deletions.removeValue(forKey: exchange) != nil { lookAgain() }
    }

    /// Claims a slot for one more connection of a download in segments. Tasks come first: while one could start, or
    /// might, there is no slot for a connection.
    ///
    /// - Parameter count: How many more connections the download may have, including this one.
    mutating func begin(
        connection exchange: ExchangeID, _ lane: FairShare.Lane, wanting count: Int = 1, _ room: Room,
        at now: Timestamp
    ) -> Bool {
        guard look == .nothing, !isDraining, !solo.isTaken, hasSlot(for: lane, room),
            pauses.until(lane.host, app: lane.app, at: now) == nil, places?.take(lane, wanting: count) ?? true
        else { return false }
        connections[exchange] = lane
        return true
    }

    /// Counts a connection that uses its task's own slot at another origin, whatever the limits of that origin. It does so
    /// only once no slot there is free.
    mutating func beginInOwnSlot(
        connection exchange: ExchangeID, _ lane: FairShare.Lane, _ room: Room, at now: Timestamp
    ) -> Bool {
        guard !wantsTasks(room), !isDraining, pauses.until(lane.host, app: lane.app, at: now) == nil else {
            return false
        }
        // The store decides, once it was asked.
        if let places, hasSlot(for: lane, room), !places.isRefused(lane) { return false }
        connections[exchange] = lane
        return true
    }

    /// Whether this node may have one more connection of a lane.
    private func hasSlot(for lane: FairShare.Lane, _ room: Room) -> Bool {
        freeSlots(room) > 0 && leavesSlots(to: AppID(lane.app)) && running(at: lane.host) < maximumTransfersPerHost
            && running(at: lane.host, of: lane.session) < lane.limit
    }

    /// Counts a connection at its actual origin instead of at its task's own URL.
    mutating func count(connection exchange: ExchangeID, _ lane: FairShare.Lane) { connections[exchange] = lane }

    /// Passes a connection's slot to the next one of the same task, unless others may be waiting for a slot there.
    mutating func pass(connection exchange: ExchangeID, to next: ExchangeID, at now: Timestamp) -> Bool {
        guard let lane = connections[exchange], look == .nothing, !isDraining,
            running(at: lane.host) < maximumTransfersPerHost, running(at: lane.host, of: lane.session) < lane.limit,
            pauses.until(lane.host, app: lane.app, at: now) == nil
        else { return false }
        connections[exchange] = nil
        connections[next] = lane
        return true
    }

    mutating func ended(connection exchange: ExchangeID) {
        if connections.removeValue(forKey: exchange) != nil { lookAgain() }
    }

    /// Transfers and connections at an origin, of all sessions or of one.
    package func running(at host: String, of session: Int64? = nil) -> Int {
        (Array(lanes.values) + deletions.values + connections.values).reduce(0) { count, lane in
            lane.host == host && (session ?? lane.session) == lane.session ? count + lane.running : count
        }
    }

    /// Connections of a session's downloads beyond those that lanes count.
    func connectionCount(at host: String, of session: Int64) -> Int {
        connections.values.count { $0.host == host && $0.session == session }
    }

    /// How many more transfers may begin. Without free disk space, one at a time: it may need none, and a task that
    /// keeps bytes can make room for others only once it is known to wait itself.
    package func freeSlots(_ room: Room) -> Int {
        switch room {
        case .anything: maximumTransfers - transfers - deletions.count - connections.count
        case .oneTransfer: transfers == 0 ? 1 : 0
        case .nothing: 0
        }
    }

    /// Whether one more deletion may begin. Deletions count as transfers, and get at most a quarter of the slots, so
    /// that a silent server delays no task.
    func takesDeletion(_ room: Room) -> Bool {
        deletions.count < max(1, min(maximumTransfers / 4, maximumTransfersPerHost)) && freeSlots(room) > 0
            && !solo.isTaken && !isDraining
    }

    /// Stops claiming and starting work.
    mutating func drain() { isDraining = true }

    // MARK: Pauses

    /// - Returns: The pause that holds now; nil if it held before.
    @discardableResult
    mutating func take(_ pause: OriginPause, at now: Timestamp) -> OriginPause? {
        guard let longer = pauses.note(pause) else { return nil }
        for end in [longer.end, longer.endForOthers] where end > now { pauseEnds.insert(end) }
        return longer
    }

    /// When an app may go to an origin (`scheme://host:port`) again; nil for at once.
    package func pauseEnd(of origin: String, app: AppID, at now: Timestamp) -> Timestamp? {
        pauses.until(origin, app: app.rawValue, at: now)
    }

    mutating func hold(until time: Timestamp) { heldUntil = min(heldUntil ?? time, time) }

    /// The end of the period in which nothing runs beside a task that has to run alone.
    package var soloEnd: Timestamp? { solo.isTaken ? solo.next : nil }

    /// Ends pauses and holds that are over, and has the queue read for them.
    ///
    /// - Returns: A task that has run alone long enough.
    mutating func endWaits(at now: Timestamp) -> TaskID? {
        if let heldUntil, heldUntil <= now {
            lookAgain()
            self.heldUntil = nil
        }
        if pauseEnds.removePast(at: now) {
            lookAgain()
            pauses.prune(at: now)
        }
        search(at: now)
        let cleared = solo.endTrial(at: now)
        if cleared != nil { lookAgain() }
        return cleared
    }

    // MARK: Passes over the queue

    /// Has the whole queue read, once more if a pass is in progress.
    mutating func lookAgain() {
        look = .all
        places?.askAgain()
    }

    /// Whether tasks may be claimed from the queue.
    func wantsTasks(_ room: Room) -> Bool {
        takesTasks && look != .nothing && !isDraining && !solo.isTaken
            && (freeSlots(room) > 0 || isSearching && room == .anything)
    }

    /// Whether a commit is due: a task to claim, or a scheduled time that has passed.
    func hasWork(_ room: Room, at now: Timestamp) -> Bool { wantsTasks(room) || hasDue || isDue(at: now) }

    /// The time of the next scheduled change.
    var next: Timestamp? { [dueAt, pauseEnds.next, heldUntil, soloEnd, searchAt].compactMap { $0 }.min() }

    private func isDue(at now: Timestamp) -> Bool { dueAt.map { $0 <= now } ?? false }

    /// Notes that a task becomes due at this time at the latest.
    mutating func wake(at time: Timestamp) { dueAt = min(dueAt ?? time, time) }

    /// Whether a scheduled time has passed for which the store has to be queried. The next commit queues the due tasks.
    mutating func takeDue(at now: Timestamp) -> Bool {
        guard isDue(at: now) else { return false }
        (dueAt, dueTimeIsStale, hasDue) = (nil, true, true)
        lookAgain()
        return true
    }

    /// Whether the next due time has to be read: when the loop is idle, and periodically under load, rather than with
    /// each of many commits.
    mutating func asksDueTime(isIdle: Bool, monotonic now: Int64) -> Bool {
        guard dueTimeIsStale, isIdle || now >= dueTimeAskedAt + 50 else { return false }
        (dueTimeIsStale, dueTimeAskedAt) = (false, now)
        return true
    }

    /// Notes that the next due time may differ from the one that was read.
    mutating func dueTimeMayHaveChanged() { dueTimeIsStale = true }

    /// Notes the due time that was read from the store.
    mutating func note(due time: Timestamp?) { dueAt = time }

    /// A commit queues the due tasks, which makes the due time stale.
    mutating func commitBegins() { (hasDue, dueTimeIsStale) = (false, true) }
}
