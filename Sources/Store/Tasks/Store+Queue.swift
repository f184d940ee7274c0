package import Core
import SQL

/// Tasks of one session for one origin that wait for their turn.
package struct QueuedLane: Hashable, Sendable {
    package var id: Int64
    package var app: AppID
    package var session: SessionID
    /// The session's, which is another one where its configuration is.
    package var revision: Int64 = 0
    /// `scheme://host:port`.
    package var origin: String
    package var queued: Int64
    /// The session's `httpMaximumConnectionsPerHost`.
    package var limitPerHost: Int
    /// The session's `networkServiceType` is `background`.
    package var isBackground: Bool
    package var conditions: LaneConditions
    /// How long the next task has waited, for lanes whose demands relax with it.
    package var patience: Conditions.Patience?
    /// The highest priority among the waiting tasks.
    package var priority: Double
    /// Its session is, and nothing of it may start.
    package var isForgotten = false
}

/// Which conditions the tasks of a lane wait for.
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

/// How far the queue has been looked at: in turns, of which each sees every app, or the next of many.
package struct QueueCursor: Hashable, Sendable {
    /// A place in an app's lanes, which are ordered by origin, and within one by when they were served last.
    struct Place: Hashable, Sendable {
        var origin = ""
        var servedAt = Int64.min
        var lane = Int64.min

        static func behind(_ origin: String) -> Place { Place(origin: origin, servedAt: .max, lane: .max) }
    }

    var lastApp: Int64 = 0
    /// Where the next look at an app begins, unless at its first lane.
    var places: [Int64: Place] = [:]
    /// Apps of which all has been seen since the start.
    var seen: Set<Int64> = []
    /// Whether this turn met an app of which it has not.
    var isPartial = false
    /// Apps that the last look found. The next one asks for their lanes before it knows which apps have any.
    fileprivate(set) var foundApps: [Int64] = []

    package init() {}

    /// Whether a turn begins.
    package var isAtStart: Bool { lastApp == 0 && places.isEmpty && seen.isEmpty && !isPartial }

    fileprivate mutating func begin() {
        let apps = foundApps
        self = QueueCursor()
        foundApps = apps
    }
}

/// What of the queue may start now, asked while it is read.
package struct QueueSieve: Sendable {
    /// Told first, where other nodes may have declared conditions: what holds as of this commit.
    package var declared: @Sendable (DeclaredConditions) -> Void
    /// How many transfers an origin takes from an app now. Lanes of one that takes none are not read.
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

/// A sieve that takes off what other nodes have under way: limits for a host hold over all of them.
private struct SharedSieve {
    let sieve: QueueSieve
    let elsewhere: TransfersElsewhere

    func room(_ lane: QueuedLane) -> Int { sieve.room(lane.origin, lane.app) - elsewhere.running(at: lane.origin) }

    /// What may start of a lane, nil where nothing may.
    func lane(_ lane: QueuedLane) -> QueuedLane? {
        var lane = lane
        lane.limitPerHost -= elsewhere.running(at: lane.origin, of: lane.session)
        return sieve.mayStart(lane) ? lane : nil
    }
}

/// What one round of the scheduler chooses from.
package struct Queue: Sendable {
    /// What other nodes have under way of a lane is taken off its limit.
    package var lanes: [QueuedLane] = []
    package var elsewhere = TransfersElsewhere()
    /// A task that may only run alone, the first of those that may start.
    package var suspect: (task: TaskID, lane: QueuedLane)?
}

/// What one round of the scheduler takes.
package enum Claim: Sendable {
    case tasks([(lane: Int64, count: Int)])
    case alone(TaskID, QueuedLane)
}

extension Store {
    /// Lanes looked at in one round of the scheduler: a bounded window of the queue, however long it is.
    package static let laneWindow = 512
    /// Apps among which the window is shared alike.
    static let appWindow = 128
    static let suspectWindow = 64

    /// What one look at the queue asks for at once.
    struct AskedQueue {
        fileprivate var conditions: Asked<DeclaredConditions>?
        fileprivate var elsewhere: TransfersElsewhere.Question?
        fileprivate var suspects: Asked<Suspect>
        fileprivate var apps: Asked<Int64>
        /// Of the apps that were found before.
        fileprivate var windows: [LaneWindow]
        fileprivate var lanes: Asked<PlacedLane>
    }

    /// Asks for the next window of the queue.
    func askQueue(after cursor: QueueCursor, _ db: Connection) throws -> AskedQueue {
        let windows = windows(of: cursor.foundApps.filter { $0 > cursor.lastApp }, after: cursor)
        return AskedQueue(
            conditions: node == nil ? nil : try askConditions(db),
            elsewhere: try askTransfersElsewhere(db), suspects: try askSuspects(db),
            apps: try askQueuedApps(after: cursor.lastApp, db), windows: windows, lanes: try askLanes(in: windows, db))
    }

    /// The next window of the queue, as it was when it was asked for, and whether all of it has been seen by then.
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
            let place = try sift(rows, of: window, atMost: share, through: sieve, db, into: &queue.lanes)
            cursor.places[app] = place
            if place == nil { cursor.seen.insert(app) }
            if !cursor.seen.contains(app) { cursor.isPartial = true }
        }
        let isWhole = apps.count < Self.appWindow && !cursor.isPartial
        if isWhole { cursor.begin() }
        cursor.lastApp = apps.count < Self.appWindow ? 0 : apps.last ?? 0
        if cursor.lastApp == 0 { cursor.isPartial = false }
        return (queue, isWhole)
    }

    /// Apps with something queued, each found by one look into the index.
    private func askQueuedApps(after last: Int64, _ db: Connection) throws -> Asked<Int64> {
        try db.ask(
            """
            WITH RECURSIVE queued (app) AS (SELECT (SELECT min(app) FROM lane WHERE queued > 0 AND app > ?1) UNION ALL \
            SELECT (SELECT min(app) FROM lane WHERE queued > 0 AND app > queued.app) FROM queued \
            WHERE queued.app IS NOT NULL) SELECT app FROM queued WHERE app IS NOT NULL LIMIT ?2
            """, [[last, Self.appWindow]]
        ) { $0.integer(0) }
    }

    /// Lanes that are read of an app before it is known whether their origin takes any; four times as many then.
    private static let lanesAtFirst = 16

    /// An app's next lanes, from a place on.
    fileprivate struct LaneWindow {
        var app: Int64
        var place: QueueCursor.Place
        var limit: Int
    }

    fileprivate typealias PlacedLane = (lane: QueuedLane, servedAt: Int64)
    fileprivate typealias Suspect = (task: TaskID, lane: QueuedLane)

    /// How many lanes of the window each of so many apps gets.
    private func share(of apps: Int) -> Int { max(1, Self.laneWindow / max(1, apps)) }

    private func windows(of apps: [Int64], after cursor: QueueCursor) -> [LaneWindow] {
        let limit = min(share(of: apps.count), Self.lanesAtFirst)
        return apps.map { LaneWindow(app: $0, place: cursor.places[$0] ?? QueueCursor.Place(), limit: limit) }
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
                    window.app, window.place.origin, window.place.servedAt, window.place.lane, window.limit,
                    LaneConditions.discretionary.rawValue,
                ]
            }
        ) { (Self.queuedLane($0), $0.integer("served_at")) }
    }

    /// Takes the lanes that may start, and passes over origins that take nothing, for which it reads on.
    ///
    /// - Returns: Where to go on, nil behind the last one.
    private func sift(
        _ rows: [PlacedLane], of window: LaneWindow, atMost count: Int, through sieve: SharedSieve,
        _ db: Connection, into lanes: inout [QueuedLane]
    ) throws -> QueueCursor.Place? {
        var (rows, window, left) = (rows, window, count)
        var (origin, room) = (String?.none, 0)
        while true {
            var isClosed = false
            for (lane, servedAt) in rows {
                left -= 1
                if lane.origin != origin { (origin, room) = (lane.origin, sieve.room(lane)) }
                isClosed = room <= 0
                if isClosed {
                    window.place = .behind(lane.origin)
                    break
                }
                window.place = QueueCursor.Place(origin: lane.origin, servedAt: servedAt, lane: lane.id)
                if let lane = sieve.lane(lane) {
                    lanes.append(lane)
                    room -= 1
                }
            }
            if !isClosed, rows.count < window.limit { return nil }
            guard left > 0 else { return window.place }
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

    /// When a discretionary task's resource timeout began, and how long it is.
    private static func patience(_ deadline: Int64?, _ timeout: Int64?) -> Conditions.Patience? {
        guard let deadline, let timeout else { return nil }
        return Conditions.Patience(
            began: Timestamp(milliseconds: deadline - timeout), resourceTimeout: .milliseconds(timeout))
    }
}
