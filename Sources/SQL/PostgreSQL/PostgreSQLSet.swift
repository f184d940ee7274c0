/// One statement instead of one for each of many lists of values: each parameter is an array.
enum PostgreSQLSet {
    /// - Parameter form: The type of each parameter; 0 for a parameter that is NULL in all lists and has no array.
    static func statement(_ sql: StaticString, _ form: [UInt32]) -> String {
        let text = sql.description
        if text.hasPrefix("INSERT") {
            let (beginning, _) = split(text, at: " VALUES (")
            let values = (1...form.count).map { parameter($0, form) }.joined(separator: ", ")
            return "\(beginning) SELECT \(values) FROM \(lists(form))"
        }
        let isUpdate = text.hasPrefix("UPDATE")
        if isUpdate || text.hasPrefix("DELETE") {
            let (beginning, condition) = split(text, at: " WHERE ")
            let joined = isUpdate ? "FROM" : "USING"
            return "\(named(beginning, form)) \(joined) \(lists(form)) WHERE \(named(condition, form))"
        }
        return """
            SELECT answers.*, lists.list_number FROM \(lists(form, isNumbered: true)) \
            CROSS JOIN LATERAL (\(named(text, form))) AS answers
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
    private static func named(_ text: some StringProtocol, _ form: [UInt32]) -> String {
        var parts = text.split(separator: "?", omittingEmptySubsequences: false)[...]
        let beginning = String(parts.removeFirst())
        return parts.reduce(into: beginning) { result, part in
            let digits = part.prefix(while: \.isWholeNumber)
            guard let number = Int(digits), form.indices.contains(number - 1) else {
                preconditionFailure("a parameter without its value: \(text)")
            }
            result += parameter(number, form) + part.dropFirst(digits.count)
        }
    }

    private static func parameter(_ number: Int, _ form: [UInt32]) -> String {
        form[number - 1] == 0 ? "NULL" : "lists.c\(number)"
    }

    /// The parts of a text before and after the last occurrence of a word.
    private static func split(_ text: String, at word: String) -> (Substring, Substring) {
        guard let place = text.ranges(of: word).last else { preconditionFailure("no\(word)in: \(text)") }
        return (text[..<place.lowerBound], text[place.upperBound...])
    }
}
