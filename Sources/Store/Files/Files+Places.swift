package import Core
import SQL

/// Where the bytes of a row lie. Rows of an app may refer to one file or object; bytes in the database are each row's own.
struct StoredPlace: Hashable {
    var bytes: [UInt8]?
    var file: String?
    var object: String?

    init(bytes: [UInt8]? = nil, file: String? = nil, object: String? = nil) {
        (self.bytes, self.file, self.object) = (bytes, file, object)
    }

    init(_ row: Row) {
        self.init(bytes: row.blobOrNil("bytes"), file: row.textOrNil("file"), object: row.textOrNil("object"))
    }

    var isShared: Bool { file != nil || object != nil }
}

struct PlaceKey: Hashable {
    let app: AppID
    let digest: String
}

extension Store.Files {
    typealias PlacesOfApps = Asked<(app: AppID, place: StoredPlace)>
    typealias AskedPlaces = (keys: [(TaskID, String)], asked: PlacesOfApps?)

    /// Queries whether an app has the bytes of large new contents already. Sends no query without such a content.
    func askPlaces(of settlements: [Settlement], _ db: Connection) throws -> AskedPlaces {
        let keys = settlements.flatMap { settlement in
            Set(settlement.largeContents.map(\.digest.value)).map { (settlement.task, $0) }
        }
        return (keys, keys.isEmpty ? nil : try askPlaces(keys, db))
    }

    /// - Parameter keys: Unfinished tasks, and the digests of bytes that their apps may have.
    private func askPlaces(_ keys: [(TaskID, String)], _ db: Connection) throws -> PlacesOfApps {
        try db.ask(
            """
            SELECT app, file, object FROM content WHERE app = (SELECT app FROM live WHERE task = ?1) \
            AND digest = ?2 AND (file IS NOT NULL OR object IS NOT NULL) \
            UNION ALL SELECT app, file, object FROM cached WHERE app = (SELECT app FROM live WHERE task = ?1) \
            AND digest = ?2 AND (file IS NOT NULL OR object IS NOT NULL) \
            UNION ALL SELECT app, file, object FROM set_file WHERE app = (SELECT app FROM live WHERE task = ?1) \
            AND digest = ?2 AND state = 'kept' AND (file IS NOT NULL OR object IS NOT NULL) LIMIT 1
            """, keys.map { [$0.0.rawValue, $0.1] }
        ) { row in
            (AppID(row.integer("app")), StoredPlace(file: row.textOrNil("file"), object: row.textOrNil("object")))
        }
    }

    func note(_ places: AskedPlaces, _ transaction: Transaction) throws {
        guard let asked = places.asked else { return }
        for (key, found) in zip(places.keys, try asked.get()) {
            if let found = found.first { transaction.note(found.place, of: key.1, found.app) }
        }
    }

    /// The place of a content's bytes for one more row: where the app has the same bytes already, they are kept once.
    ///
    /// - Returns: `nil` for a content that was moved elsewhere.
    func refer(to content: NewContent, _ app: AppID, _ transaction: Transaction) throws -> StoredPlace? {
        let own: StoredPlace
        switch content.storage {
        case .moved: return nil
        case .bytes(let bytes): return StoredPlace(bytes: bytes)
        case .file(let path): own = StoredPlace(file: path)
        case .object(let key): own = StoredPlace(object: key)
        case .cached(let row):
            guard let place = try place(ofCached: row, transaction) else { throw DomainError.notFound }
            if place.isShared { transaction.change(cacheOf: app) { $0.sharedBytes += content.length } }
            return place
        }
        if let known = transaction.place(of: content.digest.value, app) {
            transaction.change(cacheOf: app) { $0.sharedBytes += content.length }
            if let lost = content.replacedFile, known.file == lost, let file = own.file {
                try replace(lost, by: file, transaction)
                transaction.note(own, of: content.digest.value, app)
                return own
            }
            if known != own {
                if let file = own.file { try discard(file, transaction) }
                if let object = own.object { try discard(object: object, transaction) }
            }
            return known
        }
        if let object = own.object { try publish(object: object, transaction.db) }
        transaction.note(own, of: content.digest.value, app)
        return own
    }

    /// The file in which the app of an unfinished task has the same bytes; `nil` if it has none, or has them in objects.
    package func file(of digest: String, for task: TaskID) async throws -> String? {
        try await database.read { db in
            try self.askPlaces([(task, digest)], db).get()[0].first?.place.file
        }
    }

    /// Has the rows of a lost file name another one.
    private func replace(_ lost: String, by file: String, _ transaction: Transaction) throws {
        try transaction.flushRows()
        try transaction.db.execute("UPDATE content SET file = ?2 WHERE file = ?1", lost, file)
        try transaction.db.execute("UPDATE cached SET file = ?2 WHERE file = ?1", lost, file)
        try transaction.db.execute("UPDATE set_file SET file = ?2 WHERE file = ?1", lost, file)
        // One of another length may be left.
        try discard(lost, transaction)
    }

    /// Ends the reference of a row that is gone. The last reference frees the bytes.
    func release(_ place: StoredPlace, _ length: Int64, of app: AppID, _ transaction: Transaction) throws {
        guard place.isShared else { return }
        try transaction.flushRows()
        let isReferred = try transaction.db.exists(
            """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM content WHERE file = CAST(?1 AS TEXT)) \
            OR EXISTS (SELECT 1 FROM cached WHERE file = CAST(?1 AS TEXT)) \
            OR EXISTS (SELECT 1 FROM set_file WHERE file = CAST(?1 AS TEXT)) \
            OR EXISTS (SELECT 1 FROM content WHERE object = CAST(?2 AS TEXT)) \
            OR EXISTS (SELECT 1 FROM cached WHERE object = CAST(?2 AS TEXT)) \
            OR EXISTS (SELECT 1 FROM set_file WHERE object = CAST(?2 AS TEXT))
            """, place.file, place.object)
        if isReferred { return transaction.change(cacheOf: app) { $0.sharedBytes -= length } }
        transaction.forget(place)
        if let file = place.file { try discard(file, transaction) }
        if let object = place.object { try discard(object: object, transaction) }
    }

    private func place(ofCached row: Int64, _ transaction: Transaction) throws -> StoredPlace? {
        if let known = transaction.landings.places[row] { return known }
        return try transaction.db.first("SELECT bytes, file, object FROM cached WHERE id = ?1", row) { StoredPlace($0) }
    }

    /// Whether the bytes of a content still exist: an entry of the cache may have gone since it was read.
    func isStored(_ content: NewContent?, _ transaction: Transaction) throws -> Bool {
        guard case .cached(let row)? = content?.storage else { return true }
        return try place(ofCached: row, transaction) != nil
    }
}

extension Settlement {
    /// The contents that bring a file or an object of their own.
    fileprivate var largeContents: [NewContent] {
        var contents: [NewContent] = []
        if case .completed(_, _, let content?) = verdict { contents.append(content) }
        if let landing { contents.append(landing.content) }
        return contents.filter {
            switch $0.storage {
            case .file, .object: true
            case .bytes, .cached, .moved: false
            }
        }
    }
}
