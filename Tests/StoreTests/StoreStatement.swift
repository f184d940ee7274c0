import Foundation
import TestSupport
import Testing

/// A statement of the store, as the sources have it: every call of a connection starts with its literal, so that none is
/// forgotten. A list in either order has two statements.
struct StoreStatement {
    /// Below the folder of the store.
    var file: String
    var line: Int
    /// The method of the connection.
    var call: String
    var sql: String

    /// The text on one line.
    var words: String { sql.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

    /// Whether its table is one that only a server's store has.
    var isOfServer: Bool { sql.contains(/\b(FROM|UPDATE|INTO|TABLE) node\b/) }

    static func all() throws -> [StoreStatement] {
        let call = /db\.(executeAll|execute|change|allOfEach|ask|insert|first|exists|all|forEach|value|positions)\(\s*/
        let folder = "\(repository)/Sources/Store"
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
        return try files.filter { $0.hasSuffix(".swift") && !$0.hasSuffix("/Schema.swift") }.flatMap { file in
            let source = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
            let calls = source.matches(of: call)
            #expect(source.matches(of: /db\.execute\(/).count == source.matches(of: /\.execute\(/).count, "\(file)")
            return calls.flatMap { call -> [StoreStatement] in
                let sql = literal(source[call.range.upperBound...])
                let line = source[..<call.range.lowerBound].count(where: \.isNewline) + 1
                #expect(sql != nil, "\(file):\(line)")
                guard let sql else { return [] }
                let twin = sql.replacing(" ASC LIMIT", with: " DESC LIMIT")
                return (twin == sql ? [sql] : [sql, twin]).map {
                    StoreStatement(file: file, line: line, call: String(call.1), sql: $0)
                }
            }
        }
    }

    /// The value of the string literal that a text begins with.
    private static func literal(_ text: Substring) -> String? {
        guard let match = text.prefixMatch(of: /"""\n(?s:(.*?))\n( *)"""/) else {
            return text.prefixMatch(of: /"([^"]*)"/).map { String($0.1) }
        }
        let lines = match.1.split(separator: "\n").map { $0.dropFirst(match.2.count) }
        return lines.joined(separator: "\n").replacing("\\\n", with: "")
    }
}
