/// Rows that a connection was asked for, within the transaction.
package final class Asked<Item> {
    private let connection: Connection
    private var items: [[Item]]
    private var failure: (any Error)?

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

    /// What was read, for each list of values.
    package func get() throws -> [[Item]] {
        if !items.isEmpty { try connection.waitForAnswers() }
        if let failure { throw failure }
        return items
    }
}
