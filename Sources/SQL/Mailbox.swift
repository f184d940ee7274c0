import Base

/// Work waiting for the threads that take it, in the order it came.
final class Mailbox<Item: Sendable>: Sendable {
    enum Delivery {
        case items([Item])
        /// Nothing came in time.
        case nothing
        /// Closed, and all that was put in is taken.
        case closed
    }

    private struct State {
        var items: [Item] = []
        var isClosed = false

        /// What a thread gets now; nil where it has to wait.
        mutating func delivery(atMost limit: Int) -> Delivery? {
            guard !items.isEmpty else { return isClosed ? .closed : nil }
            if items.count <= limit { return .items(items.takeAll()) }
            defer { items.removeFirst(limit) }
            return .items(Array(items[..<limit]))
        }
    }

    private let state = Monitor(State())

    /// Adds one, unless the mailbox is closed.
    ///
    /// - Returns: Whether the item will be received.
    func put(_ item: Item) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isClosed { state.items.append(item) }
            return !state.isClosed
        }
        if isTaken { state.wakeOne() }
        return isTaken
    }

    /// How many wait now.
    var count: Int { state.withLock { $0.items.count } }

    /// Takes what waits, at most `limit`, and waits for the first when there is none.
    ///
    /// - Parameter patience: How long to wait; `nil` waits for ever.
    func take(atMost limit: Int, patience: Duration? = nil) -> Delivery {
        guard let patience else { return state.wait { $0.delivery(atMost: limit) } }
        return state.wait(atMost: patience) { $0.delivery(atMost: limit) } ?? .nothing
    }

    /// Takes no more in. What is in is still delivered.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }
}
