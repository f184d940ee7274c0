package import Core
package import Store
import TransferEngine

/// What the scheduler decides from: what is under way, what holds the rest back, and when it has to look again.
///
/// No clock and no I/O. The scheduler's loop changes it, the writer's thread asks it while it reads the queue, and the
/// explanation of a waiting task reads it.
package struct Agenda: Sendable {
    /// What the disk takes.
    package enum Room {
        case anything
        /// The floor is free: a transfer may go on that needs no more.
        case oneTransfer
        case nothing
    }

    /// What of the queue is left to look at.
    enum Look {
        case nothing
        /// What the looks so far have not reached.
        case rest
        /// All of it, since something changed after the look at it began.
        case all
    }

    let maximumTransfers: Int
    let maximumTransfersPerHost: Int

    var look = Look.all
    /// How far the queue was looked at.
    var cursor = QueueCursor()
    var fairness = FairShare()
    /// The look that is being made.
    var round: Round?

    /// Transfers under way, by lane.
    var lanes: [Int64: FairShare.Lane] = [:]
    private var transfers = 0
    /// Exchanges that tell servers of cancelled uploads.
    var deletions: [ExchangeID: FairShare.Lane] = [:]
    /// Connections of downloads in segments beyond the one that each task has by its lane.
    var connections: [ExchangeID: FairShare.Lane] = [:]
    /// Where they may go; nil where no other node has the store.
    var places: ConnectionPlaces?

    /// What other nodes had in flight when the queue was looked at last.
    package var elsewhere = TransfersElsewhere()

    var pauses = OriginPauses()
    /// When origins may be asked again, so that the loop wakes for the tasks that wait for them.
    private var pauseEnds = PauseEnds()
    /// When a lane that waits for conditions may go on by itself.
    private var heldUntil: Timestamp?
    /// The task that runs alone, and the time from which another one may.
    var solo = SoloTurns()
    private(set) var isDraining = false
    /// Whether tasks are taken here at all, or by other nodes alone.
    private let takesTasks: Bool

    /// Who waits for a share of the slots, and what a look at the queue has found of it so far.
    var preemption: Preemption
    var found = Demands()
    /// How often a queue is looked at that nothing can be taken from.
    let searchInterval: Duration
    /// The queue is looked at to find who waits, whether or not anything may begin.
    var isSearching = false
    /// When the queue is to be looked at for that.
    var searchAt: Timestamp?
    /// When that was done last.
    var searchedAt: Timestamp?

    private var dueAt: Timestamp?
    /// A commit came since ``dueAt`` was read.
    private var dueTimeIsStale = true
    /// When ``dueAt`` was read (monotonic ms).
    private var dueTimeAskedAt: Int64 = 0
    /// Something became due, which the next commit moves into the queue.
    private var hasDue = false

    /// - Parameter slotPatience: How long an app waits for a slot before transfers of others make room for it.
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

    // MARK: What is under way

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

    /// Takes the place of one more connection of a download in segments. Tasks come first: while one could begin, or might,
    /// there is none.
    ///
    /// - Parameter count: How many more the download may have, this one included.
    mutating func begin(
        connection exchange: ExchangeID, _ lane: FairShare.Lane, wanting count: Int = 1, _ room: Room,
        at now: Timestamp
    ) -> Bool {
        guard look == .nothing, !isDraining, !solo.isTaken, freeSlots(room) > 0, leavesSlots(to: AppID(lane.app)),
            running(at: lane.host) < maximumTransfersPerHost, running(at: lane.host, of: lane.session) < lane.limit,
            pauses.until(lane.host, app: lane.app, at: now) == nil, places?.take(lane, wanting: count) ?? true
        else { return false }
        connections[exchange] = lane
        return true
    }

    /// Counts a connection where it goes instead of to its task's own URL.
    mutating func count(connection exchange: ExchangeID, _ lane: FairShare.Lane) { connections[exchange] = lane }

    /// Hands a connection's place on to the next of the same task, unless others may be waiting for one there.
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

    /// Transfers and connections that an origin has, of all or of one session.
    package func running(at host: String, of session: Int64? = nil) -> Int {
        (Array(lanes.values) + deletions.values + connections.values).reduce(0) { count, lane in
            lane.host == host && (session ?? lane.session) == lane.session ? count + lane.running : count
        }
    }

    /// Connections of a session's downloads besides those that lanes count.
    func connectionCount(at host: String, of session: Int64) -> Int {
        connections.values.count { $0.host == host && $0.session == session }
    }

    /// How many more transfers may begin. Without room for content, one at a time: it may need none, and a task that keeps
    /// bytes can make room for others only once it is known to wait itself.
    package func freeSlots(_ room: Room) -> Int {
        switch room {
        case .anything: maximumTransfers - transfers - deletions.count - connections.count
        case .oneTransfer: transfers == 0 ? 1 : 0
        case .nothing: 0
        }
    }

    /// Deletions count as transfers, and take no more than a quarter of the places, so that a silent server keeps no task
    /// waiting.
    func takesDeletion(_ room: Room) -> Bool {
        deletions.count < max(1, min(maximumTransfers / 4, maximumTransfersPerHost)) && freeSlots(room) > 0
            && !solo.isTaken && !isDraining
    }

    /// Nothing begins any more.
    mutating func drain() { isDraining = true }

    // MARK: What holds back

    /// Leaves an origin alone for as long as it asked.
    mutating func pause(_ origin: String, for wait: Duration, app: AppID, at now: Timestamp) {
        pauses.note(origin, app: app.rawValue, retryAfter: wait, at: now)
        pauseEnds.insert(now + wait)
        pauseEnds.insert(now + min(wait, OriginPauses.longestForOthers))
    }

    /// When an app may go to an origin (`scheme://host:port`) again; nil for at once.
    package func pauseEnd(of origin: String, app: AppID, at now: Timestamp) -> Timestamp? {
        pauses.until(origin, app: app.rawValue, at: now)
    }

    mutating func hold(until time: Timestamp) { heldUntil = min(heldUntil ?? time, time) }

    /// Until when nothing runs beside a task that has to run alone.
    package var soloEnd: Timestamp? { solo.isTaken ? solo.next : nil }

    /// Ends what is over, and has the queue looked at for it.
    ///
    /// - Returns: A task that has run alone for long enough.
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

    // MARK: When to look

    /// Has the whole queue looked at, once more where that is being done.
    mutating func lookAgain() {
        look = .all
        places?.askAgain()
    }

    /// Whether something may be taken from the queue.
    func wantsTasks(_ room: Room) -> Bool {
        takesTasks && look != .nothing && !isDraining && !solo.isTaken
            && (freeSlots(room) > 0 || isSearching && room == .anything)
    }

    /// Whether a commit is due: something to take, or a moment that has come.
    func hasWork(_ room: Room, at now: Timestamp) -> Bool { wantsTasks(room) || hasDue || isDue(at: now) }

    /// When something happens by itself.
    var next: Timestamp? { [dueAt, pauseEnds.next, heldUntil, soloEnd, searchAt].compactMap { $0 }.min() }

    private func isDue(at now: Timestamp) -> Bool { dueAt.map { $0 <= now } ?? false }

    /// A task becomes due at this moment at the latest.
    mutating func wake(at time: Timestamp) { dueAt = min(dueAt ?? time, time) }

    /// Whether a moment has come for which the store has to be asked. The next commit moves what is due into the queue.
    mutating func takeDue(at now: Timestamp) -> Bool {
        guard isDue(at: now) else { return false }
        (dueAt, dueTimeIsStale, hasDue) = (nil, true, true)
        lookAgain()
        return true
    }

    /// Whether the store has to be asked what is due next: when nothing is to be done, and now and then while much is, not
    /// with every commit while many follow each other.
    mutating func asksDueTime(isIdle: Bool, monotonic now: Int64) -> Bool {
        guard dueTimeIsStale, isIdle || now >= dueTimeAskedAt + 50 else { return false }
        (dueTimeIsStale, dueTimeAskedAt) = (false, now)
        return true
    }

    /// Something may have become due at another moment than was read.
    mutating func dueTimeMayHaveChanged() { dueTimeIsStale = true }

    /// Takes what the store answered.
    mutating func note(due time: Timestamp?) { dueAt = time }

    /// A commit moves what is due, and makes what was read of it stale.
    mutating func commitBegins() { (hasDue, dueTimeIsStale) = (false, true) }
}
