/// Manual pages in roff, made of the table.
enum ManualPage {
    /// All pages by their file names.
    static func all() -> [(name: String, text: String)] {
        [("urlsession.1", overview())] + CommandTable.all.map { (fileName($0), command($0)) }
    }

    static func fileName(_ command: Subcommand) -> String { "\(title(command)).1" }

    static func overview() -> String {
        var page = head("urlsession")
        page += section("NAME") + "urlsession \\- background transfers from a shell\n"
        page += section("SYNOPSIS") + ".B urlsession\n.I COMMAND\n[\\fIOPTIONS\\fR] ...\n"
        page += section("DESCRIPTION")
        page += text(
            "urlsession hands downloads and uploads over to urlsessiond, which performs them through crashes, restarts and bad networks, and shows how they are doing."
        )
        for group in CommandTable.groups {
            page += ".SS \(escape(group.title))\n"
            for command in group.commands { page += term("\\fB\(escape(title(command)))\\fR(1)", command.summary) }
        }
        page += section("OPTIONS") + options(CommandTable.connection + CommandTable.common)
        page += section("ENVIRONMENT")
        for (name, meaning) in CommandTable.variables { page += term("\\fB\(escape(name))\\fR", meaning) }
        page += section("FILES")
        page += term("\\fI~/.config/urlsession/config\\fR", Profile.about)
        return page + statuses() + seeAlso
    }

    static func command(_ command: Subcommand) -> String {
        var page = head(title(command))
        page += section("NAME") + "\(escape(title(command))) \\- \(escape(command.summary))\n"
        page += section("SYNOPSIS") + ".B urlsession \(escape(command.name))\n"
        if !command.options.isEmpty { page += "[\\fIOPTIONS\\fR]\n" }
        for argument in command.arguments { page += "\\fI\(escape(argument.usage))\\fR\n" }
        page += section("DESCRIPTION") + text(command.summary.capitalizedFirst + ".")
        if !command.about.isEmpty { page += ".PP\n" + text(command.about) }
        if !command.arguments.isEmpty {
            page += section("ARGUMENTS")
            for argument in command.arguments {
                page += term(
                    "\\fI\(escape(argument.name))\\fR",
                    Help.describe(argument.help, argument.kind).capitalizedFirst + ".")
            }
        }
        page += section("OPTIONS") + options(command.allOptions)
        if !command.examples.isEmpty {
            page += section("EXAMPLES")
            for example in command.examples { page += term("\\fB\(escape(example.command))\\fR", example.meaning) }
        }
        return page + statuses() + seeAlso
    }

    private static func title(_ command: Subcommand) -> String {
        "urlsession-" + command.name.replacing(" ", with: "-")
    }

    private static func head(_ title: String) -> String {
        ".TH \(escape(title.uppercased())) 1 \"\" \"urlsession \(escape(CommandTable.version))\" \"User Commands\"\n.nh\n.ad l\n"
    }

    private static func section(_ name: String) -> String { ".SH \(name)\n" }

    private static func options(_ options: [Subcommand.Option]) -> String {
        options.map { option in
            let short = option.short.map { "\\fB\\-\($0)\\fR, " } ?? ""
            let value = option.value.map { " \\fI\(escape($0))\\fR" } ?? ""
            return term(
                short + "\\fB\(escape("--" + option.name))\\fR" + value,
                Help.describe(option.help, option.kind).capitalizedFirst + ".")
        }.joined()
    }

    private static func statuses() -> String {
        section("EXIT STATUS")
            + CommandTable.statuses.map { term("\\fB\($0.status)\\fR", $0.meaning.capitalizedFirst + ".") }.joined()
    }

    private static let seeAlso = ".SH SEE ALSO\n.BR urlsession (1),\n.BR urlsessiond (8)\n"

    private static func term(_ head: String, _ body: String) -> String { ".TP\n\(head)\n\(text(body))" }

    private static func text(_ words: String) -> String {
        words.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? ".PP\n" : escape(String($0)) + "\n" }.joined()
    }

    /// No character of roff's own, and no line that it takes for a request.
    static func escape(_ text: String) -> String {
        var result = text.first == "." || text.first == "'" ? "\\&" : ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "~": result += "\\(ti"
            case "^": result += "\\(ha"
            default: result.append(character)
            }
        }
        return result
    }
}

extension String {
    /// With a capital letter at its beginning.
    var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
