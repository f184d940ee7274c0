import Base
import Core
import Store

/// The slots of this node's downloads in segments, beyond those that lanes count, in a store that other nodes share.
///
/// A slot is stored before a connection uses it, so that other nodes leave it free. The commit after the end of the
/// connection releases it.
struct ConnectionPlaces: Sendable {
    private struct Key: Hashable {
        let session: Int64
        let origin: String

        init(_ lane: FairShare.Lane) { (session, origin) = (lane.session, lane.host) }

        init(_ claim: ConnectionClaim) { (session, origin) = (claim.session.rawValue, claim.origin) }
    }

    /// The slots as stored.
    private var stored: [Key: Int] = [:]
    /// Granted slots that are not used yet.
    private var free: [Key: Int] = [:]
    /// Slots that the next commit requests.
    private var wanted: [Key: (count: Int, limit: Int)] = [:]
    /// Lanes for which nothing more was granted.
    private var refused: Set<Key> = []

    /// Claims a granted slot. If there is none, the next commit requests as many as the download may still have, so
    /// that not each connection waits for a commit.
    mutating func take(_ lane: FairShare.Lane, wanting count: Int) -> Bool {
        let key = Key(lane)
        if let count = free[key] {
            free[key] = count > 1 ? count - 1 : nil
            return true
        }
        if !refused.contains(key) { wanted[key] = (count + (wanted[key]?.count ?? 0), lane.limit) }
        return false
    }

    /// Whether the store has granted no slot since something changed.
    func isRefused(_ lane: FairShare.Lane) -> Bool { refused.contains(Key(lane)) }

    /// Requests slots again that were refused, because something changed.
    mutating func askAgain() { refused = [] }

    /// Whether slots have to be stored or requested.
    func differ(from connections: some Collection<FairShare.Lane>) -> Bool {
        !wanted.isEmpty || stored != Self.count(connections)
    }

    /// The slots to store and to request.
    ///
    /// - Parameters:
    ///   - connections: The connections in flight.
    ///   - running: Transfers and connections at an origin, of all sessions or of one.
    func claims(
        for connections: some Collection<FairShare.Lane>, running: (_ origin: String, _ session: Int64?) -> Int
    ) -> [ConnectionClaim] {
        let used = Self.count(connections)
        return Set(stored.keys).union(used.keys).union(wanted.keys)
            .filter { wanted[$0] != nil || stored[$0] != used[$0] }
            .map { key in
                ConnectionClaim(
                    session: SessionID(key.session), origin: key.origin, used: used[key] ?? 0,
                    wanted: wanted[key]?.count ?? 0, running: running(key.origin, nil),
                    runningOfSession: running(key.origin, key.session), limit: wanted[key]?.limit ?? 0)
            }
    }

    /// Notes the slots that the store granted.
    mutating func note(_ grants: some Sequence<(ConnectionClaim, Int)>) {
        wanted = [:]
        for (claim, grant) in grants {
            let key = Key(claim)
            stored[key] = claim.used + grant > 0 ? claim.used + grant : nil
            free[key] = grant > 0 ? grant : nil
            if claim.wanted > 0, grant == 0 { refused.insert(key) }
        }
    }

    /// Releases the granted slots that are not used.
    mutating func drop() { free = [:] }

    private static func count(_ connections: some Collection<FairShare.Lane>) -> [Key: Int] {
        connections.reduce(into: [:]) { $0[Key($1), default: 0] += $1.running }
    }
}

extension Agenda {
    /// Whether slots of connections have to be stored or requested.
    var claimsPlaces: Bool { places?.differ(from: connections.values) ?? false }

    /// The slots of connections to store and to request.
    var placeClaims: [ConnectionClaim] {
        places?.claims(for: connections.values) { running(at: $0, of: $1) } ?? []
    }
}

extension Scheduler {
    /// Stores the slots of connections, and requests more.
    func claimPlaces() async {
        let claims = agenda.withLock { $0.claimsPlaces ? $0.placeClaims : [] }
        if claims.isEmpty { return }
        do {
            let grants = try await store.tasks.claimConnections(claims, limitPerHost: settings.maximumTransfersPerHost)
            agenda.withLock { $0.places?.note(zip(claims, grants)) }
        } catch {
            if Store.Obstacle(error) != .away {
                log.error("connection counts could not be stored", ("error", "\(error)"))
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }
}
