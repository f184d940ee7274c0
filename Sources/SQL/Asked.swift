/// Rows that a connection was asked for, within the transaction.
package final class Asked<Item> {
    private let connection: Connection
    private var items: [[Item]]
    private var failure: (any Error)?
    private var isAnswered = false

    init(_ lists: Int, of connection: Connection) {
        self.connection = connection
        items = [[Item]](repeating: [], count: lists)
    }

    func take(_ row: Row, of list: Int, _ read: (Row) throws -> Item) {
        guard failure == nil else { return }
        do {
            items[list].append(try read(row))
        } catch {
            failure = error
        }
    }

    /// All rows have been taken.
    func end() { isAnswered = true }

    /// What was read, for each list of values.
    ///
    /// - Throws: ``SQLError/Code/answersLost`` after a commit that happened though its connection broke.
    package func get() throws -> [[Item]] {
        if !isAnswered { try connection.waitForAnswers() }
        if let failure { throw failure }
        guard isAnswered else { throw SQLError(.answersLost, "the answers that came with a commit were lost") }
        return items
    }
}
