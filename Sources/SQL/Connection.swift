/// One connection to a database, used by one thread at a time.
///
/// SQL is a literal in the dialect that SQLite and PostgreSQL share. It cannot be built at run time, so nothing can be
/// injected, and the number of prepared statements is bounded by the source code. Parameters are `?1`, `?2` and so on.
package class Connection {
    // MARK: Statements

    /// Runs a statement to its end. A later statement of the same transaction may throw its error.
    package func execute(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) {
        try enqueue(sql, values)
    }

    /// Runs an INSERT, UPDATE or DELETE, and returns the number of affected rows.
    package func change(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Int {
        try changes(of: sql, values)
    }

    /// Runs a statement that inserts one row, and returns the row's `id`.
    package func insert(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Int64 {
        try number(of: sql, values)
    }

    /// The first row of the result, converted by `read`; `nil` if there is none.
    @inlinable
    package func first<T>(
        _ sql: StaticString, _ values: (any SQLBindable)?..., read: (Row) throws -> T
    ) throws -> T? {
        var result: Result<T, any Error>?
        try run(sql, values, descending: false) { row throws(SQLError) in
            result = Result { try read(row) }
            return false
        }
        return try result?.get()
    }

    /// Whether the result has a row.
    package func exists(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Bool {
        var exists = false
        try run(sql, values, descending: false) { _ throws(SQLError) in
            exists = true
            return false
        }
        return exists
    }

    /// All rows of the result, converted by `read`, up to the first for which `goesOn` is false.
    ///
    /// - Parameter descending: Whether the rows come in the opposite of the order `ASC` before the statement's `LIMIT`.
    @inlinable
    package func all<T>(
        _ sql: StaticString, _ values: (any SQLBindable)?..., descending: Bool = false,
        while goesOn: (Row) -> Bool = { _ in true }, read: (Row) throws -> T
    ) throws -> [T] {
        var result: [T] = []
        var failure: (any Error)?
        try run(sql, values, descending: descending) { row throws(SQLError) in
            guard goesOn(row) else { return false }
            do {
                result.append(try read(row))
            } catch {
                failure = error
            }
            return failure == nil
        }
        if let failure { throw failure }
        return result
    }

    /// All rows of one statement for each list of values. Costs one round trip with PostgreSQL.
    package func allOfEach<T>(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], read: @escaping (Row) throws -> T
    ) throws -> [[T]] {
        try ask(sql, lists, read: read).get()
    }

    /// Requests all rows of one statement for each list of values, to be read later. With PostgreSQL, all requests
    /// before the first read share a round trip.
    package func ask<T>(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], read: @escaping (Row) throws -> T
    ) throws -> Asked<T> {
        let asked = Asked<T>(lists.count, of: self)
        try runEach(sql, lists, end: asked.end) { index, row in asked.take(row, of: index, read) }
        return asked
    }

    /// Passes each row to `body` until `body` returns `false`.
    package func forEach(
        _ sql: StaticString, _ values: (any SQLBindable)?..., body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        try run(sql, values, descending: false, body)
    }

    /// A value of the first row of the result; `nil` if there is none.
    package func value<T>(
        _ sql: StaticString, _ values: (any SQLBindable)?..., read: (Row) -> T
    ) throws(SQLError) -> T? {
        var value: T?
        try run(sql, values, descending: false) { row throws(SQLError) in
            value = read(row)
            return false
        }
        return value
    }

    // MARK: Engine overrides

    /// Runs a statement, or its twin in the opposite order, and passes each row to `body` until `body` returns `false`.
    @usableFromInline
    func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], descending: Bool,
        _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) { preconditionFailure("an engine's") }

    /// Runs a statement for each list of values and passes each row with its list's index: at once, or at the latest
    /// when ``waitForAnswers()`` returns.
    ///
    /// - Parameter end: Called after the last row.
    func runEach(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], end: @escaping () -> Void,
        _ body: @escaping (Int, Row) -> Void
    ) throws(SQLError) {
        for (index, values) in lists.enumerated() {
            try run(sql, values, descending: false) { row throws(SQLError) in
                body(index, row)
                return true
            }
        }
        end()
    }

    /// Waits for the rows of all requests.
    func waitForAnswers() throws(SQLError) {}

    /// Runs a statement without waiting for its result.
    func enqueue(_ sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) {
        preconditionFailure("an engine's")
    }

    /// Runs a statement and returns the number of affected rows.
    func changes(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int {
        preconditionFailure("an engine's")
    }

    /// Runs an INSERT of one row and returns the row's `id`.
    func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        preconditionFailure("an engine's")
    }

    /// Runs a statement for each list of values, in any order. PostgreSQL gets one statement for many lists.
    ///
    /// - Parameter sql: `INSERT INTO … VALUES (?1, …)`, with `ON CONFLICT` if needed; or `UPDATE` or `DELETE` whose last
    ///   `WHERE` is its own. The lists refer to different rows.
    package func executeAll(_ sql: StaticString, _ lists: [[(any SQLBindable)?]]) throws(SQLError) {
        for values in lists { try enqueue(sql, values) }
    }

    /// Numbers that no row of the table has had, in rising order: the `id` of rows that the transaction inserts next.
    ///
    /// There may be gaps, because other nodes draw numbers too, and PostgreSQL does not reuse the numbers of an undone
    /// transaction. SQLite returns the same numbers until rows have them, so callers request them once before each
    /// insertion.
    package func newNumbers(_ count: Int, of table: String) throws(SQLError) -> [Int64] {
        preconditionFailure("an engine's")
    }

    /// Returns some free pages of deleted rows to the file system, within a transaction that writes.
    ///
    /// - Returns: Whether there may be more. PostgreSQL needs no such call.
    package func returnFreePages() throws(SQLError) -> Bool { false }

    /// Runs `body` in a read transaction with one snapshot.
    ///
    /// - Parameter deadline: When the read is interrupted, by the monotonic clock in milliseconds.
    func read<Result>(until deadline: Int64, _ body: (Connection) throws -> Result) throws -> Result {
        preconditionFailure("an engine's")
    }
}

@available(*, unavailable)
extension Connection: Sendable {}

extension StaticString {
    /// The statement, or its twin in the opposite order.
    func text(descending: Bool) -> String {
        descending ? description.replacing(" ASC LIMIT", with: " DESC LIMIT") : description
    }
}
