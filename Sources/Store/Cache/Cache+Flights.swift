import Base
import Core
import Formats
import SQL

/// The flights that the last step of the janitor found without a leader, and where it continues.
struct StrayFlights {
    var seen: Set<Int64> = []
    var cursor: Int64 = 0
}

/// A transfer that other tasks of the app wait for.
struct Flight {
    var id: Int64
    /// Names the request that the tasks of the flight share.
    var selector: [UInt8]
    var leader: TaskID?
    var result: Int64?
    var isReusable = true
    /// Whether other tasks than the leader follow.
    var isFollowed = false

    init(id: Int64, selector: [UInt8], leader: TaskID) {
        self.id = id
        self.selector = selector
        self.leader = leader
    }

    fileprivate init(_ row: Row) {
        id = row.integer("id")
        selector = row.blob("selector")
        leader = row.integerOrNil("leader").map { TaskID($0) }
        result = row.integerOrNil("result")
        isReusable = row.bool("is_reusable")
    }

    static func ask(_ ids: [Int64], _ db: Connection) throws -> Asked<Flight> {
        try db.ask("SELECT id, selector, leader, result, is_reusable FROM flight WHERE id = ?1", ids.map { [$0] }) {
            Flight($0)
        }
    }

    /// Requests the flights that tasks lead or follow.
    static func ask(of tasks: [TaskID], _ db: Connection) throws -> Asked<Flight> {
        try db.ask(
            """
            SELECT f.id, f.selector, f.leader, f.result, f.is_reusable, CASE WHEN EXISTS (SELECT 1 FROM live WHERE flight = f.id \
            AND task <> coalesce(f.leader, 0)) THEN 1 ELSE 0 END AS is_followed \
            FROM live l JOIN flight f ON f.id = l.flight WHERE l.task = ?1
            """, tasks.map { [$0.rawValue] }
        ) {
            var flight = Flight($0)
            flight.isFollowed = $0.bool("is_followed")
            return flight
        }
    }

    /// Requests the flights that have a leader.
    ///
    /// - Parameter selectors: Apps, and the marks of requests.
    static func askLed(_ selectors: [[(any SQLBindable)?]], _ db: Connection) throws -> Asked<Flight> {
        try db.ask(
            """
            SELECT id, selector, leader, result, is_reusable FROM flight \
            WHERE app = ?1 AND selector = ?2 AND leader IS NOT NULL
            """, selectors
        ) { Flight($0) }
    }
}

/// Single flight: one task of an app transfers, and tasks that would send the same request wait for it.
///
/// The leader is chosen in the store's transaction, so one transfers whatever number of nodes share the store. A leader
/// that ends without an answer of the origin passes its bytes to a follower, which becomes the leader.
extension Store.Cache {
    private func flight(of live: LiveTask, _ transaction: Transaction) throws -> Flight? {
        guard live.flight != nil else { return nil }
        return try transaction.landings.flights.removeValue(forKey: live.id)
            ?? Flight.ask(of: [live.id], transaction.db).get()[0].first
    }

    /// The task that a follower waits for; `nil` if it is about to be released, because it may not share the response.
    func leader(of task: TaskID, _ db: Connection) throws -> WaitingReason.Leader? {
        try db.first(
            """
            SELECT t.id, t.number, s.identifier FROM live l JOIN flight f ON f.id = l.flight \
            JOIN task t ON t.id = f.leader JOIN session s ON s.id = t.session \
            WHERE l.task = ?1 AND (f.is_reusable = 1 OR l.is_strict = 0)
            """, task.rawValue
        ) {
            WaitingReason.Leader(
                task: TaskID($0.integer("id")), number: $0.integer("number"), session: $0.text("identifier"))
        }
    }

    // MARK: Ends

    /// Removes a task from its flight. A leader leaves what it brings for others, or passes its place on.
    ///
    /// - Parameters:
    ///   - landing: The response of the origin, if one ended the transfer.
    ///   - progress: The bytes that the next leader may continue with; `nil` if the task keeps them.
    ///   - isWriting: Whether the transfer is still to be stopped. Its last settlement passes the place on then.
    /// - Returns: Whether the bytes are another task's now, or will be.
    @discardableResult
    func leaveFlight(
        _ live: LiveTask, landing: Landing? = nil, passing progress: TaskProgress? = nil, isWriting: Bool = false,
        _ transaction: Transaction
    ) throws -> Bool {
        let db = transaction.db
        // The entry that a 304 confirmed may have gone since.
        let landing = try landing.flatMap { try store.files.isStored($0.content, transaction) ? $0 : nil }
        guard let flight = try flight(of: live, transaction) else {
            if let landing { try land(landing, in: nil, of: live, transaction) }
            return false
        }
        let leads = flight.leader == live.id
        if isWriting, leads, flight.isFollowed { return true }
        try db.execute("UPDATE live SET flight = NULL WHERE task = ?1", live.id.rawValue)
        if let landing {
            try land(landing, in: leads ? flight : nil, of: live, transaction)
        } else if leads {
            guard try handOver(flight, of: live.id, progress, transaction), var rest = progress else { return false }
            rest.hasPassedBytes = rest.adoptedFile == nil && rest.kept.parts == nil
            rest.forgetBytes()
            rest.adoptedFile = nil
            try store.tasks.save(rest, of: live.id, db)
            return true
        }
        if !leads { transaction.landings.left.insert(flight.id) }
        return false
    }

    private func land(
        _ landing: Landing, in flight: Flight?, of live: LiveTask, _ transaction: Transaction
    ) throws {
        let db = transaction.db
        let app = try transaction.session(live.session).app
        let isFollowed = flight?.isFollowed ?? false
        var row: Int64?
        if isStorable(landing) || isFollowed {
            row = try store(landing, of: live, isFollowed: isFollowed, transaction)
        } else if case .file(let path) = landing.content.storage,
            transaction.place(of: landing.content.digest.value, app)?.file != path
        {
            // A copy beside a content that was moved.
            try store.files.discard(path, transaction)
        }
        // A 304 may say that the stored response must not be kept.
        if !landing.isReusable, let confirmed = landing.content.row { try remove(cached: confirmed, transaction) }
        guard let flight else { return }
        guard isFollowed else { return try db.execute("DELETE FROM flight WHERE id = ?1", flight.id) }
        try db.execute(
            "UPDATE flight SET leader = NULL, result = ?2, is_reusable = ?3, releasing = 1 WHERE id = ?1", flight.id,
            row, landing.isReusable)
        try releaseFollowers(of: flight.id, limit: Self.followersAtOnce, transaction)
    }

    /// Passes the place of a leader, and its bytes if they can be resumed, to a follower.
    ///
    /// - Returns: Whether a follower has the bytes.
    private func handOver(
        _ flight: Flight, of leader: TaskID, _ progress: TaskProgress?, _ transaction: Transaction
    ) throws -> Bool {
        let db = transaction.db
        guard let follower = try firstFollower(of: flight, transaction) else {
            try db.execute("DELETE FROM flight WHERE id = ?1", flight.id)
            return false
        }
        try db.execute("UPDATE flight SET leader = ?2, is_reusable = 1 WHERE id = ?1", flight.id, follower.id.rawValue)
        var own = try store.tasks.progress(of: follower)
        let isPassedOn = try progress.map { try pass($0, of: leader, to: follower, &own, transaction) } ?? false
        try store.tasks.move(follower, .due, progress: own, transaction)
        return isPassedOn
    }

    /// - Parameter session: A session whose tasks do not count.
    private func firstFollower(
        of flight: Flight, but session: SessionID? = nil, _ transaction: Transaction
    ) throws -> LiveTask? {
        var last = TaskID(0)
        // The janitor removes the tasks of deleted sessions.
        while let next = try transaction.db.first(
            """
            SELECT l.task FROM live l JOIN session s ON s.id = l.session WHERE l.flight = ?1 AND l.task > ?2 \
            AND l.stage = 'following' AND l.session <> ?3 AND s.forgotten = 0 \
            AND EXISTS (SELECT 1 FROM app WHERE id = s.app) ORDER BY l.task LIMIT 1
            """, flight.id, last.rawValue, session?.rawValue ?? 0, read: { TaskID($0.integer(0)) })
        {
            if let follower = try transaction.live(next) { return follower }
            // Completed in this transaction.
            last = next
        }
        return nil
    }

    /// Divides a flight whose leader presents another identity than its tasks have asked for. Those of the leader's
    /// session have that identity, and keep waiting; a task of another session transfers for the others.
    ///
    /// - Parameter selector: Names the request that tasks may share with the leader; `nil` for none.
    func divideFlight(of live: LiveTask, as selector: [UInt8]? = nil, _ transaction: Transaction) throws {
        guard let flight = try flight(of: live, transaction), flight.leader == live.id else { return }
        let db = transaction.db
        try db.execute(
            "UPDATE flight SET selector = ?2 WHERE id = ?1", flight.id,
            selector ?? mark("flight of \(live.id.rawValue)"))
        guard let stranger = try firstFollower(of: flight, but: live.session, transaction) else { return }
        let id = try db.newNumbers(1, of: "flight")[0]
        let app = try transaction.session(live.session).app
        try db.execute(
            "INSERT INTO flight (id, app, selector, leader) VALUES (?1, ?2, ?3, ?4)", id, app.rawValue,
            flight.selector, stranger.id.rawValue)
        try db.execute(
            "UPDATE live SET flight = ?2 WHERE flight = ?1 AND session <> ?3", flight.id, id, live.session.rawValue)
        try store.tasks.move(stranger, .due, transaction)
    }

    /// Gives the bytes of a task to another one.
    ///
    /// - Returns: False if they cannot be resumed, or the task has bytes of its own.
    private func pass(
        _ progress: TaskProgress, of leader: TaskID, to follower: LiveTask, _ own: inout TaskProgress,
        _ transaction: Transaction
    ) throws -> Bool {
        guard own.kept == .none, progress.kept.point != nil, progress.keptOffset > 0, progress.kept.source == 0 else {
            return false
        }
        if let upload = progress.kept.parts {
            guard !upload.parts.isEmpty, upload.whole == nil else { return false }
            try store.tasks.adopt(upload, for: follower.id, transaction.db)
        } else {
            own.adoptedFile = progress.adoptedFile ?? Store.Tasks.partialFile(leader)
        }
        own.kept = progress.kept
        own.node = progress.node
        own.share(version: progress.version)
        return true
    }

    /// Passes on the place of a task, if it leads a flight, that is completed or whose session was deleted.
    ///
    /// - Parameters:
    ///   - progress: The bytes that the next leader may continue with.
    ///   - isWriting: Whether the transfer is still to be stopped. Its last settlement passes the place on then.
    /// - Returns: Whether the bytes are another task's now, or will be.
    @discardableResult
    func handOverFlight(
        ledBy task: TaskID, _ progress: TaskProgress?, isWriting: Bool = false, _ transaction: Transaction
    ) throws -> Bool {
        let db = transaction.db
        let led = try db.first(
            "SELECT id, selector, leader, result, is_reusable FROM flight WHERE leader = ?1", task.rawValue
        ) { Flight($0) }
        guard let led else { return false }
        if isWriting, try firstFollower(of: led, transaction) != nil { return true }
        try db.execute("UPDATE live SET flight = NULL WHERE task = ?1", task.rawValue)
        return try handOver(led, of: task, progress, transaction)
    }

    /// Releases the followers that may only reuse what RFC 9111 allows.
    func forbidReuse(by live: LiveTask, _ transaction: Transaction) throws {
        guard let flight = live.flight else { return }
        let isLed = try transaction.db.change(
            "UPDATE flight SET is_reusable = 0, releasing = 1 WHERE id = ?1 AND leader = ?2", flight, live.id.rawValue)
        guard isLed > 0 else { return }
        try releaseFollowers(of: flight, limit: Self.followersAtOnce, transaction)
    }

    // MARK: Release

    /// The maximum number of followers queued in one transaction.
    private static let followersAtOnce = 200

    /// Queues some of the followers that wait for ended flights.
    func releaseFollowers(_ transaction: Transaction) throws {
        let flights = try transaction.db.all("SELECT id FROM flight WHERE releasing = 1 ORDER BY id LIMIT 20") {
            $0.integer(0)
        }
        for id in flights { try releaseFollowers(of: id, limit: Self.followersAtOnce / flights.count, transaction) }
    }

    private func releaseFollowers(of id: Int64, limit: Int, _ transaction: Transaction) throws {
        let db = transaction.db
        guard let flight = try Flight.ask([id], db).get()[0].first else { return }
        let hasEnded = flight.leader == nil
        let waiting = try db.all(
            """
            SELECT task FROM live WHERE flight = ?1 AND stage = 'following' AND (is_strict = 1 OR CAST(?2 AS BIGINT) = 1) \
            ORDER BY task LIMIT ?3
            """, id, hasEnded, limit
        ) { TaskID($0.integer(0)) }
        try transaction.preread(waiting)
        try transaction.forEachLive(waiting) { try store.tasks.move($0, .due, transaction) }
        if waiting.count == limit { return transaction.wake(at: transaction.now) }
        try db.execute("UPDATE flight SET releasing = 0 WHERE id = ?1", id)
        if hasEnded { transaction.landings.left.insert(id) }
    }

    /// Deletes the ended flights that no task follows any more, with the results that are no entries of the cache.
    func endEmptyFlights(_ transaction: Transaction) throws {
        let (db, left) = (transaction.db, transaction.landings.left)
        guard !left.isEmpty else { return }
        transaction.landings.left = []
        let results = try db.allOfEach(
            """
            DELETE FROM flight WHERE id = ?1 AND leader IS NULL AND NOT EXISTS (SELECT 1 FROM live WHERE flight = ?1) \
            RETURNING result
            """, left.map { [$0] }
        ) { $0.integerOrNil("result") }
        let hidden = try db.allOfEach(
            "SELECT id FROM cached WHERE id = ?1 AND selector IS NULL", results.joined().compactMap { $0 }.map { [$0] }
        ) { $0.integer("id") }
        for row in hidden.joined() { try remove(cached: row, transaction) }
    }

    /// Ends flights that a deleted session or the end of a node left: those without a leader get one, those without
    /// followers end. A flight counts once the janitor has found it so twice, because a transfer may be ending.
    ///
    /// - Returns: Whether there are more flights to look at.
    func endStrayFlights(_ rows: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        let before = store.strayFlights.withLock { $0 }
        let flights = try db.all(
            """
            SELECT id, selector, leader, result, is_reusable, CASE WHEN leader IS NOT NULL AND EXISTS (SELECT 1 FROM live \
            WHERE task = flight.leader AND flight = flight.id AND stage <> 'suspended') THEN 0 ELSE 1 END AS stray \
            FROM flight WHERE id > ?1 ORDER BY id LIMIT ?2
            """, before.cursor, rows
        ) { (flight: Flight($0), isStray: $0.bool("stray")) }
        let strays = flights.filter(\.isStray).map(\.flight)
        for flight in strays where before.seen.contains(flight.id) {
            if let leader = flight.leader {
                try db.execute("UPDATE live SET flight = NULL WHERE task = ?1", leader.rawValue)
                _ = try handOver(flight, of: leader, nil, transaction)
            } else {
                transaction.landings.left.insert(flight.id)
            }
        }
        store.strayFlights.withLock { state in
            for (flight, _) in flights { state.seen.remove(flight.id) }
            state.seen.formUnion(strays.filter { !before.seen.contains($0.id) }.map(\.id))
            state.cursor = flights.count < rows ? 0 : flights.last?.flight.id ?? 0
        }
        return flights.count == rows
    }
}
