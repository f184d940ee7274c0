import CPostgreSQL

/// The rows of a result, all in memory, in the binary format.
///
/// The corresponding C functions are `PQgetvalue` and its siblings, and `PQclear`.
final class PostgreSQLAnswer: Answer {
    private let pq: UnsafePointer<libpq>
    private let result: OpaquePointer
    private let types: [UInt32]
    /// The index of the current row.
    var row: Int32 = 0

    init(_ result: OpaquePointer, _ shape: Shape, _ pq: UnsafePointer<libpq>) {
        self.pq = pq
        self.result = result
        types = shape.types
        super.init(shape.columns)
    }

    deinit { pq.pointee.PQclear(result) }

    /// The columns, which all results of a statement share.
    struct Shape {
        let columns: Columns
        let types: [UInt32]

        init(_ result: OpaquePointer, _ pq: libpq) {
            let fields = 0..<pq.PQnfields(result)
            columns = Columns(fields.map { pq.PQfname(result, $0).map { String(cString: $0) } ?? "" })
            types = fields.map { pq.PQftype(result, $0) }
        }
    }

    var count: Int32 { pq.pointee.PQntuples(result) }

    var changes: Int { pq.pointee.PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

    override func isNull(_ index: Int32) -> Bool { pq.pointee.PQgetisnull(result, row, index) != 0 }

    override func integer(_ index: Int32) -> Int64 {
        let bytes = bytes(index)
        guard !bytes.isEmpty else { return 0 }
        switch types[Int(index)] {
        case Self.int8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case Self.int4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case Self.int2: return Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        case Self.bool: return Int64(bytes[0])
        case let other:
            preconditionFailure("column \(columns.names[Int(index)]) has type \(other), which is no integer")
        }
    }

    override func real(_ index: Int32) -> Double {
        let bytes = bytes(index)
        guard !bytes.isEmpty else { return 0 }
        precondition(types[Int(index)] == Self.float8, "column \(columns.names[Int(index)]) is no double precision")
        return Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
    }

    override func text(_ index: Int32) -> String { String(decoding: bytes(index), as: UTF8.self) }

    override func blob(_ index: Int32) -> UnsafeRawBufferPointer { bytes(index) }

    private func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
        let count = Int(pq.pointee.PQgetlength(result, row, index))
        return UnsafeRawBufferPointer(start: pq.pointee.PQgetvalue(result, row, index), count: count)
    }

    // Source: https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/catalog/pg_type.dat
    static let bool: UInt32 = 16
    static let bytea: UInt32 = 17
    static let int8: UInt32 = 20
    static let int2: UInt32 = 21
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let float8: UInt32 = 701
}
