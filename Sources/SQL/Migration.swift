/// One step of the schema, done once in the life of a database.
package struct Migration: Sendable {
    /// What the database says of itself afterwards: 1 and up.
    package let version: Int
    /// Statements, separated by semicolons.
    package let sql: StaticString

    /// What a server is told besides.
    let serverSQL: StaticString

    package init(version: Int, sql: StaticString, onServer serverSQL: StaticString = "") {
        precondition(version > 0 && version <= Int(Int32.max))
        self.version = version
        self.sql = sql
        self.serverSQL = serverSQL
    }
}

extension [Migration] {
    /// Refuses a database that a newer program has changed, or one that is older than the first migration.
    ///
    /// - Parameter found: The version of its schema; 0 for a new one.
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
