import Options

enum ManualPage {
    static var text: String {
        Roff.head("urlsessiond", section: 8, "urlsessiond \(Command.version)", "System Administration") + """
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
            + Command.usages.map { usage, meaning in Roff.term(Roff.bold(usage), meaning) }.joined()
            + Roff.section("FLAGS") + Setting.all.map { Roff.option($0, $0.help) }.joined()
            + Roff.section("ENVIRONMENT") + Roff.text(Command.aboutFlags)
            + Roff.section("SEE ALSO") + ".BR urlsession (1)\n"
    }
}
