package import Core
import Formats
import SQL

/// What a transfer leaves for other tasks of its app: the response, and the bytes of its content.
package struct Landing: Sendable {
    package var cached: CachedResponse
    package var key: CacheKey
    /// Whether other tasks may reuse the response after the transfer.
    package var isReusable: Bool
    /// Whether the key does not name the identity that was presented: only tasks that wait for the response share it.
    package var isPrivate: Bool
    package var content: NewContent

    package init(
        _ cached: CachedResponse, _ key: CacheKey, isReusable: Bool, isPrivate: Bool = false, content: NewContent
    ) {
        self.cached = cached
        self.key = key
        self.isReusable = isReusable
        self.isPrivate = isPrivate
        self.content = content
    }
}

/// An entry of the cache, without its content.
struct CacheEntry {
    let row: Int64
    let selecting: [HTTPField]
}

/// Rows that the settlement of shared transfers depends on, read ahead, and what it leaves for the end of the transaction.
struct LandingReading {
    /// The flights of tasks. Each is used once, because it may change afterwards.
    var flights: [TaskID: Flight] = [:]
    /// The entries that a landing may replace, the newest first.
    var entries: [TaskID: [CacheEntry]] = [:]
    /// Where the bytes of rows in `cached` lie.
    var places: [Int64: StoredPlace] = [:]
    /// Flights that followers have left.
    var left: Set<Int64> = []
    /// The number of new entries.
    var stored = 0
}

/// The rows of ``LandingReading``, not read yet.
struct AskedLandings {
    fileprivate let tasks: [TaskID]
    fileprivate let flights: Asked<Flight>
    fileprivate let landed: [TaskID]
    fileprivate let entries: Asked<CacheEntry?>
    fileprivate let rows: [Int64]
    fileprivate let places: Asked<StoredPlace>
}

extension Store.Cache {
    // MARK: Reading ahead

    /// Requests what settlements with shared responses depend on. Sends no query without such a settlement.
    func askLandings(of settlements: [Settlement], _ db: Connection) throws -> AskedLandings? {
        let sharing = settlements.filter { $0.landing != nil || $0.storedRow != nil }
        guard !sharing.isEmpty else { return nil }
        let landed = sharing.filter { $0.landing.map(isStorable) ?? false }
        let keys: [[(any SQLBindable)?]] = landed.map { settlement in
            [settlement.task.rawValue, settlement.landing.map { mark($0.key) }, Self.variantsRead]
        }
        let rows = Array(Set(sharing.flatMap { [$0.storedRow, $0.landing?.content.row] }.compactMap { $0 }))
        return AskedLandings(
            tasks: sharing.map(\.task), flights: try Flight.ask(of: sharing.map(\.task), db),
            landed: landed.map(\.task),
            entries: try db.ask(
                """
                SELECT id, app, document FROM cached WHERE app = (SELECT app FROM live WHERE task = ?1) \
                AND selector = ?2 ORDER BY id DESC LIMIT ?3
                """, keys
            ) { self.entry($0) },
            rows: rows,
            places: try db.ask("SELECT bytes, file, object FROM cached WHERE id = ?1", rows.map { [$0] }) {
                StoredPlace($0)
            })
    }

    func note(_ asked: AskedLandings?, _ transaction: Transaction) throws {
        guard let asked else { return }
        for (task, flights) in zip(asked.tasks, try asked.flights.get()) {
            transaction.landings.flights[task] = flights.first
        }
        for (task, entries) in zip(asked.landed, try asked.entries.get()) {
            transaction.landings.entries[task] = entries.compactMap { $0 }
        }
        for (row, places) in zip(asked.rows, try asked.places.get()) {
            transaction.landings.places[row] = places.first
        }
    }

    /// `nil` for a row that was sealed with another master key.
    private func entry(_ row: Row) -> CacheEntry? {
        let context = Self.contextOfCached(AppID(row.integer("app")))
        let document = try? documents.decode(CachedResponse.self, row.blob("document"), sealedAs: context)
        return document.map { CacheEntry(row: row.integer("id"), selecting: $0.selecting) }
    }

    // MARK: Storing

    func isStorable(_ landing: Landing) -> Bool {
        landing.isReusable && !landing.isPrivate && landing.cached.response.statusCode == 200
            && landing.content.length + Self.weightOfEntry <= policies.cacheCapacity
    }

    /// Stores a response, and replaces the older one for the same requests.
    ///
    /// - Parameter isFollowed: Whether tasks wait for the row.
    /// - Returns: The row, if tasks wait for it.
    func store(
        _ landing: Landing, of live: LiveTask, isFollowed: Bool, _ transaction: Transaction
    ) throws -> Int64? {
        let (db, app, isEntry) = (transaction.db, try transaction.session(live.session).app, isStorable(landing))
        let older = (transaction.landings.entries[live.id] ?? []).filter { $0.selecting == landing.cached.selecting }
        let document = documents.encode(landing.cached, sealedAs: Self.contextOfCached(app), if: true)
        if let row = landing.content.row, isEntry, older.contains(where: { $0.row == row }) {
            // A 304 changes the head alone.
            try db.execute(
                "UPDATE cached SET document = ?2, used_at = ?3 WHERE id = ?1", row, document,
                transaction.now.milliseconds)
            return row
        }
        guard let place = try store.files.refer(to: landing.content, app, transaction) else { return nil }
        let inserted = try db.ask(
            """
            INSERT INTO cached (app, selector, url, document, length, digest, bytes, file, object, used_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id
            """,
            [
                [
                    app.rawValue, isEntry ? mark(landing.key) : nil, mark(landing.key.url), document,
                    landing.content.length, landing.content.digest.value, place.bytes, place.file, place.object,
                    transaction.now.milliseconds,
                ]
            ]
        ) { $0.integer("id") }
        // Only now, because the bytes may be the same.
        for entry in isEntry ? older : [] { try remove(cached: entry.row, transaction) }
        if isEntry {
            transaction.change(cacheOf: app) { $0.count(landing.content.length) }
            transaction.landings.stored += 1
        }
        return isFollowed ? try inserted.get()[0].first : nil
    }

    /// Entries of one URL that a commit removes; one that many identities have requested may have more.
    private static let invalidatedAtOnce = 1000

    /// Requests the entries of the URLs that settled tasks have changed (RFC 9111 section 4.4). Sends no query without
    /// such a task.
    func askInvalidated(by settlements: [Settlement], _ db: Connection) throws -> Asked<Int64>? {
        let changed = settlements.compactMap { settlement in
            settlement.changedURL.map {
                [settlement.task.rawValue, mark($0), Self.invalidatedAtOnce] as [(any SQLBindable)?]
            }
        }
        guard !changed.isEmpty, policies.cacheCapacity > 0 else { return nil }
        return try db.ask(
            """
            SELECT id FROM cached WHERE app = (SELECT app FROM live WHERE task = ?1) AND url = ?2 \
            AND selector IS NOT NULL LIMIT ?3
            """, changed
        ) { $0.integer(0) }
    }

    func remove(invalidated rows: Asked<Int64>?, _ transaction: Transaction) throws {
        guard let rows else { return }
        for row in Set(try rows.get().joined()) { try remove(cached: row, transaction) }
    }

    /// Entries that one commit removes besides as many as it stores. The janitor removes the rest.
    private static let evictedAtOnce = 16

    /// Makes room for the entries that the transaction has stored.
    func makeRoom(_ transaction: Transaction) throws {
        guard transaction.landings.stored > 0 else { return }
        _ = try evict(transaction.landings.stored + Self.evictedAtOnce, transaction)
        transaction.landings.stored = 0
    }
}

extension NewContent {
    /// The row of the cache that has the bytes.
    var row: Int64? { if case .cached(let row) = storage { row } else { nil } }
}

extension Settlement {
    /// The URL that the completed request may have changed: its method is not safe, and its response is no error.
    fileprivate var changedURL: String? {
        guard case .completed(_, let result, _) = verdict, let request,
            !["GET", "HEAD", "OPTIONS", "TRACE"].contains(request.method),
            let status = result.response?.statusCode, (200...399).contains(status)
        else { return nil }
        return url
    }

    /// The row of the cache with which the task completes.
    fileprivate var storedRow: Int64? { if case .completed(_, _, let content?) = verdict { content.row } else { nil } }
}
