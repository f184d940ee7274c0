import SQL

/// The row of this node, whose epoch fences earlier processes of the same name.
///
/// The server's clock judges leases; the node's clock is never used.
struct NodeRow: Sendable {
    let id: String
    /// The location of the files that rows refer to, equal for all nodes; `nil` for a single node.
    let contents: String?
    /// The initial description of the node, if any.
    let document: [UInt8]?

    /// The lease of a node, in seconds.
    static let lease = 15

    /// Returns the name of a node that holds the store, if any, and keeps other nodes out until the transaction ends.
    static let holder: StaticString = """
        LOCK TABLE node IN SHARE ROW EXCLUSIVE MODE; SELECT id FROM node WHERE lease_until > now()
        """

    var fence: Fence {
        Fence(heartbeat: .seconds(Self.lease) / 3, enter: enter, sign: sign, settle: settle, leave: leave)
    }

    /// Claims the node's place from an earlier process of the same name.
    ///
    /// - Throws: ``SQLError/Code/superseded`` if another node holds the store and keeps contents elsewhere.
    private func enter(_ db: Connection, _ epoch: Int64) throws(SQLError) {
        // One after the other, because two processes could enter at once otherwise.
        try db.execute("LOCK TABLE node IN SHARE ROW EXCLUSIVE MODE")
        let stranger = try db.value(
            """
            SELECT id FROM node WHERE id <> ?1 AND lease_until > now() \
            AND (contents = ?2 AND contents IS NOT NULL) IS NOT TRUE
            """, id, contents
        ) { $0.text(0) }
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
    }

    /// Fences the transaction and renews the lease.
    private func sign(_ db: Connection, _ epoch: Int64, _ number: Int64) throws(SQLError) {
        try db.execute(
            """
            WITH signed AS (UPDATE node SET committed = ?3, lease_until = now() + make_interval(secs => ?4) \
            WHERE id = ?1 AND epoch = ?2 RETURNING 1) SELECT 1 / (SELECT count(*) FROM signed)
            """, id, epoch, number, Double(Self.lease))
    }

    /// Determines the outcome of a commit group in doubt: a COMMIT still in flight on the server fails afterwards.
    private func settle(_ db: Connection, _ epoch: Int64, _ next: Int64) throws(SQLError) -> Int64? {
        try db.value(
            "UPDATE node SET epoch = ?3 WHERE id = ?1 AND (epoch = ?2 OR epoch = ?3) RETURNING committed", id, epoch,
            next
        ) { $0.integer(0) }
    }

    private func leave(_ db: Connection, _ epoch: Int64) throws(SQLError) {
        try db.execute("DELETE FROM node WHERE id = ?1 AND epoch = ?2", id, epoch)
    }
}
