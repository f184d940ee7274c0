/// The fence of a process's commit groups: a row that the process holds with a random token.
///
/// A process whose row has another token cannot commit. The table and the statements belong to the creator of the fence.
/// The writer draws the tokens, numbers the groups, and calls each function with its own connection, in a transaction.
package struct Fence: Sendable {
    /// The interval between two signatures of a process without work.
    let heartbeat: Duration
    /// Claims the row, before the first group.
    let enter: @Sendable (_ db: Connection, _ token: Int64) throws(SQLError) -> Void
    /// Stores the number of a group in the row, without waiting: the last statement before the commit. The transaction
    /// fails with a division by zero if the process does not hold the row, because nothing else fails a transaction from
    /// within a pipeline.
    let sign: @Sendable (_ db: Connection, _ token: Int64, _ number: Int64) throws(SQLError) -> Void
    /// Replaces the token and returns the number of the last committed group; `nil` if the row has neither token. A
    /// repeated call has the same new token.
    let settle: @Sendable (_ db: Connection, _ token: Int64, _ next: Int64) throws(SQLError) -> Int64?
    /// Deletes the row, at the end.
    let leave: @Sendable (_ db: Connection, _ token: Int64) throws(SQLError) -> Void

    package init(
        heartbeat: Duration, enter: @escaping @Sendable (Connection, Int64) throws(SQLError) -> Void,
        sign: @escaping @Sendable (Connection, Int64, Int64) throws(SQLError) -> Void,
        settle: @escaping @Sendable (Connection, Int64, Int64) throws(SQLError) -> Int64?,
        leave: @escaping @Sendable (Connection, Int64) throws(SQLError) -> Void
    ) {
        self.heartbeat = heartbeat
        self.enter = enter
        self.sign = sign
        self.settle = settle
        self.leave = leave
    }
}
