import Wire

/// The items of a page as JSON text, as many as fit into one response.
///
/// Clients choose the number of items, apps and origins their size: only the limit of bytes bounds the cost of a page.
struct PageItems {
    /// 4 MiB, less the text around the items.
    private static let maximumBytes = (4 << 20) - 1024
    /// Records read at a time, so that few records are in memory that do not fit.
    static let readAtOnce = 50
    /// Records that a search reads at a time: few of them become items.
    static let searchedAtOnce = 500

    private(set) var texts: [JSONText] = []
    /// Bytes of all items with the commas between them.
    private(set) var bytes = 0

    var count: Int { texts.count }

    /// Adds an item, the first one however long it is.
    ///
    /// - Returns: False if the page is full and the item is left out.
    mutating func add(_ item: some JSONWritable) -> Bool {
        let text = JSONText(item)
        guard bytes + text.bytes.count < Self.maximumBytes || texts.isEmpty else { return false }
        bytes += text.bytes.count + 1
        texts.append(text)
        return true
    }
}
