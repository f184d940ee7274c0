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
}
