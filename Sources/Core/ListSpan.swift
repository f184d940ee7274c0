/// From which end a list is read.
package enum ListOrder: String, CaseIterable, Sendable {
    /// In the order in which things were created.
    case ascending = "asc"
    /// The newest first.
    case descending = "desc"
}

/// Which part of a list is wanted, and from which end.
package struct ListSpan: Hashable, Sendable {
    package var order: ListOrder
    /// Only what was created after this moment.
    package var createdAfter: Timestamp?
    /// Only what was created before this moment.
    package var createdBefore: Timestamp?

    package init(
        _ order: ListOrder = .ascending, createdAfter: Timestamp? = nil, createdBefore: Timestamp? = nil
    ) {
        self.order = order
        self.createdAfter = createdAfter
        self.createdBefore = createdBefore
    }

    /// Of a whole list, in the order of creation, what is wanted, from that end.
    package func part<Item>(of items: [Item], createdAt: (Item) -> Timestamp) -> [Item] {
        let wanted = items.filter { item in
            let time = createdAt(item)
            return createdAfter.map { $0 < time } ?? true && createdBefore.map { time < $0 } ?? true
        }
        return order == .ascending ? wanted : wanted.reversed()
    }
}
