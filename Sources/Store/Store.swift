package import Base
package import Core
package import SQL

/// The domain at rest: one method for each use, one transaction for each method. The methods are on a face for their
/// subject (``tasks``, ``sessions``, …).
///
/// Time, identifiers and randomness are arguments. A method that changes state is durable when it returns.
package final class Store: Sendable {
    package let database: Database
    let documents: Documents
    let policies: Policies
    /// The name of this process among the nodes of a shared store; `nil` with SQLite, which has one node.
    package let node: String?
    /// The last lane checked by the chore that deletes idle lanes.
    let idleLaneCursor = Locked<Int64>(0)
    let strayFlights = Locked(StrayFlights())

    /// The settings and callbacks on which the store's decisions depend.
    package struct Policies: Sendable {
        /// The retention of contents after the acknowledgement of their event.
        package var contentRetention: Duration
        /// The retention of unacknowledged contents.
        package var unacknowledgedRetention: Duration
        /// Bytes that the caches of all apps may hold together; 0 for none.
        package var cacheCapacity: Int64
        /// The presence in a session, which the service keeps in memory.
        package var presence: @Sendable (SessionID) -> Presence
        /// The attempt in flight of a task, if this node transfers it.
        package var attempt: @Sendable (TaskID) -> LiveState.CurrentAttempt?

        package init(
            contentRetention: Duration, unacknowledgedRetention: Duration, cacheCapacity: Int64 = 10 << 30,
            attempt: @escaping @Sendable (TaskID) -> LiveState.CurrentAttempt? = { _ in nil },
            presence: @escaping @Sendable (SessionID) -> Presence
        ) {
            self.attempt = attempt
            self.contentRetention = contentRetention
            self.unacknowledgedRetention = unacknowledgedRetention
            self.cacheCapacity = cacheCapacity
            self.presence = presence
        }
    }

    /// The location of the database.
    package enum Location: Sendable {
        /// A SQLite file.
        case file(String)
        /// A PostgreSQL server, and the name of this process there. Nodes that share it keep contents in one place.
        case server(PostgreSQLServer, node: String, contents: String? = nil)

        /// Whether other nodes may use the database too.
        package var isShared: Bool { if case .server = self { true } else { false } }
    }

    /// The number of readers for requests, and of those for loops.
    package static let readers = max(2, min(8, SystemLoad.cores))

    /// Opens the database and migrates an older schema.
    ///
    /// - Parameters:
    ///   - profile: The description of this process for other nodes, if they share the store.
    ///   - onFatalError: Ends the process: a commit in doubt cannot be repaired while the process runs.
    package init(
        _ location: Location, profile: NodeProfile? = nil, sealer: Sealer, policies: Policies, log: Log,
        onCommit: @escaping @Sendable (StoreCommit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (any Error) -> Never
    ) throws {
        documents = Documents(sealer: sealer)
        let tell = { @Sendable (commit: Commit) in
            onCommit(
                StoreCommit(
                    writes: commit.writes, duration: commit.duration, logBytes: commit.logBytes,
                    roundTrips: commit.roundTrips))
        }
        switch location {
        case .file(let path):
            node = nil
            database = try Database.open(
                path: path, readers: Self.readers, migrations: Schema.migrations, log: log, onCommit: tell,
                onFatalError: { onFatalError($0) })
        case .server(let server, let node, let contents):
            self.node = node
            let row = NodeRow(id: node, contents: contents, document: profile.map(documents.encode))
            database = try Database.open(
                server, fence: row.fence, readers: Self.readers, migrations: Schema.migrations, log: log,
                onCommit: tell, onFatalError: { onFatalError($0) })
        }
        self.policies = policies
    }

    /// Runs a loop of the service, whose reads do not queue behind those of requests.
    package static func loop<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Database.$readingParty.withValue(.loops, operation: body, isolation: isolation)
    }

    /// Runs the first step of a loop, and repeats it each second while an ``Obstacle`` prevents it.
    ///
    /// - Throws: An error that a retry would not avoid; `CancellationError`.
    package static func insist<Result>(
        isolation: isolated (any Actor)? = #isolation, on body: () async throws -> Result
    ) async throws -> Result {
        while true {
            do {
                return try await body()
            } catch  where Obstacle(error) != nil {
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// The executor of request reads: reads need no other thread, and the owner's tasks alternate with other owners'.
    package func readers(of owner: Int64) -> any TaskExecutor { database.readers(for: .requests).turns(of: owner) }

    package func close() { database.close() }

    /// The number of writes performed for all callers, the janitor included.
    package var performedWrites: Int { database.performedWrites }

    /// Proves that the database can be written.
    package func probe(at now: Timestamp) async throws {
        try await database.write { db in
            try db.execute(
                "INSERT INTO setting (name, document) VALUES ('probe', ?1) ON CONFLICT (name) DO UPDATE SET document = ?1",
                [UInt8](String(now.milliseconds).utf8))
        }
    }
}

/// The outcome of a commit.
package struct StoreCommit: Sendable {
    /// The number of changes that the commit made durable.
    package let writes: Int
    package let duration: Duration
    /// The length of the write-ahead log after the commit; 0 with PostgreSQL.
    package let logBytes: Int
    /// The number of round trips to the server; 0 with SQLite.
    package let roundTrips: Int
}

extension Optional {
    /// The value, if there is one.
    ///
    /// - Throws: ``DomainError/notFound`` for `nil`.
    func orNotFound() throws(DomainError) -> Wrapped {
        guard let self else { throw .notFound }
        return self
    }
}
