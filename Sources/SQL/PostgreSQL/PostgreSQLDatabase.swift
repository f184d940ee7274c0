package import Base

extension Database {
    /// Opens the database of a server and migrates its schema.
    ///
    /// - Parameters:
    ///   - fence: Decides whether this process may commit.
    ///   - readers: The number of connections for each kind of reader.
    ///   - migrations: By ascending version.
    ///   - longestRead: The time limit of a closure that reads.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread if the outcome of a commit cannot be determined or another process
    ///     holds the fence. It must end the process without resuming any caller.
    /// - Throws: ``SQLError/Code/unreachable``, ``SQLError/Code/unknownSchema`` for a database of a newer or too old
    ///   program; the errors of the fence.
    package static func open(
        _ server: PostgreSQLServer, fence: Fence, readers: Int = 2, longestRead: Duration = .seconds(5),
        migrations: [Migration], log: Log, onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try open(
            server, fence: fence, limits: PostgreSQLWriter.Limits(heartbeat: Int64(fence.heartbeat / .milliseconds(1))),
            readers: readers, longestRead: longestRead, migrations: migrations, log: log, onCommit: onCommit,
            onFatalError: onFatalError)
    }

    static func open(
        _ server: PostgreSQLServer, fence: Fence, limits: PostgreSQLWriter.Limits, readers: Int,
        longestRead: Duration, migrations: [Migration], log: Log, onCommit: @escaping @Sendable (Commit) -> Void,
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try PostgreSQLScript(server).migrate(migrations)
        let connection = try PostgreSQLConnection(server)
        let token = PostgreSQLWriter.drawToken()
        try connection.transact { db throws(SQLError) in try fence.enter(db, token) }

        let writes = JobQueue()
        let writer = PostgreSQLWriter(
            connection, fence, token: token, waiting: writes, limits: limits, log: log, onCommit: onCommit,
            onFatalError: onFatalError)
        func makeReaders(_ name: String) throws(SQLError) -> Readers {
            try Readers(name, count: readers, longestRead: longestRead) { () throws(SQLError) in
                try PostgreSQLConnection(server)
            }
        }
        return Database(
            writes: writes, readers: (try makeReaders("store-requests"), try makeReaders("store-loops")),
            writer: try thread("store-write") { writer.work(on: writes) })
    }
}
