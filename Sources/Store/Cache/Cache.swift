package import Core
import Formats
import SQL

/// A response of the cache, or one that a flight shares. A class, because each claimed task has room for one, and few
/// have it.
package final class StoredResponse: Sendable {
    package let row: Int64
    package let cached: CachedResponse
    package let length: Int64
    /// SHA-256 in lower-case hexadecimal.
    package let digest: String
    package let storage: BodyLocation.Storage

    package init(row: Int64, cached: CachedResponse, length: Int64, digest: String, storage: BodyLocation.Storage) {
        self.row = row
        self.cached = cached
        self.length = length
        self.digest = digest
        self.storage = storage
    }
}

/// Changes of an app's row in `cache`.
struct CacheChange {
    var entries: Int64 = 0
    var bytes: Int64 = 0
    var sharedBytes: Int64 = 0
    private var hits: Int64 = 0
    private var revalidations: Int64 = 0
    private var collapsed: Int64 = 0

    /// Counts an entry, or takes it back. The result of a flight, which ends by itself, is no entry.
    mutating func count(_ length: Int64, isRemoved: Bool = false) {
        let weight = length + Store.Cache.weightOfEntry
        bytes += isRemoved ? -weight : weight
        entries += isRemoved ? -1 : 1
    }

    mutating func count(_ status: CacheStatus) {
        switch status {
        case .stored: break
        case .hit: hits += 1
        case .revalidated: revalidations += 1
        case .collapsed: collapsed += 1
        }
    }

    /// Costs one row, and that of all apps if the length of the entries changed.
    func write(for app: AppID, _ db: Connection) throws {
        try db.execute(
            """
            INSERT INTO cache (app, entries, bytes, shared_bytes, hits, revalidations, collapsed) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (app) DO UPDATE SET entries = cache.entries + ?2, \
            bytes = cache.bytes + ?3, shared_bytes = cache.shared_bytes + ?4, hits = cache.hits + ?5, \
            revalidations = cache.revalidations + ?6, collapsed = cache.collapsed + ?7
            """, app.rawValue, entries, bytes, sharedBytes, hits, revalidations, collapsed)
        guard bytes != 0 || entries != 0 else { return }
        try db.execute(
            """
            INSERT INTO cache (app, entries, bytes) VALUES (0, ?1, ?2) \
            ON CONFLICT (app) DO UPDATE SET entries = cache.entries + ?1, bytes = cache.bytes + ?2
            """, entries, bytes)
    }
}

extension Store.Cache {
    /// What an entry counts besides its content, so that many small ones are bounded too.
    package static let weightOfEntry: Int64 = 4096
    /// The variants of one key that are compared with a request; older ones are never found.
    static let variantsRead = 16

    package func usage(of app: AppID) async throws -> CacheRecord {
        try await database.read { db in
            try db.first(
                "SELECT entries, bytes, hits, revalidations, collapsed FROM cache WHERE app = ?1", app.rawValue
            ) { row in
                var record = CacheRecord()
                record.entries = row.integer("entries")
                record.bytes = row.integer("bytes")
                record.hits = row.integer("hits")
                record.revalidations = row.integer("revalidations")
                record.collapsed = row.integer("collapsed")
                return record
            } ?? CacheRecord()
        }
    }

    /// Removes some entries of an app, or of one URL.
    ///
    /// - Returns: Whether more are left.
    package func empty(of app: AppID, url: String?, at now: Timestamp) async throws -> (Bool, Aftermath) {
        try await transact(at: now) { transaction in
            let some = 100
            let rows =
                if let url {
                    try transaction.db.all(
                        "SELECT id FROM cached WHERE app = ?1 AND url = ?2 AND selector IS NOT NULL LIMIT ?3",
                        app.rawValue, self.mark(url), some
                    ) { $0.integer(0) }
                } else {
                    try transaction.db.all(
                        "SELECT id FROM cached WHERE app = ?1 AND selector IS NOT NULL ORDER BY used_at LIMIT ?2",
                        app.rawValue, some
                    ) { $0.integer(0) }
                }
            for row in rows { try self.remove(cached: row, transaction) }
            return rows.count == some
        }
    }

    func mark(_ text: String) -> [UInt8] { documents.sealer.mark(Array(text.utf8)) }

    func mark(_ key: CacheKey) -> [UInt8] { documents.sealer.mark(key.bytesAtRest) }

    /// Requests the responses of keys, the newest first. Rows that were sealed with another master key are `nil`.
    ///
    /// - Parameter keys: Apps, and the marks of their keys.
    func askStored(_ keys: [[(any SQLBindable)?]], _ db: Connection) throws -> Asked<StoredResponse?> {
        try db.ask(
            """
            SELECT id, app, document, length, digest, bytes, file, object FROM cached \
            WHERE app = ?1 AND selector = ?2 ORDER BY id DESC LIMIT ?3
            """, keys.map { $0 + [Self.variantsRead] }
        ) { self.storedResponse($0) }
    }

    func askResponses(_ rows: [Int64], _ db: Connection) throws -> Asked<StoredResponse?> {
        try db.ask(
            "SELECT id, app, document, length, digest, bytes, file, object FROM cached WHERE id = ?1", rows.map { [$0] }
        ) { self.storedResponse($0) }
    }

    /// `nil` for a row that was sealed with another master key.
    private func storedResponse(_ row: Row) -> StoredResponse? {
        let length = row.integer("length")
        let object = row.textOrNil("object").map { StoredObject(key: $0, length: length) }
        let app = AppID(row.integer("app"))
        let document = try? documents.decode(
            CachedResponse.self, row.blob("document"), sealedAs: Self.contextOfCached(app))
        guard let document, let storage = object.map({ .objects([$0]) }) ?? BodyLocation.Storage(row) else {
            return nil
        }
        return StoredResponse(
            row: row.integer("id"), cached: document, length: length, digest: row.text("digest"), storage: storage)
    }

    static func contextOfCached(_ app: AppID) -> String { "cached/\(app.rawValue)" }

    func touch(cached row: Int64, _ transaction: Transaction) throws {
        try transaction.db.execute(
            "UPDATE cached SET used_at = ?2 WHERE id = ?1", row, transaction.now.milliseconds)
    }

    // MARK: Removing

    /// Removes an entry. One that a flight still shares is only hidden.
    func remove(cached row: Int64, _ transaction: Transaction) throws {
        let db = transaction.db
        if try db.exists("SELECT 1 FROM flight WHERE result = ?1", row) {
            let hidden = try db.first(
                "UPDATE cached SET selector = NULL WHERE id = ?1 AND selector IS NOT NULL RETURNING app, length", row
            ) { (app: AppID($0.integer("app")), length: $0.integer("length")) }
            if let hidden { transaction.change(cacheOf: hidden.app) { $0.count(hidden.length, isRemoved: true) } }
            return
        }
        transaction.landings.places[row] = nil
        let removed = try db.first(
            "DELETE FROM cached WHERE id = ?1 RETURNING app, selector, length, bytes, file, object", row
        ) { row in
            (
                app: AppID(row.integer("app")), isEntry: row.blobOrNil("selector") != nil,
                length: row.integer("length"), place: StoredPlace(row)
            )
        }
        guard let removed else { return }
        if removed.isEntry {
            transaction.change(cacheOf: removed.app) { $0.count(removed.length, isRemoved: true) }
        }
        try store.files.release(removed.place, removed.length, of: removed.app, transaction)
    }

    /// Removes up to `limit` entries beyond the capacity: those that the app with the most bytes has not used for the
    /// longest time.
    ///
    /// - Returns: Whether more are to be removed.
    func evict(_ limit: Int, _ transaction: Transaction) throws -> Bool {
        let db = transaction.db
        for _ in 0..<limit {
            try transaction.flushCounters()
            let total = try db.first("SELECT bytes FROM cache WHERE app = 0") { $0.integer(0) } ?? 0
            guard total > policies.cacheCapacity else { return false }
            let row = try db.first(
                """
                SELECT id FROM cached WHERE app = (SELECT app FROM cache WHERE app > 0 ORDER BY bytes DESC LIMIT 1) \
                AND selector IS NOT NULL ORDER BY used_at, id LIMIT 1
                """
            ) { $0.integer(0) }
            guard let row else { return false }
            try remove(cached: row, transaction)
        }
        return true
    }

    /// Removes the cache of a deleted app.
    ///
    /// - Returns: The approximate number of rows, about `limit` at most.
    func removeCache(of app: AppID, _ limit: Int, _ transaction: Transaction) throws -> Int {
        let db = transaction.db
        let flights = try db.change(
            "DELETE FROM flight WHERE id IN (SELECT id FROM flight WHERE app = ?1 LIMIT ?2)", app.rawValue, limit)
        let rows = try db.all("SELECT id FROM cached WHERE app = ?1 LIMIT ?2", app.rawValue, max(1, limit / 4)) {
            $0.integer(0)
        }
        for row in rows { try remove(cached: row, transaction) }
        if rows.isEmpty {
            try transaction.flushCounters()
            try db.execute("DELETE FROM cache WHERE app = ?1", app.rawValue)
        }
        return flights + rows.count * 4
    }
}
