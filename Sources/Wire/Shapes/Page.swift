/// A part of a list.
public struct Page<Item> {
    /// The items, in the list's order.
    public var items: [Item]
    /// What `?cursor=` takes to go on; `nil` at the end.
    public var nextCursor: String?

    /// Makes a page.
    public init(items: [Item], nextCursor: String?) {
        self.items = items
        self.nextCursor = nextCursor
    }
}

extension Page: Sendable where Item: Sendable {}
extension Page: Equatable where Item: Equatable {}
extension Page: Hashable where Item: Hashable {}

extension Page: JSONWritable where Item: JSONWritable {
    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("items", items)
            writer.member("nextCursor", nextCursor)
        }
    }
}

extension Page: JSONReadable where Item: JSONReadable {
    /// Reads a page.
    public init(reading reader: inout ObjectReader) {
        items = reader.objects("items")
        nextCursor = reader.optionalString("nextCursor")
    }
}
