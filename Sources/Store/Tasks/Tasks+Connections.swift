package import Core
import SQL

/// The connections of one session's segmented downloads to one origin at this node, beyond those that lanes count, and
/// the number of further connections wanted.
package struct ConnectionClaim: Hashable, Sendable {
    package var session: SessionID
    /// `scheme://host:port`.
    package var origin: String
    package var used: Int
    package var wanted: Int
    /// All transfers and connections of this node at the origin, including `used`.
    package var running: Int
    /// The transfers and connections of the session alone.
    package var runningOfSession: Int
    /// The session's `httpMaximumConnectionsPerHost`.
    package var limit: Int

    package init(
        session: SessionID, origin: String, used: Int, wanted: Int = 0, running: Int, runningOfSession: Int, limit: Int
    ) {
        self.session = session
        self.origin = origin
        self.used = used
        self.wanted = wanted
        self.running = running
        self.runningOfSession = runningOfSession
        self.limit = limit
    }
}

/// Tasks of one session for one origin.
private struct LanePlace: Hashable, Sendable {
    var session: SessionID
    var origin: String
}

/// Transfers and connections that other nodes have in flight.
package struct TransfersElsewhere: Sendable {
    private var lanes: [LanePlace: Int] = [:]
    package private(set) var origins: [String: Int] = [:]

    struct Question {
        fileprivate var transfers: Asked<(LanePlace, Int)>
        fileprivate var connections: Asked<(LanePlace, Int)>
    }

    package init() {}

    /// - Parameter question: `nil` if there are no other nodes.
    init(_ question: Question?) throws {
        guard let question else { return }
        for (place, count) in try question.transfers.get()[0] + question.connections.get()[0] {
            lanes[place, default: 0] += count
            origins[place.origin, default: 0] += count
        }
    }

    /// The number in flight at an origin, of all sessions or of one.
    package func running(at origin: String, of session: SessionID? = nil) -> Int {
        session.map { lanes[LanePlace(session: $0, origin: origin)] ?? 0 } ?? origins[origin] ?? 0
    }
}

extension Store.Tasks {
    /// Queries the transfers in flight at other nodes by an index: one row for each lane with transfers, and one for
    /// each origin with further connections.
    func askTransfersElsewhere(_ db: Connection) throws -> TransfersElsewhere.Question? {
        guard let node else { return nil }
        func place(_ row: Row) -> LanePlace {
            LanePlace(session: SessionID(row.integer("session")), origin: row.text("origin"))
        }
        return TransfersElsewhere.Question(
            transfers: try db.ask(
                """
                SELECT l.session, l.origin, count(*) AS running FROM (SELECT lane FROM live WHERE node < ?1 \
                UNION ALL SELECT lane FROM live WHERE node > ?1) AS s JOIN lane l ON l.id = s.lane \
                GROUP BY l.session, l.origin
                """, [[node]]
            ) { (place($0), $0.int("running")) },
            connections: try db.ask(
                """
                SELECT session, origin, connections FROM held_connection WHERE node < ?1 \
                UNION ALL SELECT session, origin, connections FROM held_connection WHERE node > ?1
                """, [[node]]
            ) { (place($0), $0.int("connections")) })
    }

    /// Stores this node's connections, and grants more if the limits over all nodes allow it. Granted connections count
    /// for other nodes at once.
    ///
    /// - Returns: The number of connections granted to each claim, in order.
    package func claimConnections(_ claims: [ConnectionClaim], limitPerHost: Int) async throws -> [Int] {
        guard let node else { return claims.map(\.wanted) }
        return try await database.write { db in
            let elsewhere = try TransfersElsewhere(self.askTransfersElsewhere(db))
            let stored = Dictionary(
                try db.all("SELECT session, origin, connections FROM held_connection WHERE node = ?1", node) { row in
                    (
                        LanePlace(session: SessionID(row.integer("session")), origin: row.text("origin")),
                        row.int("connections")
                    )
                }
            ) { first, _ in first }
            var granted: [String: Int] = [:]
            var held: [(place: LanePlace, count: Int)] = []
            let grants = claims.map { claim in
                let place = LanePlace(session: claim.session, origin: claim.origin)
                let room = min(
                    limitPerHost - claim.running - elsewhere.running(at: claim.origin) - (granted[claim.origin] ?? 0),
                    claim.limit - claim.runningOfSession - elsewhere.running(at: claim.origin, of: claim.session))
                let grant = max(0, min(claim.wanted, room))
                granted[claim.origin, default: 0] += grant
                if stored[place] ?? 0 != claim.used + grant { held.append((place, claim.used + grant)) }
                return grant
            }
            try db.executeAll(
                """
                INSERT INTO held_connection (node, session, origin, connections) VALUES (?1, ?2, ?3, ?4) \
                ON CONFLICT (node, session, origin) DO UPDATE SET connections = excluded.connections
                """,
                held.filter { $0.count > 0 }.map { [node, $0.place.session.rawValue, $0.place.origin, $0.count] })
            try db.executeAll(
                "DELETE FROM held_connection WHERE node = ?1 AND session = ?2 AND origin = ?3",
                held.filter { $0.count == 0 }.map { [node, $0.place.session.rawValue, $0.place.origin] })
            return grants
        }
    }

    /// Deletes the connections of a node that has none any more.
    func forgetConnections(of node: String, _ db: Connection) throws {
        try db.execute("DELETE FROM held_connection WHERE node = ?1", node)
    }
}
