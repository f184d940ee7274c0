/// One connection to a database, for the one thread that made or was given it.
///
/// SQL is a literal in the words that SQLite and PostgreSQL share: it cannot be built at run time, so nothing can be
/// injected, and the statements kept prepared are as many as the source code has. Its parameters are `?1`, `?2` and on.
package class Connection {
    // MARK: Statements

    /// Runs a statement to its end. What is wrong with it may be told by a later one of the same transaction.
    package func execute(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) {
        try enqueue(sql, values)
    }

    /// Runs an INSERT, UPDATE or DELETE, and answers how many rows it touched.
    package func change(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Int {
        try changes(of: sql, values)
    }

    /// Runs a statement that inserts one row, and answers the number that the row was given as its `id`.
    package func insert(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Int64 {
        try number(of: sql, values)
    }

    /// The first row of the answer as `read` sees it, or `nil` when there is none.
    @inlinable
    package func first<T>(
        _ sql: StaticString, _ values: (any SQLBindable)?..., read: (Row) throws -> T
    ) throws -> T? {
        var result: Result<T, any Error>?
        try run(sql, values) { row throws(SQLError) in
            result = Result { try read(row) }
            return false
        }
        return try result?.get()
    }

    /// Whether the answer has a row.
    package func exists(_ sql: StaticString, _ values: (any SQLBindable)?...) throws(SQLError) -> Bool {
        var exists = false
        try run(sql, values) { _ throws(SQLError) in
            exists = true
            return false
        }
        return exists
    }

    /// All rows of the answer as `read` sees them, or those before the first that `goesOn` is not true of.
    @inlinable
    package func all<T>(
        _ sql: StaticString, _ values: (any SQLBindable)?..., while goesOn: (Row) -> Bool = { _ in true },
        read: (Row) throws -> T
    ) throws -> [T] {
        var result: [T] = []
        var failure: (any Error)?
        try run(sql, values) { row throws(SQLError) in
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

    /// All rows of the answers to one statement for each list of values. A server is waited for once.
    package func allOfEach<T>(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], read: @escaping (Row) throws -> T
    ) throws -> [[T]] {
        try ask(sql, lists, read: read).get()
    }

    /// Asks for all rows of the answers to one statement for each list of values, which are read later: a server is waited
    /// for once for all that was asked of it until then.
    package func ask<T>(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], read: @escaping (Row) throws -> T
    ) throws -> Asked<T> {
        let asked = Asked<T>(lists.count, of: self)
        try runEach(sql, lists, end: asked.end) { index, row in asked.take(row, of: index, read) }
        return asked
    }

    /// Shows each row to `body` until it returns `false`.
    package func forEach(
        _ sql: StaticString, _ values: (any SQLBindable)?..., body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) {
        try run(sql, values, body)
    }

    /// The one value of an answer that has no other.
    func value<T>(_ sql: StaticString, read: (Row) -> T) throws(SQLError) -> T? {
        var value: T?
        try run(sql, []) { row throws(SQLError) in
            value = read(row)
            return false
        }
        return value
    }

    // MARK: What an engine does

    /// Runs a statement and shows each row to `body` until it says stop (`false`).
    @usableFromInline
    func run(
        _ sql: StaticString, _ values: [(any SQLBindable)?], _ body: (Row) throws(SQLError) -> Bool
    ) throws(SQLError) { preconditionFailure("an engine's") }

    /// Runs a statement for each list of values and shows each row, with the list's index: at once, or at the latest when
    /// ``waitForAnswers()`` returns.
    ///
    /// - Parameter end: Called behind the last row.
    func runEach(
        _ sql: StaticString, _ lists: [[(any SQLBindable)?]], end: @escaping () -> Void,
        _ body: @escaping (Int, Row) -> Void
    ) throws(SQLError) {
        for (index, values) in lists.enumerated() {
            try run(sql, values) { row throws(SQLError) in
                body(index, row)
                return true
            }
        }
        end()
    }

    /// Waits until all is answered that was asked.
    func waitForAnswers() throws(SQLError) {}

    /// Runs a statement without waiting for its answer.
    func enqueue(_ sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) {
        preconditionFailure("an engine's")
    }

    /// Runs a statement and answers how many rows it touched.
    func changes(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int {
        preconditionFailure("an engine's")
    }

    /// Runs an INSERT of one row and answers the row's `id`.
    func number(of sql: StaticString, _ values: [(any SQLBindable)?]) throws(SQLError) -> Int64 {
        preconditionFailure("an engine's")
    }

    /// Runs a statement for each list of values, in any order. A server gets few statements that do it for many.
    ///
    /// - Parameter sql: `INSERT INTO … VALUES (?1, …)`; or `UPDATE` or `DELETE` whose last `WHERE` is its own and whose
    ///   lists are about different rows.
    package func executeAll(_ sql: StaticString, _ lists: [[(any SQLBindable)?]]) throws(SQLError) {
        for values in lists { try enqueue(sql, values) }
    }

    /// Numbers that no row of the table has had, in rising order: the `id` of rows that the transaction inserts next.
    ///
    /// There may be gaps, between them and before them: others draw numbers too, and those of an undone transaction are
    /// lost on a server. SQLite gives the same ones out until rows have them, so they are asked for once before each
    /// insertion.
    package func newNumbers(_ count: Int, of table: String) throws(SQLError) -> [Int64] {
        preconditionFailure("an engine's")
    }

    /// Gives some of the room that deleted rows left back to the file system, within a transaction that writes.
    ///
    /// - Returns: Whether there may be more. A server sees to that by itself.
    package func returnFreePages() throws(SQLError) -> Bool { false }

    // MARK: Nodes

    /// The processes that share the database, by their names. A file has none.
    package func nodes() throws(SQLError) -> [Node] { [] }

    /// Takes the places of nodes that have been silent for too long: what they have begun they cannot commit any more.
    ///
    /// - Parameter node: Who asks, and lives.
    /// - Returns: Their names.
    package func buryNodes(but node: String) throws(SQLError) -> [String] { [] }

    /// Says of a node what others may know.
    package func describe(node: String, as document: [UInt8]) throws(SQLError) {}

    /// Asks a node to take nothing more.
    ///
    /// - Returns: Whether there is one of that name.
    package func drain(node: String) throws(SQLError) -> Bool { false }

    /// Runs `body` in a read transaction: all that it reads is of one moment.
    ///
    /// - Parameter deadline: When it is interrupted, by the monotonic clock in milliseconds.
    func read<Result>(until deadline: Int64, _ body: (Connection) throws -> Result) throws -> Result {
        preconditionFailure("an engine's")
    }
}

@available(*, unavailable)
extension Connection: Sendable {}
