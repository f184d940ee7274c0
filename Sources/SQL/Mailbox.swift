import Base

/// A queue of work for the threads that receive it, in the order of arrival.
final class Mailbox<Item: Sendable>: Sendable {
    enum Delivery {
        case items([Item])
        /// No item arrived in time.
        case nothing
        /// Closed and empty.
        case closed
    }

    private struct State {
        var items: [Item] = []
        var isClosed = false

        /// The delivery for a thread now; `nil` if the thread has to wait.
        mutating func delivery(atMost limit: Int) -> Delivery? {
            guard !items.isEmpty else { return isClosed ? .closed : nil }
            if items.count <= limit { return .items(items.takeAll()) }
            defer { items.removeFirst(limit) }
            return .items(Array(items[..<limit]))
        }
    }

    private let state = Monitor(State())

    /// Adds an item, unless the mailbox is closed.
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

    /// The number of items not yet received.
    var count: Int { state.withLock { $0.items.count } }

    /// Receives at most `limit` items, and waits while there is none.
    ///
    /// - Parameter patience: The maximum wait; `nil` waits without limit.
    func take(atMost limit: Int, patience: Duration? = nil) -> Delivery {
        guard let patience else { return state.wait { $0.delivery(atMost: limit) } }
        return state.wait(atMost: patience) { $0.delivery(atMost: limit) } ?? .nothing
    }

    /// Rejects further items. The present items are still delivered.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }
}
