import Base
package import Core
import Store
import TransferEngine
import Transfers

/// Many nodes: each polls the store for the commits of the others. Nodes communicate through the store alone.
extension Service {
    /// What is remembered from one look to the next.
    private struct Look {
        /// The last commit of each other node.
        var committed: [String: Int64] = [:]
        var sessions: [SessionID: SessionNews] = [:]
        var profile = NodeProfile()
        /// When the profile was stored (monotonic ms).
        var describedAt: Int64 = .min
        var transferring = 1
        var hasOthers = false
        /// Since when the store has answered each look (monotonic ms).
        var inTouchSince: Int64?
    }

    /// For how long the store has to be there before nodes are given up that it has not heard of, in milliseconds: after an
    /// outage it has heard of none, and each says within this time that it lives.
    private static let mourning: Int64 = 10_000

    /// Between two looks, in milliseconds: spread, so that nodes do not ask all at once.
    private static let pauses = 250...450
    /// How often a node says how busy it is, in milliseconds.
    private static let profilePeriod: Int64 = 5000

    /// Watches the other nodes until it is cancelled.
    func watchNodes() async {
        var look = Look()
        while !Task.isCancelled {
            do {
                try await tellDepartures()
                try await self.look(&look)
            } catch {
                look.inTouchSince = nil
                if Store.Obstacle(error) != .away {
                    log.error("the other nodes could not be watched", ("error", "\(error)"))
                }
            }
            try? await Task.sleep(for: .milliseconds(Int.random(in: Self.pauses)))
        }
    }

    private func look(_ look: inout Look) async throws {
        guard let own = store.node else { return }
        let records = try await store.nodes()
        nodes.note(records, own: own)
        if records.contains(where: { $0.id == own && $0.isDraining }), !nodes.isDraining { retire() }
        try await describe(&look)
        try await takeOver(from: records, own, &look)
        if (nodes.transferring, nodes.hasOthers) != (look.transferring, look.hasOthers) {
            (look.transferring, look.hasOthers) = (nodes.transferring, nodes.hasOthers)
            inbox.tell(.nodes(transferring: look.transferring, hasOthers: look.hasOthers))
        }
        let committed = Dictionary(
            uniqueKeysWithValues: records.lazy.filter { $0.id != own }.map { ($0.id, $0.committed) })
        guard committed != look.committed else { return }
        // What is read here may be newer than that, never older.
        try await takeNews(&look)
        look.committed = committed
    }

    /// Says how this node is, where that has changed, or now and then.
    private func describe(_ look: inout Look) async throws {
        let now = clock.monotonic()
        let profile = profile
        let isDue = look.describedAt == .min || now >= look.describedAt + Self.profilePeriod
        guard isDue, profile != look.profile else { return }
        try await store.describe(profile)
        (look.profile, look.describedAt) = (profile, now)
    }

    /// Wakes the streams and held requests of this node that wait for the commits of others.
    private func takeNews(_ look: inout Look) async throws {
        let transfers = await scheduler.underWay
        var watched = Watched()
        watched.sessions = Array(Set(hub.sessions.keys).union(transfers.values))
        watched.streamed = hub.streamed
        watched.tasks = hub.tasks.keys
        let news = try await store.news(of: watched)
        for session in watched.sessions where news.sessions[session] != look.sessions[session] {
            hub.sessions.signal(session)
            if news.sessions[session]?.revision != look.sessions[session]?.revision {
                inbox.tell(.sessionChanged(session))
            }
            if let known = look.sessions[session], let now = news.sessions[session], now.resets != known.resets {
                engine.closeConnections(pool: now.app.rawValue)
            }
        }
        look.sessions = news.sessions
        for session in nodes.note(news.progress) { hub.sessions.signal(session) }
        for task in watched.tasks where !news.unfinished.contains(task) { hub.tasks.signal(task) }
        // Cancelled, suspended or changed at another node.
        let decided = transfers.keys.filter { !news.transferring.contains($0) }
        outlet.stop(decided)
        try await loadConditions()
        inbox.tell(.othersCommitted)
        if news.hasQueuedTasks { inbox.tell(.queued) }
        outlet.launches.ring()
        nodes.tellNews()
    }

    /// Takes over what nodes have left that died, or ended and had not handed over all.
    private func takeOver(from records: [NodeRecord], _ own: String, _ look: inout Look) async throws {
        let now = clock.monotonic()
        let inTouchSince = look.inTouchSince ?? now
        look.inTouchSince = inTouchSince
        let known = Set(records.map(\.id))
        let hasDead = now - inTouchSince >= Self.mourning && records.contains { !$0.isAlive && $0.id != own }
        guard hasDead || look.committed.keys.contains(where: { !known.contains($0) }) else { return }
        var (buried, tasks, hasMore) = ([String](), 0, true)
        while hasMore {
            let (takeOver, aftermath) = try await store.takeOver(burying: hasDead, at: clock.now)
            outlet.handle(aftermath)
            buried += takeOver.nodes
            tasks += takeOver.tasks
            hasMore = takeOver.hasMore
        }
        if !buried.isEmpty {
            nodes.takeOvers.add(Int64(buried.count))
            log.warning(
                "nodes died, their work goes on here and elsewhere", ("nodes", buried.joined(separator: " ")),
                ("tasks", tasks))
        }
        // What the dead had under way goes on elsewhere, perhaps here.
        _ = nodes.note([:])
        inbox.tell(.othersCommitted)
        // When launches were to be asked for again, only those nodes knew.
        try await checkAllSessions(at: clock.now + settings.detachGrace)
    }

    /// Takes nothing more, and hands over what is under way.
    private func retire() {
        nodes.drain()
        inbox.tell(.drain)
        log.info("this node was drained: it takes nothing more")
    }

    /// Tells the others of sessions that no client follows here any more.
    private func tellDepartures() async throws {
        let departures = attendance.takeDepartures()
        guard !departures.isEmpty else { return }
        do {
            try await store.clientsLeft(departures)
        } catch {
            attendance.putBack(departures: departures)
            throw error
        }
    }

    /// What this node says of itself.
    private var profile: NodeProfile {
        var profile = NodeProfile(settings, startedAt: startedAt)
        profile.transfersRunning = live.count
        profile.load = conditions.load
        return profile
    }

    // MARK: What operators ask

    /// Whether other nodes may have the store as well.
    package var isShared: Bool { store.node != nil }

    /// What a node is called that has the store for itself.
    private static let only = "local"

    /// All nodes that live or were not taken over yet, by their names.
    package func nodeRecords() async throws -> [NodeRecord] {
        guard store.node == nil else { return try await store.nodes() }
        return [NodeRecord(id: Self.only, isDraining: nodes.isDraining || isDraining, profile: profile)]
    }

    /// Asks a node to take nothing more and to hand over what it has. It goes on answering requests.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func drain(node: String) async throws {
        if store.node != nil { return try await store.drain(node: node) }
        guard node == Self.only else { throw DomainError.notFound }
        retire()
    }
}

extension NodeProfile {
    /// What a node says of itself before it does anything.
    init(_ settings: ServiceSettings, startedAt: Timestamp) {
        self.init()
        roles = NodeRole.allCases.filter(settings.roles.contains).map(\.rawValue)
        version = settings.version
        url = settings.url
        self.startedAt = startedAt
        maximumTransfers = settings.roles.contains(.transfer) ? settings.maximumTransfers : 0
    }
}
