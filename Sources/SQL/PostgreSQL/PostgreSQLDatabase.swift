package import Base

extension Database {
    /// Opens the database of a server and migrates its schema.
    ///
    /// - Parameters:
    ///   - node: The name of this process. An earlier process of the same name loses its place.
    ///   - contents: The location of the files that rows refer to, if other nodes share it.
    ///   - document: The initial description of this process for other nodes.
    ///   - readers: The number of connections for each kind of reader.
    ///   - migrations: By ascending version.
    ///   - longestRead: The time limit of a closure that reads.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread if the outcome of a commit cannot be determined or the node's
    ///     place was taken. It must end the process without resuming any caller.
    /// - Throws: ``SQLError/Code/unreachable``, ``SQLError/Code/unknownSchema`` for a database of a newer or too old
    ///   program, ``SQLError/Code/superseded`` if another node holds the store.
    package static func open(
        _ server: PostgreSQLServer, node id: String, contents: String? = nil, document: [UInt8]? = nil,
        readers: Int = 2,
        longestRead: Duration = .seconds(5), migrations: [Migration], log: Log,
        onCommit: @escaping @Sendable (Commit) -> Void = { _ in },
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try open(
            server, node: PostgreSQLNode(id: id, contents: contents, document: document),
            limits: PostgreSQLWriter.Limits(),
            readers: readers, longestRead: longestRead, migrations: migrations, log: log, onCommit: onCommit,
            onFatalError: onFatalError)
    }

    static func open(
        _ server: PostgreSQLServer, node: PostgreSQLNode, limits: PostgreSQLWriter.Limits, readers: Int,
        longestRead: Duration, migrations: [Migration], log: Log, onCommit: @escaping @Sendable (Commit) -> Void,
        onFatalError: @escaping @Sendable (SQLError) -> Never
    ) throws(SQLError) -> Database {
        try PostgreSQLScript(server).migrate(migrations)
        let connection = try PostgreSQLConnection(server)
        var node = node
        try node.enter(connection)

        let writes = Mailbox<Job>()
        let state = WriterState()
        let writer = PostgreSQLWriter(
            connection, node, waiting: writes, limits: limits, state: state, log: log, onCommit: onCommit,
            onFatalError: onFatalError)
        func makeReaders(_ name: String) throws(SQLError) -> Readers {
            try Readers(name, count: readers, longestRead: longestRead) { () throws(SQLError) in
                try PostgreSQLConnection(server)
            }
        }
        return Database(
            path: nil, writes: writes, readers: (try makeReaders("store-requests"), try makeReaders("store-loops")),
            writer: try thread("store-write") { writer.work(on: writes) }, state: state)
    }
}
