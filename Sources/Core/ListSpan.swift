/// The direction of a list.
package enum ListOrder: String, CaseIterable, Sendable {
    /// In order of creation.
    case ascending = "asc"
    /// Newest first.
    case descending = "desc"
}

/// The wanted part of a list, and its direction.
package struct ListSpan: Hashable, Sendable {
    package var order: ListOrder
    /// Only items created after this moment.
    package var createdAfter: Timestamp?
    /// Only items created before this moment.
    package var createdBefore: Timestamp?

    package var isDescending: Bool { order == .descending }

    package init(
        _ order: ListOrder = .ascending, createdAfter: Timestamp? = nil, createdBefore: Timestamp? = nil
    ) {
        self.order = order
        self.createdAfter = createdAfter
        self.createdBefore = createdBefore
    }

    /// The wanted part of a whole list in order of creation, in the wanted direction.
    package func part<Item>(of items: [Item], createdAt: (Item) -> Timestamp) -> [Item] {
        let wanted = items.filter { item in
            let time = createdAt(item)
            return createdAfter.map { $0 < time } ?? true && createdBefore.map { time < $0 } ?? true
        }
        return order == .ascending ? wanted : wanted.reversed()
    }
}
