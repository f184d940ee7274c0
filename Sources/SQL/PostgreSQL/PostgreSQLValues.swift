import Glibc

/// The parameters of one statement, in the binary format.
struct PostgreSQLValues {
    private var bytes: [UInt8] = []
    private var places: [(offset: Int, length: Int32)?] = []
    private(set) var types: [UInt32] = []

    var count: Int { places.count }

    mutating func set(_ values: [(any SQLBindable)?]) {
        bytes.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
        for value in values { add(value?.sqlValue ?? .null) }
        // So that an empty value has an address: none at all is NULL.
        bytes.append(0)
    }

    private mutating func add(_ value: SQLValue) {
        let offset = bytes.count
        switch value {
        case .null:
            types.append(0)
            return places.append(nil)
        case .integer(let number):
            types.append(PostgreSQLAnswer.int8)
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        case .real(let number):
            types.append(PostgreSQLAnswer.float8)
            withUnsafeBytes(of: number.bitPattern.bigEndian) { bytes.append(contentsOf: $0) }
        case .text(let text):
            types.append(PostgreSQLAnswer.text)
            // PostgreSQL's text has no U+0000, and what clients send has none either.
            bytes.append(contentsOf: text.utf8.lazy.map { $0 == 0 ? UInt8(ascii: "?") : $0 })
        case .blob(let blob):
            types.append(PostgreSQLAnswer.bytea)
            bytes += blob
        }
        places.append((offset, Int32(clamping: bytes.count - offset)))
    }

    func withPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pointers = places.map { place in place.flatMap { place in start.map { $0 + place.offset } } }
            let lengths = places.map { $0?.length ?? 0 }
            let formats = [Int32](repeating: 1, count: places.count)
            return body(pointers, lengths, formats)
        }
    }
}

/// Lends texts as a list of C strings that ends with null.
func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
    let pointers = texts.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    let list = pointers.map { UnsafePointer($0) } + [nil]
    return list.withUnsafeBufferPointer { buffer in
        guard let base = buffer.baseAddress else { preconditionFailure("a list without its end") }
        return body(base)
    }
}
