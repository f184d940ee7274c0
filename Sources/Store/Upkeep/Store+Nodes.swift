package import Core
import SQL

/// What nodes have left that are gone, and that was taken over.
package struct TakeOver: Sendable {
    package var nodes: [String] = []
    /// Tasks that were under way.
    package var tasks = 0
    /// Whether they have left more.
    package var hasMore = false
}

/// What a node wants to know of others' commits.
package struct Watched: Sendable {
    /// Sessions that clients wait for here, or that have transfers here.
    package var sessions: [SessionID] = []
    /// Tasks whose end clients wait for here.
    package var tasks: [TaskID] = []

    package init() {}
}

/// How things stand of what a node watches.
package struct News: Sendable {
    /// A number for each session that exists, which is another one after each change.
    package var sessions: [SessionID: SessionNews] = [:]
    /// Those of the tasks that are not completed.
    package var unfinished: Set<TaskID> = []
    /// Tasks that this node has under way.
    package var transferring: Set<TaskID> = []
    package var hasQueuedTasks = false
}

package struct SessionNews: Hashable, Sendable {
    package var lastSeq: Int64
    package var revision: Int64
}

extension Store {
    /// The nodes that share the store; none with a file.
    package func nodes() async throws -> [NodeRecord] {
        try await database.read { [documents] db in
            try db.nodes().map { node in
                NodeRecord(
                    id: node.id, isAlive: node.isAlive, isDraining: node.isDraining, silence: node.silence,
                    committed: node.committed,
                    profile: node.document.isEmpty
                        ? NodeProfile() : try documents.decode(NodeProfile.self, node.document))
            }
        }
    }

    /// Says of this node what others may know, and that it lives.
    package func describe(_ profile: NodeProfile) async throws {
        guard let node else { return }
        try await database.write { [documents] db in try db.describe(node: node, as: documents.encode(profile)) }
    }

    /// Asks a node to take nothing more, and to hand over what it has.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func drain(node: String) async throws {
        try await database.write { db in
            guard try db.drain(node: node) else { throw DomainError.notFound }
        }
    }

    /// Looks how things stand of what is watched here. A few look-ups in indexes for each.
    package func news(of watched: Watched) async throws -> News {
        try await database.read { [node] db in
            var news = News()
            let sessions = try db.allOfEach(
                "SELECT id, last_seq, revision FROM session WHERE id = ?1 AND forgotten = 0",
                watched.sessions.map { [$0.rawValue] }
            ) {
                (
                    SessionID($0.integer("id")),
                    SessionNews(lastSeq: $0.integer("last_seq"), revision: $0.integer("revision"))
                )
            }
            news.sessions = Dictionary(sessions.joined()) { first, _ in first }
            let tasks = try db.allOfEach(
                "SELECT task FROM live WHERE task = ?1", watched.tasks.map { [$0.rawValue] }
            ) { TaskID($0.integer(0)) }
            news.unfinished = Set(tasks.joined())
            news.transferring = Set(
                try db.all(
                    """
                    SELECT task FROM live l JOIN session s ON s.id = l.session AND s.forgotten = 0 \
                    WHERE l.node = ?1 AND l.stage = 'active' AND EXISTS (SELECT 1 FROM app WHERE id = s.app)
                    """, node
                ) { TaskID($0.integer(0)) })
            news.hasQueuedTasks = try db.exists("SELECT 1 FROM lane WHERE queued > 0 LIMIT 1")
            return news
        }
    }

    /// Whether another node has a task and has not let go of it.
    package func isTaken(_ task: TaskID) async throws -> Bool {
        guard let node else { return false }
        return try await database.read { db in
            try db.exists("SELECT 1 FROM live WHERE task = ?1 AND node <> ?2", task.rawValue, node)
        }
    }

    /// Takes over what nodes have left that are gone.
    ///
    /// Their tasks go back to the queue uncharged, up to ``commandGroup`` at a time, their launches go out again, their
    /// clients count as gone.
    ///
    /// - Parameter burying: Whether nodes that said nothing for too long are gone, too: nothing that they have begun is
    ///   committed any more.
    package func takeOver(burying: Bool = true, at now: Timestamp) async throws -> (TakeOver, Aftermath) {
        guard let node else { return (TakeOver(), Aftermath()) }
        return try await transact(at: now) { transaction in
            let buried = burying ? try transaction.db.buryNodes(but: node) : []
            var takeOver = try self.releaseStrays(
                but: self.livingOthers(transaction.db).union([node]), limit: Self.commandGroup, transaction)
            takeOver.nodes = buried
            return takeOver
        }
    }

    /// Whether other nodes live.
    package func hasLivingOthers() async throws -> Bool { try await nodes().contains { $0.isAlive && $0.id != node } }

    /// The names of other nodes that live, or were never taken over.
    func livingOthers(_ db: Connection) throws -> Set<String> {
        Set(try db.nodes().map(\.id)).subtracting([node ?? ""])
    }

    /// Takes what is held by nodes that are none any more.
    ///
    /// - Parameter limit: How many tasks.
    func releaseStrays(but nodes: Set<String>, limit: Int, _ transaction: Transaction) throws -> TakeOver {
        let db = transaction.db
        var takeOver = TakeOver()
        let holders = try db.all("SELECT DISTINCT node FROM live WHERE node IS NOT NULL") { $0.text(0) }
        var held: [TaskID] = []
        for holder in holders where !nodes.contains(holder) {
            held += try db.all(
                "SELECT task FROM live WHERE node = ?1 ORDER BY task LIMIT ?2", holder, limit - held.count
            ) { TaskID($0.integer(0)) }
        }
        takeOver.hasMore = held.count == limit
        try transaction.preread(held)
        try transaction.forEachLive(held) { live in
            // What was to be moved is on a disk that is out of reach.
            try db.execute("UPDATE live SET move_document = NULL WHERE task = ?1", live.id.rawValue)
            if live.life.phase == .active {
                try self.move(live, .interrupted, letsGo: true, transaction)
                takeOver.tasks += 1
            } else {
                try self.letGo(of: live, transaction)
            }
        }
        let senders = try db.all("SELECT DISTINCT node FROM launch WHERE state = 'delivering' AND node IS NOT NULL") {
            $0.text(0)
        }
        for sender in senders where !nodes.contains(sender) { try self.takeBackLaunches(of: sender, transaction) }
        let hosts = try db.all("SELECT DISTINCT node FROM presence") { $0.text(0) }
        for host in hosts where !nodes.contains(host) {
            try db.execute(
                "UPDATE presence SET kind = NULL, detached_at = ?2 WHERE node = ?1 AND kind IS NOT NULL", host,
                transaction.now.milliseconds)
        }
        return takeOver
    }
}
