/// The manual page in roff, generated from the program's commands and settings.
enum ManualPage {
    static var text: String {
        var page = """
            .TH URLSESSIOND 8 "" "urlsessiond \(escape(Command.version))" "System Administration"
            .nh
            .ad l
            .SH NAME
            urlsessiond \\- background URLSession as an HTTP service
            .SH SYNOPSIS
            .B urlsessiond
            .I COMMAND
            [\\fIFLAGS\\fR]
            .SH DESCRIPTION
            urlsessiond performs downloads and uploads for apps that go away, through crashes, restarts and bad networks,
            and launches them with a signed webhook when there is something to handle.
            .SH COMMANDS

            """
        for (usage, meaning) in Command.usages { page += term("\\fB\(escape(usage))\\fR", meaning) }
        page += ".SH FLAGS\n"
        for setting in Setting.all {
            let argument = setting.argument.isEmpty ? "" : " \\fI\(escape(setting.argument))\\fR"
            page += term("\\fB\(escape("--" + setting.name))\\fR\(argument)", setting.help)
        }
        page += ".SH ENVIRONMENT\n" + escape(Command.aboutFlags) + "\n"
        return page + ".SH SEE ALSO\n.BR urlsession (1)\n"
    }

    private static func term(_ head: String, _ body: String) -> String { ".TP\n\(head)\n\(escape(body))\n" }

    /// Escapes roff's special characters, and a first character that would make the line a request.
    private static func escape(_ text: String) -> String {
        let escapes: [Character: String] = [
            "\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "~": "\\(ti", "^": "\\(ha",
        ]
        let start = text.first == "." || text.first == "'" ? "\\&" : ""
        return start + text.map { escapes[$0] ?? String($0) }.joined()
    }
}
