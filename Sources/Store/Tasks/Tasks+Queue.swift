package import Core
import SQL

/// The lane: queued tasks of one session for one origin.
package struct QueuedLane: Hashable, Sendable {
    package var id: Int64
    package var app: AppID
    package var session: SessionID
    /// The session's revision, which changes with its configuration.
    package var revision: Int64 = 0
    /// `scheme://host:port`.
    package var origin: String
    package var queued: Int64
    /// The session's `httpMaximumConnectionsPerHost`.
    package var limitPerHost: Int
    /// The session's `networkServiceType` is `background`.
    package var isBackground: Bool
    package var conditions: LaneConditions
    /// The time that the next task has waited, for lanes whose conditions relax with it.
    package var patience: Conditions.Patience?
    /// The highest priority among the queued tasks.
    package var priority: Double
    /// Whether the session is deleted, so that no task of the lane may start.
    package var isForgotten = false
}

/// The conditions that the tasks of a lane wait for.
package struct LaneConditions: OptionSet, Hashable, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let discretionary = LaneConditions(rawValue: 1)
    package static let noCellular = LaneConditions(rawValue: 2)
    package static let noExpensive = LaneConditions(rawValue: 4)
    package static let noConstrained = LaneConditions(rawValue: 8)

    package init(_ configuration: SessionConfiguration) {
        var conditions: LaneConditions = []
        if configuration.isDiscretionary { conditions.insert(.discretionary) }
        if !configuration.allowsCellularAccess { conditions.insert(.noCellular) }
        if !configuration.allowsExpensiveNetworkAccess { conditions.insert(.noExpensive) }
        if !configuration.allowsConstrainedNetworkAccess { conditions.insert(.noConstrained) }
        self = conditions
    }
}

/// The position of the scheduler in the queue. A round visits every app, or the next of many.
package struct QueueCursor: Hashable, Sendable {
    /// A position in an app's lanes, which are ordered by origin, then by the time of their last turn.
    struct Position: Hashable, Sendable {
        var origin = ""
        var servedAt = Int64.min
        var lane = Int64.min

        static func behind(_ origin: String) -> Position { Position(origin: origin, servedAt: .max, lane: .max) }
    }

    var lastApp: Int64 = 0
    /// The position at which the next visit of an app begins, if not at its first lane.
    var positions: [Int64: Position] = [:]
    /// Apps whose lanes have all been visited since the start of the round.
    var seen: Set<Int64> = []
    /// Whether this round left lanes of an app unvisited.
    var isPartial = false
    /// Apps found by the last visit. The next one queries their lanes before it knows which apps have queued tasks.
    fileprivate(set) var foundApps: [Int64] = []

    package init() {}

    /// Whether a round begins here.
    package var isAtStart: Bool { lastApp == 0 && positions.isEmpty && seen.isEmpty && !isPartial }

    fileprivate mutating func begin() {
        let apps = foundApps
        self = QueueCursor()
        foundApps = apps
    }
}

/// Decides what may start now, while the queue is read.
package struct QueueSieve: Sendable {
    /// Called first, if other nodes may declare conditions, with the conditions as of this commit.
    package var declared: @Sendable (DeclaredConditions) -> Void
    /// The number of transfers that an origin may start for an app now. Lanes of a full origin are not read.
    package var room: @Sendable (_ origin: String, _ app: AppID) -> Int
    package var mayStart: @Sendable (QueuedLane) -> Bool

    package init(
        declared: @escaping @Sendable (DeclaredConditions) -> Void = { _ in },
        room: @escaping @Sendable (_ origin: String, _ app: AppID) -> Int,
        mayStart: @escaping @Sendable (QueuedLane) -> Bool
    ) {
        self.declared = declared
        self.room = room
        self.mayStart = mayStart
    }
}

/// A sieve that subtracts the transfers in flight at other nodes: limits for a host apply to all nodes together.
private struct SharedSieve {
    let sieve: QueueSieve
    let elsewhere: TransfersElsewhere

    func room(_ lane: QueuedLane) -> Int { sieve.room(lane.origin, lane.app) - elsewhere.running(at: lane.origin) }

    /// The lane with its remaining limit; `nil` if none of its tasks may start.
    func lane(_ lane: QueuedLane) -> QueuedLane? {
        var lane = lane
        lane.limitPerHost -= elsewhere.running(at: lane.origin, of: lane.session)
        return sieve.mayStart(lane) ? lane : nil
    }
}

/// The candidates of one round of the scheduler.
package struct Queue: Sendable {
    /// The lanes, each with its limit reduced by the transfers in flight at other nodes.
    package var lanes: [QueuedLane] = []
    package var elsewhere = TransfersElsewhere()
    /// The first task that may start but must run alone.
    package var suspect: (task: TaskID, lane: QueuedLane)?
}

/// The decision of one round of the scheduler.
package enum Claim: Sendable {
    case tasks([(lane: Int64, count: Int)])
    case alone(TaskID, QueuedLane)
}

extension Store.Tasks {
    /// The maximum number of lanes read in one round of the scheduler, however long the queue is.
    package static let laneWindow = 512
    /// The maximum number of apps that share the window.
    static let appWindow = 128
    static let suspectWindow = 64

    /// The queries of one round, sent together.
    struct AskedQueue {
        fileprivate var conditions: Asked<DeclaredConditions>?
        fileprivate var elsewhere: TransfersElsewhere.Question?
        fileprivate var suspects: Asked<Suspect>
        fileprivate var apps: Asked<Int64>
        /// The windows of the apps that the last visit found.
        fileprivate var windows: [LaneWindow]
        fileprivate var lanes: Asked<PlacedLane>
    }

    /// Sends the queries for the next window of the queue.
    func askQueue(after cursor: QueueCursor, _ db: Connection) throws -> AskedQueue {
        let windows = windows(of: cursor.foundApps.filter { $0 > cursor.lastApp }, after: cursor)
        return AskedQueue(
            conditions: node == nil ? nil : try store.apps.askConditions(db),
            elsewhere: try askTransfersElsewhere(db), suspects: try askSuspects(db),
            apps: try askQueuedApps(after: cursor.lastApp, db), windows: windows, lanes: try askLanes(in: windows, db))
    }

    /// The next window of the queue as of its query, and whether the round is complete with it.
    func queue(
        _ asked: AskedQueue, after cursor: inout QueueCursor, through sieve: QueueSieve, _ db: Connection
    ) throws -> (queue: Queue, isWhole: Bool) {
        var queue = Queue()
        if let declared = try asked.conditions?.get()[0].first { sieve.declared(declared) }
        let elsewhere = try TransfersElsewhere(asked.elsewhere)
        queue.elsewhere = elsewhere
        let sieve = SharedSieve(sieve: sieve, elsewhere: elsewhere)
        queue.suspect = try asked.suspects.get()[0].first { task, lane in
            sieve.room(lane) > 0 && sieve.lane(lane) != nil
        }
        let apps = try asked.apps.get()[0]
        let share = share(of: apps.count)
        let newWindows = windows(of: apps.filter { !cursor.foundApps.contains($0) }, after: cursor)
        let new = zip(newWindows, try askLanes(in: newWindows, db).get())
        let known = zip(asked.windows, try asked.lanes.get()).filter { apps.contains($0.0.app) }
        cursor.foundApps = apps
        for (window, rows) in (known + new).sorted(by: { $0.0.app < $1.0.app }) {
            let app = window.app
            let position = try sift(rows, of: window, atMost: share, through: sieve, db, into: &queue.lanes)
            cursor.positions[app] = position
            if position == nil { cursor.seen.insert(app) }
            if !cursor.seen.contains(app) { cursor.isPartial = true }
        }
        let isWhole = apps.count < Self.appWindow && !cursor.isPartial
        if isWhole { cursor.begin() }
        cursor.lastApp = apps.count < Self.appWindow ? 0 : apps.last ?? 0
        if cursor.lastApp == 0 { cursor.isPartial = false }
        return (queue, isWhole)
    }

    /// Queries the apps with queued tasks. Each costs one index look-up.
    private func askQueuedApps(after last: Int64, _ db: Connection) throws -> Asked<Int64> {
        try db.ask(
            """
            WITH RECURSIVE queued (app) AS (SELECT (SELECT min(app) FROM lane WHERE queued > 0 AND app > ?1) UNION ALL \
            SELECT (SELECT min(app) FROM lane WHERE queued > 0 AND app > queued.app) FROM queued \
            WHERE queued.app IS NOT NULL) SELECT app FROM queued WHERE app IS NOT NULL LIMIT ?2
            """, [[last, Self.appWindow]]
        ) { $0.integer(0) }
    }

    /// The lanes read of an app before the limits of their origins are known; the next query reads four times as many.
    private static let lanesAtFirst = 16

    /// The next lanes of an app, from a position.
    fileprivate struct LaneWindow {
        var app: Int64
        var position: QueueCursor.Position
        var limit: Int
    }

    fileprivate typealias PlacedLane = (lane: QueuedLane, servedAt: Int64)
    fileprivate typealias Suspect = (task: TaskID, lane: QueuedLane)

    /// The number of lanes that each of `apps` apps gets of the window.
    private func share(of apps: Int) -> Int { max(1, Self.laneWindow / max(1, apps)) }

    private func windows(of apps: [Int64], after cursor: QueueCursor) -> [LaneWindow] {
        let limit = min(share(of: apps.count), Self.lanesAtFirst)
        return apps.map { LaneWindow(app: $0, position: cursor.positions[$0] ?? QueueCursor.Position(), limit: limit) }
    }

    private func askLanes(in windows: [LaneWindow], _ db: Connection) throws -> Asked<PlacedLane> {
        try db.ask(
            """
            SELECT l.id, l.app, l.session, l.origin, l.queued, l.limit_per_host, l.background, l.conditions, \
            (SELECT priority FROM live WHERE lane = l.id AND stage = 'queued' \
            ORDER BY priority DESC, number LIMIT 1) AS priority, \
            CASE WHEN l.conditions & ?6 <> 0 THEN (SELECT resource_deadline FROM live WHERE lane = l.id AND stage = 'queued' \
            ORDER BY priority DESC, number LIMIT 1) END AS resource_deadline, \
            CASE WHEN l.conditions & ?6 <> 0 THEN (SELECT resource_timeout FROM session WHERE id = l.session) \
            END AS resource_timeout, l.served_at, (SELECT revision FROM session WHERE id = l.session) AS revision, \
            NOT EXISTS (SELECT 1 FROM session s JOIN app a ON a.id = s.app WHERE s.id = l.session AND s.forgotten = 0) \
            AS forgotten FROM lane l WHERE l.queued > 0 AND l.app = ?1 \
            AND (l.origin, l.served_at, l.id) > (?2, ?3, ?4) ORDER BY l.origin, l.served_at, l.id LIMIT ?5
            """,
            windows.map { window in
                [
                    window.app, window.position.origin, window.position.servedAt, window.position.lane, window.limit,
                    LaneConditions.discretionary.rawValue,
                ]
            }
        ) { (Self.queuedLane($0), $0.integer("served_at")) }
    }

    /// Collects the lanes that may start. Skips full origins, and reads further lanes instead.
    ///
    /// - Returns: The position for the next visit, `nil` after the last lane.
    private func sift(
        _ rows: [PlacedLane], of window: LaneWindow, atMost count: Int, through sieve: SharedSieve,
        _ db: Connection, into lanes: inout [QueuedLane]
    ) throws -> QueueCursor.Position? {
        var (rows, window, left) = (rows, window, count)
        var (origin, room) = (String?.none, 0)
        while true {
            var isClosed = false
            for (lane, servedAt) in rows {
                left -= 1
                if lane.origin != origin { (origin, room) = (lane.origin, sieve.room(lane)) }
                isClosed = room <= 0
                if isClosed {
                    window.position = .behind(lane.origin)
                    break
                }
                window.position = QueueCursor.Position(origin: lane.origin, servedAt: servedAt, lane: lane.id)
                if let lane = sieve.lane(lane) {
                    lanes.append(lane)
                    room -= 1
                }
            }
            if !isClosed, rows.count < window.limit { return nil }
            guard left > 0 else { return window.position }
            window.limit = min(left, isClosed ? Self.lanesAtFirst : window.limit * 4)
            rows = try askLanes(in: [window], db).get()[0]
        }
    }

    private func askSuspects(_ db: Connection) throws -> Asked<Suspect> {
        try db.ask(
            """
            SELECT l.id, l.app, l.session, l.origin, 1 AS queued, l.limit_per_host, l.background, l.conditions, \
            s.priority, CASE WHEN l.conditions & ?2 <> 0 THEN s.resource_deadline END AS resource_deadline, \
            CASE WHEN l.conditions & ?2 <> 0 THEN (SELECT resource_timeout FROM session WHERE id = l.session) \
            END AS resource_timeout, s.task, (SELECT revision FROM session WHERE id = l.session) AS revision, \
            0 AS forgotten \
            FROM live s JOIN lane l ON l.id = s.lane WHERE s.stage = 'quarantined' AND (s.node IS NULL OR s.node = ?3) \
            ORDER BY s.task LIMIT ?1
            """, [[Self.suspectWindow, LaneConditions.discretionary.rawValue, node]]
        ) { (TaskID($0.integer("task")), Self.queuedLane($0)) }
    }

    private static func queuedLane(_ row: Row) -> QueuedLane {
        QueuedLane(
            id: row.integer("id"), app: AppID(row.integer("app")), session: SessionID(row.integer("session")),
            revision: row.integerOrNil("revision") ?? 0, origin: row.text("origin"), queued: row.integer("queued"),
            limitPerHost: row.int("limit_per_host"),
            isBackground: row.bool("background"), conditions: LaneConditions(rawValue: row.int("conditions")),
            patience: patience(row.integerOrNil("resource_deadline"), row.integerOrNil("resource_timeout")),
            priority: row.real("priority"), isForgotten: row.bool("forgotten"))
    }

    /// The start and length of a discretionary task's resource timeout.
    private static func patience(_ deadline: Int64?, _ timeout: Int64?) -> Conditions.Patience? {
        guard let deadline, let timeout else { return nil }
        return Conditions.Patience(
            began: Timestamp(milliseconds: deadline - timeout), resourceTimeout: .milliseconds(timeout))
    }
}
