/// A part of a list.
public struct Page<Item: MemberValue & Hashable & Sendable>: Shape {
    /// The items, in the list's order.
    public var items: [Item] = []
    /// What `?cursor=` takes to go on; `nil` at the end.
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
