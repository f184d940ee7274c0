import Foundation

/// A POST of HTTP/1.1 that arrives in pieces, with a body of the announced length.
struct ArrivingRequest {
    private static let longestHead = 64 << 10
    private static let longestBody = 8 << 20

    private var bytes: [UInt8] = []
    private var head: (fields: [String: String], end: Int, length: Int)?
    /// Whether the request is no POST, has no length, or is too long.
    private(set) var isRefused = false

    /// Adds the next bytes.
    ///
    /// - Returns: The request, its fields by names in lower case, once it is complete.
    mutating func add(_ piece: [UInt8]) -> (headers: [String: String], body: [UInt8])? {
        guard !isRefused else { return nil }
        // The gap may have begun in the piece before.
        let searched = max(0, bytes.count - 3)
        bytes += piece
        if head == nil, let gap = bytes[searched...].firstRange(of: Array("\r\n\r\n".utf8)) {
            head = Self.head(bytes[..<gap.lowerBound], end: gap.upperBound)
            isRefused = head == nil
        }
        guard let head else {
            isRefused = isRefused || bytes.count > Self.longestHead
            return nil
        }
        let end = head.end + head.length
        return bytes.count >= end ? (head.fields, Array(bytes[head.end..<end])) : nil
    }

    private static func head(
        _ bytes: ArraySlice<UInt8>, end: Int
    ) -> (fields: [String: String], end: Int, length: Int)? {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces) }
        }
        guard lines.first?.hasPrefix("POST ") == true, let length = fields["content-length"].flatMap({ Int($0) }),
            (0...longestBody).contains(length), end <= longestHead + 4
        else { return nil }
        return (fields, end, length)
    }
}
