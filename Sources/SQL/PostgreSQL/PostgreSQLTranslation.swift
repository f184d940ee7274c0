/// A statement that has no translation. It is an error of this program, because each statement is a literal.
struct Untranslatable: Error, CustomStringConvertible {
    let reason: String
    let sql: String

    var description: String { "\(reason): \(sql)" }
}

/// Statements of the common dialect in PostgreSQL's.
enum PostgreSQLTranslation {
    /// The statement for one list of values: with `$1` for `?1`.
    static func statement(_ sql: String) throws(Untranslatable) -> String {
        for (number, part) in sql.split(separator: "'", omittingEmptySubsequences: false).enumerated() {
            let marks = part.split(separator: "?", omittingEmptySubsequences: false).dropFirst()
            // Every second part is quoted.
            guard marks.allSatisfy({ number.isMultiple(of: 2) && $0.first?.isWholeNumber == true }) else {
                throw Untranslatable(reason: "a question mark that is no parameter", sql: sql)
            }
        }
        return sql.replacing("?", with: "$")
    }

    /// One statement instead of one for each of many lists of values: each parameter is an array.
    ///
    /// - Parameter form: The type of each parameter; 0 for a parameter that is NULL in all lists and has no array.
    static func statement(_ sql: String, forLists form: [UInt32]) throws(Untranslatable) -> String {
        if sql.hasPrefix("INSERT") {
            let (beginning, end) = try split(sql, at: " VALUES (")
            let values = form.indices.map { "?\($0 + 1)" }.joined(separator: ", ") + ")"
            guard end.hasPrefix(values), !end.dropFirst(values.count).contains("?") else {
                throw Untranslatable(reason: "the values of a row are not ?1, ?2, …", sql: sql)
            }
            let columns = form.indices.map { parameter($0 + 1, form) }.joined(separator: ", ")
            return "\(beginning) SELECT \(columns) FROM \(lists(form))\(end.dropFirst(values.count))"
        }
        let isUpdate = sql.hasPrefix("UPDATE")
        if isUpdate || sql.hasPrefix("DELETE") {
            let (beginning, condition) = try split(sql, at: " WHERE ")
            guard beginning.count(where: { $0 == "(" }) == beginning.count(where: { $0 == ")" }) else {
                throw Untranslatable(reason: "the last WHERE is a subquery's", sql: sql)
            }
            let joined = isUpdate ? "FROM" : "USING"
            return try "\(named(beginning, form)) \(joined) \(lists(form)) WHERE \(named(condition, form))"
        }
        return try """
        SELECT answers.*, lists.list_number FROM \(lists(form, isNumbered: true)) \
        CROSS JOIN LATERAL (\(named(sql, form))) AS answers
        """
    }

    /// The lists of values as rows.
    private static func lists(_ form: [UInt32], isNumbered: Bool = false) -> String {
        let present = form.indices.filter { form[$0] != 0 }
        precondition(!present.isEmpty, "lists of nothing but NULL")
        let arrays = (1...present.count).map { "$\($0)" }.joined(separator: ", ")
        let names = (present.map { "c\($0 + 1)" } + (isNumbered ? ["list_number"] : [])).joined(separator: ", ")
        return "unnest(\(arrays)) \(isNumbered ? "WITH ORDINALITY " : "")AS lists (\(names))"
    }

    /// The text with `lists.cN` for each `?N`.
    private static func named(_ text: some StringProtocol, _ form: [UInt32]) throws(Untranslatable) -> String {
        var parts = text.split(separator: "?", omittingEmptySubsequences: false)[...]
        var result = String(parts.removeFirst())
        for part in parts {
            let digits = part.prefix(while: \.isWholeNumber)
            guard let number = Int(digits), form.indices.contains(number - 1) else {
                throw Untranslatable(reason: "a parameter without its value", sql: String(text))
            }
            result += parameter(number, form) + part.dropFirst(digits.count)
        }
        return result
    }

    private static func parameter(_ number: Int, _ form: [UInt32]) -> String {
        form[number - 1] == 0 ? "NULL" : "lists.c\(number)"
    }

    /// The parts of a text before and after the last occurrence of a word.
    private static func split(_ sql: String, at word: String) throws(Untranslatable) -> (Substring, Substring) {
        guard let place = sql.ranges(of: word).last else {
            throw Untranslatable(reason: "there is no\(word)", sql: sql)
        }
        return (sql[..<place.lowerBound], sql[place.upperBound...])
    }
}
