extension HTTPFields {
    /// The stored part of a response's fields, and the names of the dropped ones.
    package struct Kept: Hashable, Sendable {
        package var fields: HTTPFields
        /// As received, each once; at most ``maximumNames``, long ones shortened.
        package var droppedNames: [String]

        static let maximumNames = 32
        static let maximumNameLength = 64
    }

    /// The maximum size of a response's stored fields in bytes, because events, tasks and pages repeat them.
    static let keptBytes = 16 * 1024

    /// The fields in order, up to 16 KiB. The largest are dropped first, so that one large field displaces no other.
    package var kept: Kept {
        guard fields.reduce(0, { $0 + $1.listSize }) > Self.keptBytes else {
            return Kept(fields: self, droppedNames: [])
        }
        var room = Self.keptBytes
        var isKept = [Bool](repeating: false, count: fields.count)
        for index in fields.indices.sorted(by: { (fields[$0].listSize, $0) < (fields[$1].listSize, $1) }) {
            room -= fields[index].listSize
            guard room >= 0 else { break }
            isKept[index] = true
        }
        let dropped = fields.indices.lazy.filter { !isKept[$0] }.map { fields[$0].name }
        return Kept(
            fields: HTTPFields(fields.indices.filter { isKept[$0] }.map { fields[$0] }),
            droppedNames: Self.told(dropped))
    }

    private static func told(_ names: some Sequence<String>) -> [String] {
        var seen: Set<String> = []
        var told: [String] = []
        for name in names where told.count < Kept.maximumNames && seen.insert(name.asciiLowercased).inserted {
            let isLong = name.utf8.count > Kept.maximumNameLength
            told.append(isLong ? String(decoding: name.utf8.prefix(Kept.maximumNameLength), as: UTF8.self) + "…" : name)
        }
        return told
    }
}

extension HTTPField {
    /// The size of a field (RFC 9113 section 6.5.2), with overhead.
    fileprivate var listSize: Int { name.utf8.count + value.utf8.count + 32 }
}
