package import Base

extension Database {
    /// Opens the database of a server and brings its schema up to the last migration.
    ///
    /// - Parameters:
    ///   - node: What this process is called in it. A process of the same name loses its place.
    ///   - contents: Where the files are that rows tell of, where other nodes have them as well.
    ///   - document: What the process says of itself from the start.
    ///   - readers: Connections that read, for each party.
    ///   - migrations: By ascending version.
    ///   - longestRead: How long a closure that reads may run.
    ///   - onCommit: Called on the writing thread after each commit that wrote something.
    ///   - onFatalError: Called on the writing thread when the outcome of a commit cannot be found out, or the node's place
    ///     was taken. It must end the process without answering anybody.
    /// - Throws: ``SQLError/Code/unreachable``, ``SQLError/Code/unknownSchema`` for a database of a newer program or of one
    ///   too old, ``SQLError/Code/superseded`` where another node has the store.
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
