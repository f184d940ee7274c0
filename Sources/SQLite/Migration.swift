import CSQLite

/// One step of the schema, done once in the life of a database.
package struct Migration: Sendable {
    /// What `PRAGMA user_version` says afterwards: 1 and up.
    package let version: Int
    /// Statements, separated by semicolons.
    package let sql: StaticString

    package init(version: Int, sql: StaticString) {
        precondition(version > 0 && version <= Int(Int32.max))
        self.version = version
        self.sql = sql
    }
}

extension Connection {
    /// The version of the schema in the file; 0 for a new one.
    func schemaVersion() throws(SQLiteError) -> Int {
        try value("PRAGMA user_version") { $0.int(0) } ?? 0
    }

    /// Refuses a file that a newer program has changed, or one that is older than the first migration, before anything
    /// is touched.
    func refuseUnknownSchema(_ migrations: [Migration]) throws(SQLiteError) {
        let found = try schemaVersion()
        if let newest = migrations.last?.version, found > newest {
            throw SQLiteError(
                code: SQLITE_SCHEMA,
                message: "the database has schema version \(found), this program knows versions up to \(newest):"
                    + " run the newer program, or restore a backup")
        }
        if let oldest = migrations.first?.version, found > 0, found < oldest {
            throw SQLiteError(
                code: SQLITE_SCHEMA,
                message: "the database has schema version \(found), this program knows versions from \(oldest) on:"
                    + " run the older program, or begin with an empty data directory")
        }
    }

    /// Brings the schema to the last version, each step in a transaction of its own.
    func migrate(_ migrations: [Migration]) throws(SQLiteError) {
        precondition(
            zip(migrations, migrations.dropFirst()).allSatisfy { $0.version < $1.version }, "migrations out of order")
        for migration in migrations {
            try execute("BEGIN IMMEDIATE")
            do throws(SQLiteError) {
                if try schemaVersion() < migration.version { try apply(migration) }
                try execute("COMMIT")
            } catch {
                if !isAutocommit { try execute("ROLLBACK") }
                throw SQLiteError(
                    code: error.code, message: "migration to version \(migration.version): \(error.message)")
            }
        }
    }

    private func apply(_ migration: Migration) throws(SQLiteError) {
        try script(String(describing: migration.sql))
        // A pragma takes no parameter; the number is ours.
        try script("PRAGMA user_version = \(migration.version)")
    }

    private func script(_ sql: String) throws(SQLiteError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code) }
    }
}
