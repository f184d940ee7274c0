import Options

enum ManualPage {
    static func all() -> [(name: String, text: String)] {
        [("urlsession.1", overview())] + CommandTable.all.map { (fileName($0), command($0)) }
    }

    static func fileName(_ command: Subcommand) -> String { "\(title(command)).1" }

    static func overview() -> String {
        var page = head("urlsession")
        page += Roff.section("NAME") + "urlsession \\- background transfers from a shell\n"
        page += Roff.section("SYNOPSIS") + ".B urlsession\n.I COMMAND\n[\\fIOPTIONS\\fR] ...\n"
        page += Roff.section("DESCRIPTION")
        page += Roff.text(
            "urlsession creates downloads and uploads at urlsessiond, which performs them through crashes, restarts and bad networks, and shows their progress."
        )
        for group in CommandTable.groups {
            page += ".SS \(Roff.escape(group.title))\n"
            for command in group.commands {
                page += Roff.term("\\fB\(Roff.escape(title(command)))\\fR(1)", command.summary)
            }
        }
        page += Roff.section("OPTIONS") + options(CommandTable.connection + CommandTable.common)
        page += Roff.section("ENVIRONMENT")
        for (name, meaning) in CommandTable.variables { page += Roff.term(Roff.bold(name), meaning) }
        page += Roff.section("FILES")
        page += Roff.term("\\fI~/.config/urlsession/config\\fR", Profile.about)
        return page + statuses() + seeAlso
    }

    static func command(_ command: Subcommand) -> String {
        var page = head(title(command))
        page += Roff.section("NAME") + "\(Roff.escape(title(command))) \\- \(Roff.escape(command.summary))\n"
        page += Roff.section("SYNOPSIS") + ".B urlsession \(Roff.escape(command.name))\n"
        if !command.options.isEmpty { page += "[\\fIOPTIONS\\fR]\n" }
        for argument in command.arguments { page += "\\fI\(Roff.escape(argument.usage))\\fR\n" }
        page += Roff.section("DESCRIPTION") + Roff.text(command.summary.capitalizedFirst + ".")
        if !command.about.isEmpty { page += ".PP\n" + Roff.text(command.about) }
        if !command.arguments.isEmpty {
            page += Roff.section("ARGUMENTS")
            for argument in command.arguments {
                page += Roff.term(
                    Roff.italic(argument.name),
                    Help.describe(argument.help, argument.kind).capitalizedFirst + ".")
            }
        }
        page += Roff.section("OPTIONS") + options(command.allOptions)
        if !command.examples.isEmpty {
            page += Roff.section("EXAMPLES")
            for example in command.examples { page += Roff.term(Roff.bold(example.command), example.meaning) }
        }
        return page + statuses() + seeAlso
    }

    private static func title(_ command: Subcommand) -> String {
        "urlsession-" + command.name.replacing(" ", with: "-")
    }

    private static func head(_ title: String) -> String {
        Roff.head(title, section: 1, "urlsession \(CommandTable.version)", "User Commands")
    }

    private static func options(_ options: [Option]) -> String {
        options.map { Roff.option($0, Help.describe($0.help, $0.kind).capitalizedFirst + ".") }.joined()
    }

    private static func statuses() -> String {
        Roff.section("EXIT STATUS")
            + CommandTable.statuses.map { Roff.term(Roff.bold("\($0.status)"), $0.meaning.capitalizedFirst + ".") }
            .joined()
    }

    private static let seeAlso = Roff.section("SEE ALSO") + ".BR urlsession (1),\n.BR urlsessiond (8)\n"
}

extension String {
    /// The text with a capital first letter.
    var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
