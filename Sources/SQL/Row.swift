/// One row of a result. Valid only during the callback that receives it.
///
/// NULL is read as 0, "" or no bytes.
package struct Row {
    let answer: Answer

    /// A column by its name, or by its position from 0 if the result has one column.
    package enum Column: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
        case name(StaticString)
        case position(Int)

        package init(stringLiteral name: StaticString) { self = .name(name) }
        package init(integerLiteral position: Int) { self = .position(position) }
    }

    package func integer(_ column: Column) -> Int64 { answer.integer(index(column)) }

    package func integerOrNil(_ column: Column) -> Int64? { isNull(column) ? nil : integer(column) }

    package func int(_ column: Column) -> Int { Int(integer(column)) }

    package func intOrNil(_ column: Column) -> Int? { isNull(column) ? nil : int(column) }

    package func bool(_ column: Column) -> Bool { integer(column) != 0 }

    package func real(_ column: Column) -> Double { answer.real(index(column)) }

    /// The text of a column. Bytes that are not UTF-8 become U+FFFD.
    package func text(_ column: Column) -> String { answer.text(index(column)) }

    package func textOrNil(_ column: Column) -> String? { isNull(column) ? nil : text(column) }

    package func blob(_ column: Column) -> [UInt8] { withBlob(column) { [UInt8]($0) } }

    package func blobOrNil(_ column: Column) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    /// Lends the bytes of a column without a copy, until `body` returns.
    package func withBlob<Result>(_ column: Column, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(answer.blob(index(column)))
    }

    package func isNull(_ column: Column) -> Bool { answer.isNull(index(column)) }

    private func index(_ column: Column) -> Int32 {
        switch column {
        case .name(let name): return answer.columns.index(of: name)
        case .position(let position):
            precondition(position >= 0 && position < answer.columns.names.count, "no column \(position)")
            return Int32(truncatingIfNeeded: position)
        }
    }
}

@available(*, unavailable)
extension Row: Sendable {}

/// The result of a statement: the values of the current row.
class Answer {
    let columns: Columns

    init(_ columns: Columns) { self.columns = columns }

    func isNull(_ index: Int32) -> Bool { preconditionFailure("an engine's") }
    func integer(_ index: Int32) -> Int64 { preconditionFailure("an engine's") }
    func real(_ index: Int32) -> Double { preconditionFailure("an engine's") }
    func text(_ index: Int32) -> String { preconditionFailure("an engine's") }
    /// The bytes are valid until the next row.
    func blob(_ index: Int32) -> UnsafeRawBufferPointer { preconditionFailure("an engine's") }
}

/// The positions of the columns in a statement's result.
///
/// A name is a literal, identified by its address. Names are kept in the order of the first row's accesses, which
/// mostly is the order for all rows.
final class Columns {
    let names: [String]
    private var asked: [(name: UnsafePointer<UInt8>, index: Int32)] = []
    private var next = 0

    init(_ names: [String]) { self.names = names }

    func index(of name: StaticString) -> Int32 {
        if next >= asked.count || asked[next].name != name.utf8Start {
            next = asked.firstIndex { $0.name == name.utf8Start } ?? add(name)
        }
        defer { next += 1 }
        return asked[next].index
    }

    private func add(_ name: StaticString) -> Int {
        let found = names.indices.filter { names[$0] == name.description }
        precondition(found.count == 1, "\(found.count) columns \(name) among \(names)")
        asked.append((name.utf8Start, Int32(truncatingIfNeeded: found[0])))
        return asked.count - 1
    }
}
