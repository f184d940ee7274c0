import Base

/// Makes cursors that only this service can make: a position and 16 bytes of an HMAC that binds it to one list.
struct CursorSeal: Sendable {
    private static let tagLength = 16

    let key: [UInt8]

    /// - Parameter list: The list's resource, filters and principal.
    func cursor(at position: Int64, of list: String) -> String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: position >> (56 - 8 * $0)) }
        return (bytes + tag(bytes, list)).base64URL
    }

    /// The position in a cursor, or nil if it was not made here for this list.
    func position(in cursor: String, of list: String) -> Int64? {
        guard let bytes = [UInt8](base64URL: cursor), bytes.count == 8 + Self.tagLength else { return nil }
        let position = Array(bytes.prefix(8))
        guard ConstantTime.equal(Array(bytes.dropFirst(8)), tag(position, list)) else { return nil }
        return position.reduce(0) { $0 << 8 | Int64($1) }
    }

    private func tag(_ position: [UInt8], _ list: String) -> [UInt8] {
        Array(HMAC.sha256(key: key, message: position + Array(list.utf8)).prefix(Self.tagLength))
    }
}
