/// One step of the schema, applied once to each database.
package struct Migration: Sendable {
    /// The schema version after the migration: 1 and up.
    package let version: Int
    /// Statements, separated by semicolons.
    package let sql: StaticString

    /// Further statements for PostgreSQL.
    let serverSQL: StaticString

    package init(version: Int, sql: StaticString, onServer serverSQL: StaticString = "") {
        precondition(version > 0 && version <= Int(Int32.max))
        self.version = version
        self.sql = sql
        self.serverSQL = serverSQL
    }
}

extension [Migration] {
    /// Rejects a database whose schema is newer than this program, or older than the first migration.
    ///
    /// - Parameter found: The schema version of the database; 0 for a new one.
    func check(_ found: Int) throws(SQLError) {
        precondition(zip(self, dropFirst()).allSatisfy { $0.version < $1.version }, "migrations out of order")
        if let newest = last?.version, found > newest {
            throw SQLError(
                .unknownSchema,
                "the database has schema version \(found), this program knows versions up to \(newest):"
                    + " run the newer program, or restore a backup")
        }
        if let oldest = first?.version, found > 0, found < oldest {
            throw SQLError(
                .unknownSchema,
                "the database has schema version \(found), this program knows versions from \(oldest) on:"
                    + " run the older program, or begin with an empty data directory")
        }
    }
}
