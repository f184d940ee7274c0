/// A page of a list.
public struct Page<Item: MemberValue & Hashable & Sendable>: Shape {
    /// The items, in the list's order.
    public var items: [Item] = []
    /// The `?cursor=` of the next page; `nil` at the end.
    public var nextCursor: String?

    public init() {}

    public init(items: [Item], nextCursor: String?) {
        self.items = items
        self.nextCursor = nextCursor
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("items", &items)
        members.nullable("nextCursor", &nextCursor)
    }
}
