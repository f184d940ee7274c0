/// Rows requested from a connection and not read yet, within one transaction.
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

    /// Marks all rows as received.
    func end() { isAnswered = true }

    /// The rows, for each list of values.
    ///
    /// - Throws: ``SQLError/Code/answersLost`` if the connection broke after a successful commit.
    package func get() throws -> [[Item]] {
        if !isAnswered { try connection.waitForAnswers() }
        if let failure { throw failure }
        guard isAnswered else { throw SQLError(.answersLost, "the answers that came with a commit were lost") }
        return items
    }
}
