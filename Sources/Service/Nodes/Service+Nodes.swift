import Base
package import Core
import Store
import TransferEngine
import Transfers

/// Several nodes: each polls the store for the commits of the others. Nodes communicate only through the store.
extension Service {
    /// The state kept between two polls.
    private struct Look {
        /// The last commit of each other node.
        var committed: [String: Int64] = [:]
        var sessions: [SessionID: SessionNews] = [:]
        /// Tasks whose unfinished contents have readers here, and their objects.
        var read: Set<TaskID> = []
        var arriving: [TaskID: ArrivingObjects] = [:]
        var profile = NodeProfile()
        /// When the profile was stored (monotonic ms).
        var describedAt: Int64 = .min
        var transferring = 1
        var hasOthers = false
        /// The time since which the store has answered each poll (monotonic ms).
        var inTouchSince: Int64?
    }

    /// How long the store has to be reachable before a takeover of silent nodes, in milliseconds: during an outage no
    /// node can renew its lease, and each live node does so within this time.
    private static let mourning: Int64 = 10_000

    /// Milliseconds between two polls: random, so that nodes do not poll simultaneously.
    private static let pauses = 250...450
    /// Milliseconds between two reports of a node's load.
    private static let profilePeriod: Int64 = 5000
    /// Tasks, and versions of sets, whose readers a node reports to the others.
    private static let mostRead = 1000

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
        let records = try await store.nodes.list()
        nodes.note(records, own: own)
        if records.contains(where: { $0.id == own && $0.isDraining }), !nodes.isDraining { retire() }
        try await describe(&look)
        try await takeOver(from: records, own, &look)
        if (nodes.transferring, nodes.hasOthers) != (look.transferring, look.hasOthers) {
            (look.transferring, look.hasOthers) = (nodes.transferring, nodes.hasOthers)
            inbox.tell(.nodes(transferring: look.transferring, hasOthers: look.hasOthers))
        }
        noteReaders(records.filter { $0.id != own })
        let committed = Dictionary(
            uniqueKeysWithValues: records.lazy.filter { $0.id != own }.map { ($0.id, $0.committed) })
        let read = Set(outlet.arrivals.changes.keys)
        guard committed != look.committed || read != look.read else { return }
        // The rows read here may be newer than that commit, never older.
        try await takeNews(&look)
        (look.committed, look.read) = (committed, read)
    }

    /// Makes the bytes of unfinished contents readable that have readers at other nodes.
    private func noteReaders(_ others: [NodeRecord]) {
        var offsets: [TaskID: [Int64]] = [:]
        for profile in others.map(\.profile) {
            for task in profile.reading where offsets.updateValue([], forKey: TaskID(task)) == nil {
                inbox.tell(.wanted(TaskID(task), nil))
            }
        }
        for wait in others.flatMap(\.profile.waits) {
            offsets[TaskID(wait.task), default: []] += wait.offsets
        }
        guard settings.contents != nil else { return }
        let changed = arrivalCopies.note(offsets, at: clock.monotonic()) { task in
            outlet.arrivals.content(of: task)?.objects.isEmpty == true
        }
        for task in changed { outlet.arrivals.changes.signal(task) }
    }

    /// Stores this node's profile if it has changed, at most once per period.
    private func describe(_ look: inout Look) async throws {
        let now = clock.monotonic()
        var profile = profile
        profile.waits = waits(look)
        let isDue = look.describedAt == .min || now >= look.describedAt + Self.profilePeriod
        let known = look.profile
        let isUrgent =
            profile.reading != known.reading || profile.waits != known.waits || profile.copies != known.copies
        guard isDue || isUrgent, profile != known else { return }
        try await store.nodes.describe(profile)
        (look.profile, look.describedAt) = (profile, now)
    }

    /// The bytes that readers here want from the files of other nodes.
    private func waits(_ look: Look) -> [ArrivingWait] {
        look.arriving.filter { $0.value.file != nil }.keys.sorted { $0.rawValue < $1.rawValue }.prefix(Self.mostRead)
            .map { ArrivingWait(task: $0, offsets: outlet.arrivals.waits(of: $0)) }.filter { !$0.offsets.isEmpty }
    }

    /// Wakes the streams and held requests of this node that wait for the commits of others.
    private func takeNews(_ look: inout Look) async throws {
        let transfers = await scheduler.underWay
        var watched = Watched()
        watched.sessions = Array(Set(hub.sessions.keys).union(transfers.values))
        watched.streamed = hub.streamed
        watched.tasks = Array(Set(hub.tasks.keys).union(outlet.arrivals.changes.keys))
        watched.arriving = outlet.arrivals.changes.keys.filter { transfers[$0] == nil }
        let news = try await store.nodes.news(of: watched, at: clock.now)
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
        for task in watched.tasks where !news.unfinished.contains(task) {
            hub.tasks.signal(task)
            outlet.arrivals.completed(task)
        }
        let arriving = Dictionary(
            uniqueKeysWithValues: news.arriving.map { ($0.key, nodes.withCopy($0.key, $0.value)) })
        for (task, objects) in arriving where look.arriving[task] != objects {
            outlet.arrivals.note(objects.content, objects.response, of: task)
        }
        look.arriving = arriving
        // Cancelled, suspended or changed at another node.
        let decided = transfers.keys.filter { !news.transferring.contains($0) }
        outlet.stop(decided)
        try await loadConditions()
        inbox.tell(.othersCommitted)
        if !news.pauses.isEmpty { inbox.tell(.paused(news.pauses)) }
        if news.hasQueuedTasks { inbox.tell(.queued) }
        outlet.launches.ring()
        nodes.tellNews()
    }

    /// Takes over from nodes that died, or ended before they had handed over everything.
    private func takeOver(from records: [NodeRecord], _ own: String, _ look: inout Look) async throws {
        let now = clock.monotonic()
        let inTouchSince = look.inTouchSince ?? now
        look.inTouchSince = inTouchSince
        let known = Set(records.map(\.id))
        let hasDead = now - inTouchSince >= Self.mourning && records.contains { !$0.isAlive && $0.id != own }
        guard hasDead || look.committed.keys.contains(where: { !known.contains($0) }) else { return }
        var (buried, tasks, hasMore) = ([String](), 0, true)
        while hasMore {
            let (takeOver, aftermath) = try await store.nodes.takeOver(burying: hasDead, at: clock.now)
            outlet.handle(aftermath)
            buried += takeOver.nodes
            tasks += takeOver.tasks
            hasMore = takeOver.hasMore
        }
        if !buried.isEmpty {
            nodes.takeOvers.add(Int64(buried.count))
            log.warning(
                "nodes died, and other nodes took over their work", ("nodes", buried.joined(separator: " ")),
                ("tasks", tasks))
        }
        // The tasks of dead nodes are resumed by other nodes, perhaps by this one.
        _ = nodes.note([:])
        inbox.tell(.othersCommitted)
        unfinishedCancellations.ring()
        outlet.handle(try await store.apps.cancelForbiddenTasks(at: clock.now))
        // Only the dead nodes knew when the launch rules were due.
        try await checkAllSessions(at: clock.now + settings.detachGrace)
    }

    /// Stops claiming, and hands over what is in flight.
    private func retire() {
        nodes.drain()
        inbox.tell(.drain)
        log.info("this node was drained and claims no more tasks")
    }

    /// Reports sessions without an attached client on this node to the other nodes.
    private func tellDepartures() async throws {
        let departures = attendance.takeDepartures()
        guard !departures.isEmpty else { return }
        do {
            try await store.sessions.clientsLeft(departures)
        } catch {
            attendance.putBack(departures: departures)
            throw error
        }
    }

    /// The profile of this node.
    private var profile: NodeProfile {
        var profile = NodeProfile(settings, startedAt: startedAt)
        profile.transfersRunning = live.count
        profile.load = conditions.load
        profile.openVersions = Array(setReaders.held.map(\.rawValue).sorted().prefix(Self.mostRead))
        if settings.contents != nil {
            // A copy has a reader here, too.
            let tasks = outlet.arrivals.changes.keys.filter { !arrivalCopies.isCopied($0) }.map(\.rawValue).sorted()
            profile.reading = Array(tasks.prefix(Self.mostRead))
            profile.copies = arrivalCopies.published
        }
        return profile
    }

    // MARK: Administration

    /// Whether other nodes may share the store.
    package var isShared: Bool { store.node != nil }

    /// The name of a node that does not share its store.
    private static let only = "local"

    /// All nodes that are alive or not taken over yet, by name.
    package func nodeRecords() async throws -> [NodeRecord] {
        guard store.node == nil else { return try await store.nodes.list() }
        return [NodeRecord(id: Self.only, isDraining: nodes.isDraining || isDraining, profile: profile)]
    }

    /// Drains a node: it claims nothing more and hands over its transfers, while it still serves requests.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func drain(node: String) async throws {
        if store.node != nil { return try await store.nodes.drain(node) }
        guard node == Self.only else { throw DomainError.notFound }
        retire()
    }
}

extension NodeProfile {
    /// The profile of a node before its first transfer.
    init(_ settings: ServiceSettings, startedAt: Timestamp) {
        self.init()
        roles = NodeRole.allCases.filter(settings.roles.contains).map(\.rawValue)
        version = settings.version
        url = settings.url
        self.startedAt = startedAt
        maximumTransfers = settings.roles.contains(.transfer) ? settings.maximumTransfers : 0
    }
}
