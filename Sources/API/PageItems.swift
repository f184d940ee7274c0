import Wire

/// The items of a page as JSON text, as many as one answer may have.
///
/// Clients choose how many items a page has, apps and origins how large they are: only the bytes bound what it costs.
struct PageItems {
    /// 4 MiB, with room for what stands around the items.
    private static let maximumBytes = (4 << 20) - 1024
    /// Records read at a time, so that what is not written is not held.
    static let readAtOnce = 50

    private(set) var count = 0
    private var bytes: [UInt8] = []
    private var room = maximumBytes

    /// The items with commas between them, as the one text that an array of them has between its brackets.
    var texts: [JSONText] { count == 0 ? [] : [JSONText(knownValid: bytes)] }

    /// Adds an item, the first one however long it is.
    ///
    /// - Returns: False when the page is full and the item left out.
    mutating func add(_ item: some JSONWritable) -> Bool {
        let text = item.jsonBytes
        room -= text.count + 1
        guard room >= 0 || count == 0 else { return false }
        if count > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes += text
        count += 1
        return true
    }
}
