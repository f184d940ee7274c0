import Base
import Core
import Store

/// The places of this node's downloads in segments, beyond those that lanes count, in a store that other nodes share.
///
/// A place is stored before a connection uses it, so that the other nodes leave it free; the commit after the end of the
/// connection gives it back.
struct ConnectionPlaces: Sendable {
    private struct Key: Hashable {
        let session: Int64
        let origin: String

        init(_ lane: FairShare.Lane) { (session, origin) = (lane.session, lane.host) }

        init(_ claim: ConnectionClaim) { (session, origin) = (claim.session.rawValue, claim.origin) }
    }

    /// As the store has them.
    private var stored: [Key: Int] = [:]
    /// Granted, and not used yet.
    private var free: [Key: Int] = [:]
    /// What the next commit asks for.
    private var wanted: [Key: (count: Int, limit: Int)] = [:]
    /// Where nothing more was granted.
    private var refused: Set<Key> = []

    /// Takes a place that was granted. Where there is none the next commit asks for as many as the download may still
    /// have, so that it does not wait for a commit with each.
    mutating func take(_ lane: FairShare.Lane, wanting count: Int) -> Bool {
        let key = Key(lane)
        if let count = free[key] {
            free[key] = count > 1 ? count - 1 : nil
            return true
        }
        if !refused.contains(key) { wanted[key] = (count + (wanted[key]?.count ?? 0), lane.limit) }
        return false
    }

    /// Something changed: where nothing was granted there may be a place now.
    mutating func askAgain() { refused = [] }

    /// Whether the store has to be told or asked.
    func differ(from connections: some Collection<FairShare.Lane>) -> Bool {
        !wanted.isEmpty || stored != Self.count(connections)
    }

    /// What the store is told and asked.
    ///
    /// - Parameters:
    ///   - connections: Those in flight.
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

    /// Notes what the store granted.
    mutating func note(_ grants: some Sequence<(ConnectionClaim, Int)>) {
        wanted = [:]
        for (claim, grant) in grants {
            let key = Key(claim)
            stored[key] = claim.used + grant > 0 ? claim.used + grant : nil
            free[key] = grant > 0 ? grant : nil
            if claim.wanted > 0, grant == 0 { refused.insert(key) }
        }
    }

    /// Gives up what was granted and is not used.
    mutating func drop() { free = [:] }

    private static func count(_ connections: some Collection<FairShare.Lane>) -> [Key: Int] {
        connections.reduce(into: [:]) { $0[Key($1), default: 0] += $1.running }
    }
}

extension Agenda {
    /// Whether other nodes have to hear how many connections there are, or grant more.
    var claimsPlaces: Bool { places?.differ(from: connections.values) ?? false }

    /// What the store is told and asked of connections.
    var placeClaims: [ConnectionClaim] {
        places?.claims(for: connections.values) { running(at: $0, of: $1) } ?? []
    }
}

extension Scheduler {
    /// Stores how many connections downloads in segments have, and has more granted.
    func claimPlaces() async {
        let claims = agenda.withLock { $0.claimsPlaces ? $0.placeClaims : [] }
        if claims.isEmpty { return }
        do {
            let grants = try await store.claimConnections(claims, limitPerHost: settings.maximumTransfersPerHost)
            agenda.withLock { $0.places?.note(zip(claims, grants)) }
        } catch {
            if Store.Obstacle(error) != .away { log.error("connections could not be stored", ("error", "\(error)")) }
            try? await Task.sleep(for: .seconds(1))
        }
    }
}
