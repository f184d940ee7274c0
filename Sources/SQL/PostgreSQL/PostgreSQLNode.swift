/// This node's row, with an epoch that fences earlier processes of the same name.
///
/// The server's clock judges leases; the node's clock is never used.
struct PostgreSQLNode: Sendable {
    let id: String
    /// The location of the files that rows refer to, equal for all nodes; `nil` for a single node.
    let contents: String?
    /// The initial description of the node in any format, if any.
    let document: [UInt8]?
    /// Drawn at the start, and again after the response to a COMMIT was lost.
    private(set) var epoch: Int64
    /// The number of the last commit group known to be committed.
    var committed: Int64 = 0

    /// The lease of a node, in seconds.
    static let lease = 15

    init(id: String, contents: String? = nil, document: [UInt8]? = nil) {
        self.id = id
        self.contents = contents
        self.document = document
        epoch = Self.draw()
    }

    private static func draw() -> Int64 { Int64.random(in: 1...Int64.max) }

    /// Claims the node's place from an earlier process of the same name.
    ///
    /// - Throws: ``SQLError/Code/superseded`` if another node holds the store and keeps contents elsewhere.
    mutating func enter(_ db: PostgreSQLConnection) throws(SQLError) {
        try db.begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { db.rollBack() }
        // One after the other, because two processes could enter at once otherwise.
        try db.execute("LOCK TABLE node IN SHARE ROW EXCLUSIVE MODE")
        var stranger: String?
        try db.forEach(
            """
            SELECT id FROM node WHERE id <> ?1 AND lease_until > now() \
            AND (contents = ?2 AND contents IS NOT NULL) IS NOT TRUE
            """, id, contents
        ) { row throws(SQLError) in
            stranger = row.text("id")
            return false
        }
        if let stranger {
            throw SQLError(
                .superseded,
                "the node \(stranger) holds this store: stop it first, or wait \(Self.lease) seconds if it has died;"
                    + " nodes share a store only with the same --contents in a bucket")
        }
        // Expired nodes of this service are left to nodes that have been connected long enough to judge them.
        try db.execute(
            """
            DELETE FROM node WHERE id <> ?1 AND lease_until <= now() \
            AND (contents = ?2 AND contents IS NOT NULL) IS NOT TRUE
            """, id, contents)
        try db.execute(
            """
            INSERT INTO node (id, epoch, lease_until, contents, document) \
            VALUES (?1, ?2, now() + make_interval(secs => ?3), ?4, ?5) \
            ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, committed = 0, lease_until = excluded.lease_until, \
            contents = excluded.contents, draining = FALSE, document = excluded.document
            """, id, epoch, Double(Self.lease), contents, document)
        try db.commit()
        committed = 0
    }

    /// Determines the outcome of a commit group in doubt, once and for all: a COMMIT still in flight on the server
    /// fails afterwards.
    ///
    /// - Parameter next: The new epoch. A repeated call passes the same one.
    /// - Throws: ``SQLError/Code/superseded`` if another process took the node's place.
    mutating func settle(_ next: Int64, _ db: PostgreSQLConnection) throws(SQLError) {
        try db.begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { db.rollBack() }
        var found: Int64?
        try db.forEach(
            "UPDATE node SET epoch = ?3 WHERE id = ?1 AND (epoch = ?2 OR epoch = ?3) RETURNING committed", id, epoch,
            next
        ) { row throws(SQLError) in
            found = row.integer("committed")
            return false
        }
        guard let found else { throw Self.superseded }
        try db.commit()
        (epoch, committed) = (next, found)
    }

    /// A new epoch for ``settle(_:_:)``.
    static func nextEpoch() -> Int64 { draw() }

    /// Fences the transaction and renews the lease: the transaction fails if the node's place was taken.
    ///
    /// A missing row causes a division by zero, because nothing else fails a transaction from within a pipeline.
    func sign(_ number: Int64, _ db: PostgreSQLConnection) throws(SQLError) {
        try db.execute(
            """
            WITH signed AS (UPDATE node SET committed = ?3, lease_until = now() + make_interval(secs => ?4) \
            WHERE id = ?1 AND epoch = ?2 RETURNING 1) SELECT 1 / (SELECT count(*) FROM signed)
            """, id, epoch, number, Double(Self.lease))
    }

    /// Deletes the node's row.
    func leave(_ db: PostgreSQLConnection) throws(SQLError) {
        try db.begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { db.rollBack() }
        try db.execute("DELETE FROM node WHERE id = ?1 AND epoch = ?2", id, epoch)
        try db.commit()
    }

    static let superseded = SQLError(.superseded, "another process took this node's place in the store")
}
