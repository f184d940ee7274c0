import Base
import Core
import Store

/// Chooses what starts in one round, by how things stood when it began.
struct Choice: Sendable {
    /// What the round found besides what it takes.
    struct Found: Sendable {
        var lanes: [Int64: QueuedLane] = [:]
        /// When something that is held back may go on by itself.
        var heldUntil: Timestamp?
        /// A task has to run alone, and others are under way.
        var needsSolitude = false
        /// What it takes has to run alone.
        var isAlone = false
    }

    let conditions: CurrentConditions.Snapshot
    let pauses: OriginPauses
    /// What is under way, by lane.
    let running: [Int64: FairShare.Lane]
    let freeSlots: Int
    let hostLimit: Int
    let solo: SoloTurns
    let fairness: Locked<FairShare>
    let now: Timestamp
    let found = Locked(Found())
    private let runningOfOrigins: [String: Int]

    init(
        conditions: CurrentConditions.Snapshot, pauses: OriginPauses, running: [Int64: FairShare.Lane], freeSlots: Int,
        hostLimit: Int, solo: SoloTurns, fairness: Locked<FairShare>, at now: Timestamp
    ) {
        self.conditions = conditions
        self.pauses = pauses
        self.running = running
        self.freeSlots = freeSlots
        self.hostLimit = hostLimit
        self.solo = solo
        self.fairness = fairness
        self.now = now
        runningOfOrigins = Dictionary(running.values.map { ($0.host, $0.running) }, uniquingKeysWith: +)
    }

    var sieve: QueueSieve { QueueSieve(room: room, mayStart: mayStart) }

    /// An origin takes nothing while it is full, or asked the app, or everybody, to wait.
    @Sendable private func room(_ origin: String, _ app: AppID) -> Int {
        if !pauses.isEmpty, pauses.until(Origin(lane: origin), app: app.rawValue, at: now) != nil { return 0 }
        return max(0, hostLimit - (runningOfOrigins[origin] ?? 0))
    }

    @Sendable private func mayStart(_ lane: QueuedLane) -> Bool {
        guard running[lane.id]?.running ?? 0 < lane.limitPerHost else { return false }
        let verdict = conditions.verdict(lane.conditions, patience: lane.patience)
        if let until = verdict.until { hold(until: until) }
        return verdict == .go
    }

    private func hold(until time: Timestamp) { found.withLock { $0.heldUntil = min($0.heldUntil ?? time, time) } }

    func pick(_ queue: Queue) -> Claim {
        if let suspect = queue.suspect {
            if !solo.mayBegin(at: now) {
                if let next = solo.next { hold(until: next) }
            } else if running.isEmpty {
                found.withLock {
                    $0.lanes = [suspect.lane.id: suspect.lane]
                    $0.isAlone = true
                }
                return .alone(suspect.task, suspect.lane)
            } else {
                found.withLock { $0.needsSolitude = true }
                return .tasks([])
            }
        }
        let lanes = queue.lanes
        found.withLock { $0.lanes = Dictionary(lanes.map { ($0.id, $0) }) { first, _ in first } }
        let table = lanes.map { FairShare.Lane($0, running: running[$0.id]?.running ?? 0) }
        let ids = Set(lanes.map(\.id))
        let others = running.filter { !ids.contains($0.key) }.map(\.value)
        let grants = fairness.withLock { $0.pick(table + others, freeSlots: freeSlots, hostLimit: hostLimit) }
        return .tasks(grants.filter { $0.lane < lanes.count }.map { (lanes[$0.lane].id, $0.count) })
    }
}

extension Origin {
    /// The origin that a lane's text names: `scheme://host:port`.
    init(lane text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: true)
        let scheme = parts.first.map { String($0.dropLast()) } ?? ""
        let authority = parts.last.map(String.init) ?? ""
        let colon = authority.lastIndex(of: ":") ?? authority.endIndex
        // Brackets belong to the text, not to the address.
        let host = authority[..<colon].filter { $0 != "[" && $0 != "]" }
        self.init(scheme: scheme, host: String(host), port: Int(authority[colon...].dropFirst()))
    }
}

extension FairShare.Lane {
    init(_ lane: QueuedLane, running: Int) {
        self.init(
            app: lane.app.rawValue, session: lane.session.rawValue, host: lane.origin, priority: lane.priority,
            ready: Int(clamping: lane.queued), running: running, limit: lane.limitPerHost,
            isBackground: lane.isBackground)
    }
}
