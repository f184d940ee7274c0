/// The parts of a manual page (man(7)).
package enum Roff {
    package static func head(_ title: String, section: Int, _ source: String, _ manual: String) -> String {
        ".TH \(escape(title.uppercased())) \(section) \"\" \"\(escape(source))\" \"\(manual)\"\n.nh\n.ad l\n"
    }

    package static func section(_ name: String) -> String { ".SH \(name)\n" }

    package static func bold(_ text: String) -> String { "\\fB\(escape(text))\\fR" }

    package static func italic(_ text: String) -> String { "\\fI\(escape(text))\\fR" }

    /// A term and its explanation.
    ///
    /// - Parameter term: The term in roff.
    package static func term(_ term: String, _ body: String) -> String { ".TP\n\(term)\n\(text(body))" }

    package static func option(_ option: Option, _ body: String) -> String {
        term(
            (option.short.map { bold("-\($0)") + ", " } ?? "") + bold("--" + option.name)
                + (option.value.map { " " + italic($0) } ?? ""), body)
    }

    /// Lines of text; an empty one separates paragraphs.
    package static func text(_ words: String) -> String {
        words.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? ".PP\n" : escape(String($0)) + "\n" }.joined()
    }

    private static let escapes: [Character: String] = [
        "\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "~": "\\(ti", "^": "\\(ha",
    ]

    /// The text without roff's special characters and requests.
    package static func escape(_ text: String) -> String {
        (text.first == "." || text.first == "'" ? "\\&" : "") + text.map { escapes[$0] ?? String($0) }.joined()
    }
}
