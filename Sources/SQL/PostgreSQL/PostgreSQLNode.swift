/// Who writes: a row with an epoch, by which the server refuses what a process sends that was given up.
///
/// The node's clock is never asked: leases are judged by the server's.
struct PostgreSQLNode: Sendable {
    let id: String
    /// Where the files are that rows refer to. Nodes that keep them elsewhere cannot share the store; nil where no node can.
    let contents: String?
    /// What it says of itself when it enters, in whatever form; nil for nothing.
    let document: [UInt8]?
    /// Drawn at the start, and again after a COMMIT whose answer was lost.
    private(set) var epoch: Int64
    /// The number of the last group that is known to be committed.
    var committed: Int64 = 0

    /// For how long a node is waited for that says nothing, in seconds.
    static let lease = 15

    init(id: String, contents: String? = nil, document: [UInt8]? = nil) {
        self.id = id
        self.contents = contents
        self.document = document
        epoch = Self.draw()
    }

    private static func draw() -> Int64 { Int64.random(in: 1...Int64.max) }

    /// Takes the node's place from an earlier process of the same name.
    ///
    /// - Throws: ``SQLError/Code/superseded`` where another node holds the store, and keeps contents elsewhere.
    mutating func enter(_ db: PostgreSQLConnection) throws(SQLError) {
        try db.begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { db.rollBack() }
        // One after the other, or two could enter at once.
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
        // The others of this service are for those to judge who have been in touch for long enough.
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

    /// Finds out what became of a group whose answer was lost, once and for all: what is still under way on the server is
    /// not committed afterwards.
    ///
    /// - Parameter next: The epoch that holds from here on. The same one when it is asked again.
    /// - Throws: ``SQLError/Code/superseded`` where another process took the node's place.
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

    /// An epoch for ``settle(_:_:)``.
    static func nextEpoch() -> Int64 { draw() }

    /// Has the transaction fail where the node's place was taken, and says that the node lives.
    ///
    /// A missing row ends in a division by zero: nothing else undoes a transaction from within a pipeline.
    func sign(_ number: Int64, _ db: PostgreSQLConnection) throws(SQLError) {
        try db.execute(
            """
            WITH signed AS (UPDATE node SET committed = ?3, lease_until = now() + make_interval(secs => ?4) \
            WHERE id = ?1 AND epoch = ?2 RETURNING 1) SELECT 1 / (SELECT count(*) FROM signed)
            """, id, epoch, number, Double(Self.lease))
    }

    /// Gives up the place.
    func leave(_ db: PostgreSQLConnection) throws(SQLError) {
        try db.begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        defer { db.rollBack() }
        try db.execute("DELETE FROM node WHERE id = ?1 AND epoch = ?2", id, epoch)
        try db.commit()
    }

    static let superseded = SQLError(.superseded, "another process took this node's place in the store")
}
