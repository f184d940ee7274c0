package import Base
package import Core
package import SQL

/// The domain at rest: one method for each use, one transaction for each method.
///
/// Time, identifiers and randomness are arguments. Every method that changes something is durable when it returns.
package final class Store: Sendable {
    let database: Database
    let documents: Documents
    let policies: Policies
    /// What this process is called among those that share the store; nil with a file, which has one.
    package let node: String?
    /// The last lane that was looked at for being idle.
    let idleLaneCursor = Locked<Int64>(0)

    /// What the store must know to keep its promises.
    package struct Policies: Sendable {
        /// How long contents live once their event is acknowledged.
        package var contentRetention: Duration
        /// How long contents live while it is not.
        package var unacknowledgedRetention: Duration
        /// Whether a client is attached to a session, or was a moment ago. The service keeps this in memory.
        package var presence: @Sendable (SessionID) -> Presence

        package init(
            contentRetention: Duration, unacknowledgedRetention: Duration,
            presence: @escaping @Sendable (SessionID) -> Presence
        ) {
            self.contentRetention = contentRetention
            self.unacknowledgedRetention = unacknowledgedRetention
            self.presence = presence
        }
    }

    /// Where the database is.
    package enum Place: Sendable {
        /// A file of SQLite.
        case file(String)
        /// A PostgreSQL server, in which this process has a name. Nodes share it that keep contents in one place.
        case server(PostgreSQLServer, node: String, contents: String? = nil)

        /// Whether other nodes may have it as well.
        package var isShared: Bool { if case .server = self { true } else { false } }
    }

    /// Opens the database, bringing an older schema forward.
    ///
    /// - Parameters:
    ///   - profile: What the process says of itself to the others, where it shares the store.
    ///   - onFatalError: Ends the process: a commit in doubt cannot be repaired while the process runs.
    package init(
        _ place: Place, profile: NodeProfile? = nil, sealer: Sealer, policies: Policies, log: Log,
        onCommit: @escaping @Sendable (StoreCommit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (any Error) -> Never
    ) throws {
        documents = Documents(sealer: sealer)
        let readers = max(2, min(8, SystemLoad.cores))
        let tell = { @Sendable (commit: Commit) in
            onCommit(
                StoreCommit(
                    writes: commit.writes, duration: commit.duration, logBytes: commit.logBytes,
                    roundTrips: commit.roundTrips))
        }
        switch place {
        case .file(let path):
            node = nil
            database = try Database.open(
                path: path, readers: readers, migrations: Schema.migrations, log: log, onCommit: tell,
                onFatalError: { onFatalError($0) })
        case .server(let server, let node, let contents):
            self.node = node
            database = try Database.open(
                server, node: node, contents: contents, document: profile.map(documents.encode), readers: readers,
                migrations: Schema.migrations, log: log,
                onCommit: tell, onFatalError: { onFatalError($0) })
        }
        self.policies = policies
    }

    /// Runs a loop of the service, whose reads do not wait behind those of requests.
    package static func loop<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Database.$readingParty.withValue(.loops, operation: body, isolation: isolation)
    }

    /// Does what a loop begins with, and again each second while something is in its way.
    ///
    /// - Throws: What another try would end with as well; `CancellationError`.
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

    /// Threads on which the reads of requests need no other, for whom an owner's tasks take turns with others'.
    package func readers(of owner: Int64) -> any TaskExecutor { database.readers(for: .requests).turns(of: owner) }

    package func close() { database.close() }

    package func backup(to path: String) async throws { try await database.backup(to: path) }

    /// Proves that the database can be written.
    package func probe(at now: Timestamp) async throws {
        try await database.write { db in
            try db.execute(
                "INSERT INTO setting (name, document) VALUES ('probe', ?1) ON CONFLICT (name) DO UPDATE SET document = ?1",
                [UInt8](String(now.milliseconds).utf8))
        }
    }
}

/// What a commit came to.
package struct StoreCommit: Sendable {
    /// Changes that it made durable.
    package let writes: Int
    package let duration: Duration
    /// Length of the write-ahead log after it; 0 where a server has the store.
    package let logBytes: Int
    /// Times that a server was waited for; 0 with a file.
    package let roundTrips: Int
}

extension Optional {
    /// What was looked for.
    ///
    /// - Throws: ``DomainError/notFound`` where there is none.
    func orNotFound() throws(DomainError) -> Wrapped {
        guard let self else { throw .notFound }
        return self
    }
}
