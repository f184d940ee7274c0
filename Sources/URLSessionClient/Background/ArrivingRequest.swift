import Foundation

/// A request of HTTP/1.1 that arrives in pieces, with a body of the announced length.
struct ArrivingRequest {
    private var bytes: [UInt8] = []
    private var head: (fields: [String: String], end: Int)?

    /// The number of bytes so far.
    var count: Int { bytes.count }

    /// Adds the next bytes.
    ///
    /// - Returns: The request, its fields by names in lower case, once it is whole.
    mutating func add(_ piece: [UInt8]) -> (headers: [String: String], body: ArraySlice<UInt8>)? {
        // The gap may have begun in the piece before.
        let searched = max(0, bytes.count - 3)
        bytes += piece
        if head == nil, let gap = bytes[searched...].firstRange(of: Array("\r\n\r\n".utf8)) {
            head = (Self.fields(of: bytes[..<gap.lowerBound]), gap.upperBound)
        }
        guard let head else { return nil }
        let length = max(0, Int(head.fields["content-length"] ?? "") ?? 0)
        return bytes.count - head.end >= length ? (head.fields, bytes[head.end...].prefix(length)) : nil
    }

    /// The header fields behind the request line.
    private static func fields(of head: ArraySlice<UInt8>) -> [String: String] {
        var fields: [String: String] = [:]
        for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return fields
    }
}
