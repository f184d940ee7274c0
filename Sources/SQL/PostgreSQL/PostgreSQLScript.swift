import Base
import CPostgreSQL

/// A connection for scripts, and for whole tables in the text format of COPY.
///
/// Source: https://www.postgresql.org/docs/15/sql-copy.html. The corresponding C functions are `PQputCopyData` and
/// `PQgetCopyData`.
final class PostgreSQLScript {
    private let pq: libpq
    private let handle: OpaquePointer

    init(_ server: PostgreSQLServer) throws(SQLError) {
        pq = try LibPQ.functions().pointee
        handle = try server.connect()
    }

    deinit { pq.PQfinish(handle) }

    /// Runs statements without parameters, and returns the first value of the last statement's first row.
    @discardableResult
    func run(_ sql: String) throws(SQLError) -> String? {
        let result = try result(of: sql, PGRES_TUPLES_OK)
        defer { pq.PQclear(result) }
        guard pq.PQntuples(result) > 0, pq.PQgetisnull(result, 0, 0) == 0 else { return nil }
        return pq.PQgetvalue(result, 0, 0).map { String(cString: $0) }
    }

    /// Copies rows into a table. `body` passes each row to its argument.
    func fill(
        _ table: String, _ columns: [String],
        _ body: (_ put: ([SQLValue]) throws(SQLError) -> Void) throws(SQLError) -> Void
    ) throws(SQLError) {
        pq.PQclear(try result(of: "COPY \(table) (\(columns.joined(separator: ", "))) FROM STDIN", PGRES_COPY_IN))
        var line: [UInt8] = []
        try body { row throws(SQLError) in
            line.removeAll(keepingCapacity: true)
            for value in row { Self.append(value, to: &line) }
            line[line.count - 1] = UInt8(ascii: "\n")
            let isTaken = line.withUnsafeBytes { bytes in
                pq.PQputCopyData(handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
            }
            guard isTaken == 1 else { throw failure() }
        }
        guard pq.PQputCopyEnd(handle, nil) == 1 else { throw failure() }
        try finish()
    }

    /// Passes the rows of a table to `body`. The types are those of the SQLite columns.
    func read(
        _ table: String, _ columns: [(name: String, type: String)], _ body: ([SQLValue]) throws(SQLError) -> Void
    ) throws(SQLError) {
        let names = columns.map(\.name).joined(separator: ", ")
        pq.PQclear(try result(of: "COPY \(table) (\(names)) TO STDOUT", PGRES_COPY_OUT))
        var buffer: UnsafeMutablePointer<CChar>?
        while case let count = pq.PQgetCopyData(handle, &buffer, 0), count != -1 {
            guard count > 0, let line = buffer else { throw failure() }
            defer { pq.PQfreemem(line) }
            let bytes = UnsafeRawBufferPointer(start: line, count: Int(count) - 1)
            let fields = bytes.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
            try body(zip(fields, columns).map { Self.value($0, $1.type) })
        }
        try finish()
    }

    /// Ends a COPY.
    private func finish() throws(SQLError) {
        var error: SQLError?
        while let result = pq.PQgetResult(handle) {
            if pq.PQresultStatus(result) != PGRES_COMMAND_OK { error = error ?? failure(result) }
            pq.PQclear(result)
        }
        if let error { throw error }
    }

    private func result(of sql: String, _ expected: ExecStatusType) throws(SQLError) -> OpaquePointer? {
        let result = pq.PQexec(handle, sql)
        let status = pq.PQresultStatus(result)
        guard status == expected || status == PGRES_COMMAND_OK else {
            defer { pq.PQclear(result) }
            throw failure(result)
        }
        return result
    }

    private func failure(_ result: OpaquePointer? = nil) -> SQLError {
        result.flatMap { PostgreSQLServer.error(in: $0, pq) } ?? PostgreSQLServer.lost(handle, pq)
    }

    // MARK: The format

    private static let escapes: [(byte: UInt8, letter: UInt8)] = [
        (UInt8(ascii: "\\"), UInt8(ascii: "\\")), (UInt8(ascii: "\t"), UInt8(ascii: "t")),
        (UInt8(ascii: "\n"), UInt8(ascii: "n")), (UInt8(ascii: "\r"), UInt8(ascii: "r")),
        (8, UInt8(ascii: "b")), (11, UInt8(ascii: "v")), (12, UInt8(ascii: "f")),
    ]

    private static func append(_ value: SQLValue, to line: inout [UInt8]) {
        switch value {
        case .null: line += "\\N".utf8
        case .integer(let number): line += "\(number)".utf8
        case .real(let number): line += "\(number)".utf8
        case .blob(let bytes): line += "\\\\x\(bytes.hexadecimal)".utf8
        case .text(let text):
            for byte in text.utf8 {
                if let escape = escapes.first(where: { $0.byte == byte }) {
                    line += [UInt8(ascii: "\\"), escape.letter]
                } else {
                    line.append(byte)
                }
            }
        }
        line.append(UInt8(ascii: "\t"))
    }

    private static func value(_ field: Slice<UnsafeRawBufferPointer>, _ type: String) -> SQLValue {
        if field.elementsEqual("\\N".utf8) { return .null }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(field.count)
        var isEscaped = false
        for byte in field {
            if !isEscaped, byte == UInt8(ascii: "\\") {
                isEscaped = true
                continue
            }
            bytes.append(isEscaped ? escapes.first { $0.letter == byte }?.byte ?? byte : byte)
            isEscaped = false
        }
        let text = String(decoding: bytes, as: UTF8.self)
        switch type {
        case "INTEGER": return Int64(text).map { .integer($0) } ?? .text(text)
        case "REAL": return Double(text).map { .real($0) } ?? .text(text)
        case "BLOB": return [UInt8](hexadecimal: String(text.dropFirst(2))).map { .blob($0) } ?? .text(text)
        default: return .text(text)
        }
    }
}
