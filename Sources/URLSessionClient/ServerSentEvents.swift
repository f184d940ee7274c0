/// Extracts the data of server-sent events from bytes as they arrive (WHATWG HTML, section 9.2.6).
///
/// Only the field `data` is used: the data repeats the other fields.
struct ServerSentEvents {
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    /// Whether the last byte was a carriage return: a following line feed belongs to the same end of line.
    private var endedWithReturn = false

    /// - Returns: The data of the events that these bytes complete.
    mutating func add(_ bytes: [UInt8]) -> [[UInt8]] {
        var events: [[UInt8]] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n"), endedWithReturn {
                endedWithReturn = false
                continue
            }
            endedWithReturn = byte == UInt8(ascii: "\r")
            guard byte == UInt8(ascii: "\n") || endedWithReturn else {
                line.append(byte)
                continue
            }
            if let event = endLine() { events.append(event) }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func endLine() -> [UInt8]? {
        guard !line.isEmpty else {
            defer { (data, hasData) = ([], false) }
            return hasData ? data : nil
        }
        let name = Array("data".utf8)
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        guard line[..<colon].elementsEqual(name) else { return nil }
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        if hasData { data.append(UInt8(ascii: "\n")) }
        data += value
        hasData = true
        return nil
    }
}
