import CSQLite

extension SQLiteConnection {
    /// The version of the schema in the file; 0 for a new one.
    func schemaVersion() throws(SQLError) -> Int {
        try value("PRAGMA user_version") { $0.int(0) } ?? 0
    }

    /// Migrates the schema to the last version, each migration in a transaction of its own.
    func migrate(_ migrations: [Migration]) throws(SQLError) {
        for migration in migrations {
            try execute("BEGIN IMMEDIATE")
            do throws(SQLError) {
                if try schemaVersion() < migration.version { try apply(migration) }
                try execute("COMMIT")
            } catch {
                if !isAutocommit { try execute("ROLLBACK") }
                throw SQLError(error.code, "migration to version \(migration.version): \(error.message)")
            }
        }
    }

    private func apply(_ migration: Migration) throws(SQLError) {
        try script(String(describing: migration.sql))
        // A pragma takes no parameter. The number is not input.
        try script("PRAGMA user_version = \(migration.version)")
    }

    private func script(_ sql: String) throws(SQLError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code) }
    }
}
