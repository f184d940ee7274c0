package import Core
import SQL

/// The outcome of a takeover.
package struct TakeOver: Sendable {
    package var nodes: [String] = []
    /// The number of tasks that were in flight.
    package var tasks = 0
    /// Whether the dead nodes have more claims.
    package var hasMore = false
}

/// The state of other nodes' commits that a node follows.
package struct Watched: Sendable {
    /// Sessions that clients follow here, or that have transfers here.
    package var sessions: [SessionID] = []
    /// The sessions whose transfer progress is streamed here.
    package var streamed: [SessionID] = []
    /// Tasks whose completion clients await here.
    package var tasks: [TaskID] = []
    /// Tasks whose unfinished contents have readers here.
    package var arriving: [TaskID] = []

    package init() {}
}

/// The current state of everything that a node watches.
package struct News: Sendable {
    /// A stamp for each existing session, which differs after each change.
    package var sessions: [SessionID: SessionNews] = [:]
    /// The watched tasks that are not completed.
    package var unfinished: Set<TaskID> = []
    /// Tasks that this node transfers according to the store.
    package var transferring: Set<TaskID> = []
    package var hasQueuedTasks = false
    /// The stored progress of other nodes' transfers in sessions that are streamed here.
    package var progress: [SessionID: [TaskID: LiveState.Sample]] = [:]
    /// The stored bytes of tasks with readers here that this node does not transfer, and the origin's response.
    package var arriving: [TaskID: ArrivingObjects] = [:]
    package var pauses: [OriginPause] = []
}

/// The objects with the bytes of an unfinished content.
package struct ArrivingObjects: Hashable, Sendable {
    /// `nil` if no byte can be read.
    package private(set) var content: ArrivingContent?
    package private(set) var response: TaskResponse?
    /// The node with the file, and the version of its bytes, if a file has them.
    package let file: File?

    package struct File: Hashable, Sendable {
        package let node: String?
        package let version: Int64
    }

    fileprivate init(_ progress: TaskProgress) {
        let content = ArrivingContent(progress)
        let isInObjects = content?.objects.isEmpty == false
        self.content = isInObjects ? content : nil
        response = progress.kept.parts?.readable?.response
        file = isInObjects ? nil : content.map { File(node: progress.node, version: $0.version) }
    }

    /// The same with the bytes of a file that its node has copied into objects.
    package func copied(_ copy: ArrivingCopy) -> ArrivingObjects {
        var objects = self
        (objects.content, objects.response) = (copy.content, copy.response)
        return objects
    }
}

package struct SessionNews: Hashable, Sendable {
    package var lastSeq: Int64
    package var revision: Int64
    package var app: AppID
    /// The number of resets of the session.
    package var resets: Int64
}

extension Store.Nodes {
    /// The nodes that share the store; none with SQLite.
    package func list() async throws -> [NodeRecord] {
        guard node != nil else { return [] }
        return try await database.read { [documents] db in
            try db.all(
                """
                SELECT id, committed, draining, document, lease_until > now() AS alive, \
                CAST(extract(epoch FROM now() - lease_until) * 1000 AS BIGINT) AS overdue FROM node ORDER BY id
                """
            ) { row in
                let document = row.blob("document")
                return NodeRecord(
                    id: row.text("id"), isAlive: row.bool("alive"), isDraining: row.bool("draining"),
                    silence: max(.zero, .seconds(NodeRow.lease) + .milliseconds(row.integer("overdue"))),
                    committed: row.integer("committed"),
                    profile: document.isEmpty ? NodeProfile() : try documents.decode(NodeProfile.self, document))
            }
        }
    }

    /// Publishes this node's description and renews its lease.
    package func describe(_ profile: NodeProfile) async throws {
        guard let node else { return }
        try await database.write { [documents] db in
            try db.execute("UPDATE node SET document = ?2 WHERE id = ?1", node, documents.encode(profile))
        }
    }

    /// Requests the drain of a node.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func drain(_ id: String) async throws {
        guard node != nil else { throw DomainError.notFound }
        try await database.write { db in
            let drained = try db.change("UPDATE node SET draining = TRUE WHERE id = ?1", id)
            if drained == 0 { throw DomainError.notFound }
        }
    }

    /// The maximum number of a session's transfers whose progress is read at once.
    private static let progressLimit = 256

    /// Reads the state of everything watched here. Costs a few index look-ups for each.
    package func news(of watched: Watched, at now: Timestamp) async throws -> News {
        try await database.read { [node, documents] db in
            var news = News()
            let sessions = try db.ask(
                "SELECT id, last_seq, revision, app, resets FROM session WHERE id = ?1 AND forgotten = 0",
                watched.sessions.map { [$0.rawValue] }
            ) {
                (
                    SessionID($0.integer("id")),
                    SessionNews(
                        lastSeq: $0.integer("last_seq"), revision: $0.integer("revision"),
                        app: AppID($0.integer("app")), resets: $0.integer("resets"))
                )
            }
            let tasks = try db.ask(
                "SELECT task FROM live WHERE task = ?1", watched.tasks.map { [$0.rawValue] }
            ) { TaskID($0.integer(0)) }
            let progress = try db.ask(
                """
                SELECT task, progress_document FROM live WHERE session = ?1 AND stage = 'active' AND node <> ?2 \
                AND progress_document IS NOT NULL LIMIT ?3
                """, watched.streamed.map { [$0.rawValue, node, Self.progressLimit] }
            ) { (TaskID($0.integer("task")), $0.blob("progress_document")) }
            let arriving = try db.ask(
                """
                SELECT task, progress_document FROM live WHERE task = ?1 AND (node IS NULL OR node <> ?2) \
                AND progress_document IS NOT NULL
                """, watched.arriving.map { [$0.rawValue, node] }
            ) { (TaskID($0.integer("task")), $0.blob("progress_document")) }
            let transferring = try db.ask(
                """
                SELECT task FROM live l JOIN session s ON s.id = l.session AND s.forgotten = 0 \
                WHERE l.node = ?1 AND l.stage = 'active' AND EXISTS (SELECT 1 FROM app WHERE id = s.app)
                """, [[node]]
            ) { TaskID($0.integer(0)) }
            let queued = try db.ask("SELECT 1 FROM lane WHERE queued > 0 LIMIT 1", [[]]) { $0.integer(0) }
            let pauses = try Store.Tasks.askPauses(at: now, db)
            news.sessions = Dictionary(try sessions.get().joined()) { first, _ in first }
            news.unfinished = Set(try tasks.get().joined())
            news.transferring = Set(try transferring.get().joined())
            news.hasQueuedTasks = try queued.get() != [[]]
            news.pauses = try pauses.get().flatMap { $0 }
            for (task, document) in try arriving.get().joined() {
                news.arriving[task] = ArrivingObjects(try documents.decode(TaskProgress.self, document))
            }
            for (session, tasks) in zip(watched.streamed, try progress.get()) {
                for (task, document) in tasks {
                    news.progress[session, default: [:]][task] =
                        LiveState.Sample(stored: try documents.decode(TaskProgress.self, document))
                }
            }
            return news
        }
    }

    /// Takes over the claims of dead nodes.
    ///
    /// Their tasks are requeued uncharged, up to ``commandGroup`` at a time, their launches become due, and their
    /// clients are detached.
    ///
    /// - Parameter burying: Whether nodes with an expired lease are declared dead too: commits of these nodes fail from
    ///   then on.
    package func takeOver(burying: Bool = true, at now: Timestamp) async throws -> (TakeOver, Aftermath) {
        guard let node else { return (TakeOver(), Aftermath()) }
        return try await transact(at: now) { transaction in
            let buried = burying ? try self.bury(but: node, transaction.db) : []
            var takeOver = try self.releaseStrays(
                but: self.livingOthers(transaction.db).union([node]), limit: Store.Tasks.commandGroup, transaction)
            takeOver.nodes = buried
            return takeOver
        }
    }

    /// Requeues the remaining claims of this node's name or of dead nodes: tasks, up to ``commandGroup`` at a time,
    /// launches and clients. Called at start until no more are left.
    ///
    /// With SQLite every node that a row names is one of the server from which the store was moved.
    package func recoverStrays(at now: Timestamp) async throws -> (hasMore: Bool, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let others = try self.livingOthers(transaction.db)
            return try self.releaseStrays(but: others, limit: Store.Tasks.commandGroup, transaction).hasMore
        }
    }

    /// Deletes the rows of nodes with an expired lease: these nodes cannot commit any more.
    ///
    /// - Parameter node: This node, which is alive.
    /// - Returns: The names of the nodes.
    private func bury(but node: String, _ db: Connection) throws -> [String] {
        try db.all("DELETE FROM node WHERE id <> ?1 AND lease_until <= now() RETURNING id", node) { $0.text("id") }
    }

    /// The first start of the nodes that are alive and have described themselves; `nil` without any, such as with a store
    /// that is not shared.
    package func firstStart() async throws -> Timestamp? {
        try await list().lazy.filter { $0.isAlive && $0.profile != NodeProfile() }.map(\.profile.startedAt).min()
    }

    /// The names of other nodes that are alive or not taken over yet.
    func livingOthers(_ db: Connection) throws -> Set<String> {
        guard let node else { return [] }
        return Set(try db.all("SELECT id FROM node WHERE id <> ?1", node) { $0.text("id") })
    }

    /// Requeues the claims of nodes that no longer exist.
    ///
    /// - Parameter limit: The maximum number of tasks.
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
        takeOver.tasks = try store.tasks.recover(held, .takeover, transaction).interrupted
        let connected = try db.all("SELECT DISTINCT node FROM held_connection") { $0.text(0) }
        for other in connected where !nodes.contains(other) { try store.tasks.forgetConnections(of: other, db) }
        try store.files.forgetFiles(but: nodes, db)
        let holding = try db.all("SELECT DISTINCT held_by FROM live WHERE held_by IS NOT NULL") { $0.text(0) }
        for holder in holding where !nodes.contains(holder) { try store.tasks.letGoOn(heldBy: holder, transaction) }
        let senders = try db.all("SELECT DISTINCT node FROM launch WHERE state = 'delivering' AND node IS NOT NULL") {
            $0.text(0)
        }
        for sender in senders where !nodes.contains(sender) { try store.launches.takeBack(of: sender, transaction) }
        let hosts = try db.all("SELECT DISTINCT node FROM presence") { $0.text(0) }
        for host in hosts where !nodes.contains(host) {
            try db.execute(
                "UPDATE presence SET kind = NULL, detached_at = ?2 WHERE node = ?1 AND kind IS NOT NULL", host,
                transaction.now.milliseconds)
        }
        return takeOver
    }
}

extension LiveState.Sample {
    /// The stored state of a transfer at another node.
    fileprivate init(stored progress: TaskProgress) {
        self.init(
            phase: .receiving, received: progress.kept.count ?? 0,
            sent: progress.uploadOffset ?? 0, expected: progress.kept.point?.totalLength)
    }
}
