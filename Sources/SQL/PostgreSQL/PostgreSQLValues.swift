import Glibc

/// The parameters of one statement, in the binary format.
struct PostgreSQLValues {
    private var bytes: [UInt8] = []
    private var places: [(offset: Int, length: Int32)?] = []
    /// The type of each parameter; 0 for NULL, whose type the server infers.
    private(set) var types: [UInt32] = []
    /// The key of the prepared variant: the types, and 0 for a column without any value.
    private(set) var form: [UInt32] = []

    var count: Int { places.count }

    mutating func set(_ values: [(any SQLBindable)?]) {
        clear()
        for value in values {
            let value = value?.sqlValue ?? .null
            let (offset, type) = (bytes.count, Self.type(of: value))
            append(value)
            types.append(type)
            places.append(type == 0 ? nil : (offset, Int32(clamping: bytes.count - offset)))
        }
        form = types
        // An empty value needs an address, because a null pointer means NULL.
        bytes.append(0)
    }

    /// Sets an array for each column of the rows that has a value.
    mutating func set(columnsOf rows: ArraySlice<[(any SQLBindable)?]>) {
        clear()
        for column in rows[rows.startIndex].indices {
            let values = rows.map { $0[column]?.sqlValue ?? .null }
            let type: UInt32 = values.map(Self.type(of:)).first { $0 != 0 } ?? 0
            form.append(type == 0 ? 0 : Self.array(of: type))
            guard type != 0 else { continue }
            let offset = bytes.count
            appendArray(values, of: type)
            types.append(Self.array(of: type))
            places.append((offset, Int32(clamping: bytes.count - offset)))
        }
    }

    private mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
        form.removeAll(keepingCapacity: true)
    }

    private static func type(of value: SQLValue) -> UInt32 {
        switch value {
        case .null: 0
        case .integer: PostgreSQLAnswer.int8
        case .real: PostgreSQLAnswer.float8
        case .text: PostgreSQLAnswer.text
        case .blob: PostgreSQLAnswer.bytea
        }
    }

    // Source: https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/catalog/pg_type.dat
    private static func array(of type: UInt32) -> UInt32 {
        switch type {
        case PostgreSQLAnswer.int8: 1016
        case PostgreSQLAnswer.float8: 1022
        case PostgreSQLAnswer.text: 1009
        case PostgreSQLAnswer.bytea: 1001
        default: preconditionFailure("no array of \(type)")
        }
    }

    /// One dimension, which may have NULLs, its lower bound 1. Source: `array_send` of
    /// https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c
    private mutating func appendArray(_ values: [SQLValue], of type: UInt32) {
        for number in [1, 1, type, UInt32(clamping: values.count), 1] { append(number) }
        for value in values {
            if value == .null {
                append(UInt32.max)
                continue
            }
            let start = bytes.count
            append(UInt32(0))
            append(value)
            let length = UInt32(clamping: bytes.count - start - 4)
            withUnsafeBytes(of: length.bigEndian) { bytes.replaceSubrange(start..<start + 4, with: $0) }
        }
    }

    private mutating func append(_ number: UInt32) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func append(_ value: SQLValue) {
        switch value {
        case .null: break
        case .integer(let number): withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        case .real(let number): withUnsafeBytes(of: number.bitPattern.bigEndian) { bytes.append(contentsOf: $0) }
        case .text(let text):
            // PostgreSQL's text cannot contain U+0000. Clients do not send it either.
            bytes.append(contentsOf: text.utf8.lazy.map { $0 == 0 ? UInt8(ascii: "?") : $0 })
        case .blob(let blob): bytes += blob
        }
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

/// Lends strings as a null-terminated list of C strings.
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
