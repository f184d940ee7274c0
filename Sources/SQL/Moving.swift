import Base
import Glibc

/// Copies of a whole store between a SQLite file and a PostgreSQL server.
extension Database {
    /// Loads the contents of a file into the empty database of a server.
    ///
    /// - Parameter holder: A script that returns the name of a node that holds the database, if any.
    /// - Throws: If the database is not empty or has a node, the file's schema is not the current one, or the file does
    ///   not match its digest.
    package static func load(
        _ path: String, into server: PostgreSQLServer, migrations: [Migration], holder: StaticString
    ) throws(SQLError) {
        try ExportSeal.check(path)
        let file = try SQLiteConnection(path: path, role: .reader)
        let version = try file.schemaVersion()
        guard version == migrations.last?.version else {
            throw SQLError(
                .unknownSchema,
                "\(path) has schema version \(version), this program needs \(migrations.last?.version ?? 0):"
                    + " export it with this program")
        }
        let copy = try PostgreSQLScript(server)
        try copy.migrate(migrations)
        try copy.run("BEGIN")
        if let node = try copy.run(holder.description) {
            throw SQLError(.superseded, "the node \(node) holds this store: stop it first")
        }
        try file.execute("BEGIN")
        for table in try file.tables() {
            guard try copy.run("SELECT 1 FROM \(table.name) LIMIT 1") == nil else {
                throw SQLError(.unknownSchema, "the database is not empty: it has rows in \(table.name)")
            }
            let statement = try SQLiteStatement("SELECT \(table.list) FROM \(table.name)", on: file)
            try copy.fill(table.name, table.columns.map(\.name)) { put throws(SQLError) in
                try statement.run([], on: file) { row throws(SQLError) in
                    try put(table.columns.enumerated().map { row.value($0, $1.type) })
                    return true
                }
            }
            guard table.isNumbered else { continue }
            let highest = try copy.run("SELECT max(id) FROM \(table.name)").flatMap { Int64($0) } ?? 0
            let last = max(highest, try file.lastNumber(of: table.name))
            if last > 0 { try copy.run("SELECT setval(pg_get_serial_sequence('\(table.name)', 'id'), \(last))") }
        }
        try copy.run("COMMIT")
    }

    /// Exports a consistent snapshot of a server's database into a file that does not exist.
    ///
    /// The file appears when it is complete and durable, readable by its owner alone.
    package static func export(
        _ server: PostgreSQLServer, to path: String, migrations: [Migration]
    ) throws(SQLError) {
        try write(path) { partial throws(SQLError) in
            try copyAll(of: server, into: SQLiteConnection(path: partial, role: .writer), migrations: migrations)
            try ExportSeal.append(to: partial)
        }
    }

    private static func copyAll(
        of server: PostgreSQLServer, into file: SQLiteConnection, migrations: [Migration]
    ) throws(SQLError) {
        try file.migrate(migrations)
        let copy = try PostgreSQLScript(server)
        try copy.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let version = try copy.run("SELECT version FROM schema_version")
        guard version.flatMap({ Int($0) }) == migrations.last?.version else {
            throw SQLError(
                .unknownSchema,
                "the database has schema version \(version ?? "none"): start this program on it first")
        }
        try file.execute("BEGIN")
        for table in try file.tables() {
            let places = table.columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
            let insertion = try SQLiteStatement(
                "INSERT INTO \(table.name) (\(table.list)) VALUES (\(places))", on: file)
            try copy.read(table.name, table.columns) { row throws(SQLError) in
                try insertion.run(row, on: file) { _ throws(SQLError) in true }
            }
            guard table.isNumbered else { continue }
            let last = try copy.run(
                "SELECT pg_sequence_last_value(pg_get_serial_sequence('\(table.name)', 'id')::regclass)")
            try file.note(lastNumber: last.flatMap { Int64($0) } ?? 0, of: table.name)
        }
        try file.execute("COMMIT")
    }
}

/// A table, as SQLite describes it.
private struct Table {
    var name: String
    var columns: [(name: String, type: String)]

    var list: String { columns.map(\.name).joined(separator: ", ") }
    var isNumbered: Bool { columns.contains { $0.name == "id" && $0.type == "INTEGER" } }
}

extension Row {
    /// The value of a column that has the given type.
    fileprivate func value(_ column: Int, _ type: String) -> SQLValue {
        let column = Column.position(column)
        if isNull(column) { return .null }
        return switch type {
        case "INTEGER": .integer(integer(column))
        case "REAL": .real(real(column))
        case "BLOB": .blob(blob(column))
        default: .text(text(column))
        }
    }
}

extension SQLiteConnection {
    fileprivate func tables() throws(SQLError) -> [Table] {
        var tables: [Table] = []
        try forEach(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        ) { row throws(SQLError) in
            tables.append(Table(name: row.text(0), columns: []))
            return true
        }
        for index in tables.indices {
            try forEach("SELECT name, type FROM pragma_table_info(?1)", tables[index].name) { row throws(SQLError) in
                tables[index].columns.append((row.text("name"), row.text("type")))
                return true
            }
        }
        return tables
    }

    fileprivate func note(lastNumber: Int64, of table: String) throws(SQLError) {
        let noted = try change("UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1 AND seq < ?2", table, lastNumber)
        guard noted == 0, lastNumber > 0 else { return }
        try execute(
            """
            INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence \
            WHERE name = ?1) AND EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%')
            """, table, lastNumber)
    }
}
