import Options
import URLSessionClient
import Wire

extension Subcommand {
    private static let launch = Argument("LAUNCH", "the launch, lnch_...")

    static let webhooks = [
        Subcommand(
            name: "receive", summary: "receive webhooks: verify, print and complete them",
            about: """
                A receiver to try webhooks with, without writing one. It listens, sets the app's webhook to its own URL \
                unless the app has another one, and restores the previous webhook at its end. It verifies and completes \
                each launch, and prints and acknowledges its events.

                The secret is that of urlsessiond serve --dev unless --secret-file, URLSESSION_WEBHOOK_SECRET or the \
                profile's webhook-secret names another.
                """,
            options: [
                Option(
                    "-l, --listen ADDR:PORT",
                    "the address to listen on (\(Receive.standardAddress)); port 0 selects a free one"),
                Option("--webhook-url URL", "the URL for the service, such as that of a tunnel"),
                Option("--no-register", "do not change the app's webhook"),
                Option("--replace", "replace another webhook while the command runs"),
                Option("--secret-file FILE", "the file of the webhook's secret, whsec_...", .file),
                Option("-o, --save DIR", "save the contents of downloads in this folder", .file),
                Option(
                    "--result RESULT", "the result of fetches (noData)", .choice(LaunchCompletion.FetchResult.known)),
                Option("--no-complete", "only print, so that launches are repeated"),
                Option("--once", "end after the first launch"),
            ],
            examples: [
                Example("urlsession receive --save inbox", "saves finished downloads, for urlsessiond serve --dev")
            ],
            run: Receive.run),
        Subcommand(name: "webhook", summary: "show the app's webhook", run: AppCommands.webhook),
        Subcommand(
            name: "webhook set", summary: "set the app's webhook",
            arguments: [Argument("[URL]", "the URL for launches; - for none")],
            options: [
                Option("--state STATE", "whether launches are sent", .choice(["enabled", "paused"])),
                Option("--include-events N", "the number of events in a launch", .number(0...100)),
                Option("--deadline TIME", "the time from the launch to its completion", .duration),
            ],
            run: AppCommands.setWebhook),
        Subcommand(name: "webhook ping", summary: "send a ping now, and print the result", run: AppCommands.ping),
        Subcommand(
            name: "webhook rotate", summary: "replace the secret that signs webhooks",
            options: [Option("--grace TIME", "how long the old secret still signs (24h)", .duration)],
            run: AppCommands.rotate),
        Subcommand(
            name: "webhook redeliver", summary: "redeliver a launch, or all launches of a period",
            arguments: [Argument("[LAUNCH]", "the launch, lnch_...")],
            options: [
                Option("--since TIME", "all launches after this time: 2h for two hours ago, or 2026-12-01T00:00:00Z"),
                Option("--until TIME", "only launches before this time"),
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only in one of these states", .choices(Launch.State.known)),
            ],
            examples: [
                Example(
                    "urlsession webhook redeliver --since 2h --state exhausted",
                    "redelivers the exhausted launches of the last two hours")
            ],
            run: AppCommands.redeliver),
        Subcommand(
            name: "launches", summary: "list launches",
            options: [
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only in these states", .choices(Launch.State.known)),
                Option(
                    "--kind KIND,...", "only of these kinds",
                    .choices(["session.handleEvents", "app.performFetch", "app.backgroundRefreshStatusDidChange"])),
            ],
            run: AppCommands.launches),
        Subcommand(
            name: "launch", summary: "show a launch and its attempts", arguments: [launch], run: AppCommands.launch),
        Subcommand(
            name: "complete", summary: "complete a launch",
            arguments: [
                launch,
                Argument("[RESULT]", "the result of a fetch", .choice(LaunchCompletion.FetchResult.known)),
            ],
            run: AppCommands.complete),
        Subcommand(
            name: "refresh", summary: "show background refresh, or set the interval",
            arguments: [Argument("[INTERVAL]", "never, minimum or a time of at least 15m")],
            run: AppCommands.refresh),
        Subcommand(name: "fetch", summary: "start a fetch of the app now", run: AppCommands.fetch),
        Subcommand(name: "app", summary: "show the app behind the key", run: AppCommands.own),
    ]

    private static let app = Argument("APP", "the name of an app")

    static let operators = [
        Subcommand(name: "apps", summary: "list apps", run: AppCommands.apps),
        Subcommand(
            name: "apps add", summary: "create an app, and show its key and its secret",
            arguments: [app],
            options: [
                Option("--webhook-url URL", "the URL for launches"),
                Option("--max-tasks N", "the maximum number of unfinished tasks", .number(0 ... .max)),
                Option("--max-bytes N", "the maximum bytes of contents and bodies", .number(0 ... .max)),
            ],
            run: AppCommands.add),
        Subcommand(
            name: "apps set", summary: "change an app",
            arguments: [app],
            options: [
                Option("--webhook-url URL", "the URL for launches; - for none"),
                Option("--max-tasks N", "the maximum number of unfinished tasks; none for no limit", .limit),
                Option("--max-bytes N", "the maximum bytes of contents and bodies; none for no limit", .limit),
                Option(
                    "--refresh WORD", "whether background refresh is allowed", .choice(BackgroundRefreshStatus.known)),
            ],
            run: AppCommands.set),
        Subcommand(
            name: "apps remove", summary: "delete an app with all its resources", arguments: [app],
            run: AppCommands.remove),
        Subcommand(name: "keys", summary: "list the keys of an app", arguments: [app], run: AppCommands.keys),
        Subcommand(
            name: "keys add", summary: "create a key, and show it",
            arguments: [app],
            options: [
                Option("--scope SCOPE", "a permission of the key (all)", .choice(Scope.known), isRepeated: true),
                Option("--expires TIME", "the expiry, such as 2027-01-01T00:00:00Z"),
            ],
            run: AppCommands.addKey),
        Subcommand(
            name: "keys revoke", summary: "revoke a key at once",
            arguments: [app, Argument("KEY", "its identifier")], run: AppCommands.revokeKey),
        Subcommand(
            name: "conditions", summary: "show the declared network, power, load and times",
            run: SystemCommands.conditions),
        Subcommand(
            name: "conditions set", summary: "declare all conditions",
            about: """
                Reads the API's JSON, such as {"network": {"expensive": true}}. An absent member gets its default, so \
                an empty object resets all declarations.
                """,
            arguments: [Argument("[FILE]", "the JSON; - or no file for standard input", .file)],
            examples: [
                Example(
                    "urlsession conditions --json | jq .network.expensive=true | urlsession conditions set",
                    "changes one condition")
            ],
            run: SystemCommands.setConditions),
        Subcommand(name: "nodes", summary: "list the nodes of the service", run: SystemCommands.nodes),
        Subcommand(
            name: "nodes drain", summary: "drain a node: it hands over its transfers until it restarts",
            arguments: [Argument("ID", "the node's identifier")], run: SystemCommands.drain),
    ]

    static let local = [
        Subcommand(
            name: "completions", summary: "write a script that completes words in a shell",
            arguments: [Argument("SHELL", "the shell", .choice(Completions.shells))],
            examples: [
                Example("source <(urlsession completions bash)", "for this bash"),
                Example("urlsession completions zsh > ~/.zfunc/_urlsession", "for zsh, with ~/.zfunc in $fpath"),
                Example("urlsession completions fish > ~/.config/fish/completions/urlsession.fish", "for fish"),
            ],
            isLocal: true,
            run: { call in try Output.text(Completions.script(for: call.words.text("SHELL") ?? "")) }),
        Subcommand(
            name: "man", summary: "write a manual page",
            arguments: [Argument("[COMMAND...]", "the page of a command")],
            options: [Option("--all DIR", "write all pages into a folder", .file)],
            examples: [Example("urlsession man get | man -l -", "reads it")],
            isLocal: true, run: LocalCommands.manual),
        Subcommand(
            name: "profiles", summary: "list the profiles of the configuration file", about: Profile.about,
            isLocal: true, run: LocalCommands.profiles),
    ]
}

enum LocalCommands {
    static func manual(_ call: Invocation) async throws {
        if let folder = call.words.text("all") {
            try LocalFiles.makeFolder(folder)
            for page in ManualPage.all() { try LocalFiles.write(page.text, to: "\(folder)/\(page.name)") }
            return
        }
        let name = call.words.texts("COMMAND").joined(separator: " ")
        guard !name.isEmpty else { return try Output.text(ManualPage.overview()) }
        guard let command = CommandTable.named(name) else {
            throw CallWords.Fault(text: "there is no command \(name)", command: "man")
        }
        try Output.text(ManualPage.command(command))
    }

    static func profiles(_ call: Invocation) async throws {
        for name in try Settings.profiles().keys.sorted() { try Output.text(name) }
    }
}
