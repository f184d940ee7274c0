import Options
import URLSessionClient
import Wire

extension Subcommand {
    private static let launch = Argument("LAUNCH", "the launch, lnch_...")

    static let webhooks = [
        Subcommand(
            name: "receive", summary: "receive webhooks here: verify, print and complete them",
            about: """
                A receiver to try webhooks with, without writing one. It listens, makes itself the app's webhook unless \
                the app has another one, and puts back what was there when it ends. Each launch is verified, answered, \
                its events are printed, acknowledged and completed.

                The secret is that of urlsessiond serve --dev unless --secret-file, URLSESSION_WEBHOOK_SECRET or the \
                profile's webhook-secret names another.
                """,
            options: [
                Option("-l, --listen ADDR:PORT", "where to listen (\(Receive.standardAddress)); port 0 picks one"),
                Option("--webhook-url URL", "what the service calls instead, such as a tunnel to here"),
                Option("--no-register", "leave the app's webhook as it is"),
                Option("--replace", "take the place of another webhook while this runs"),
                Option("--secret-file FILE", "has the webhook's secret, whsec_...", .file),
                Option("-o, --save DIR", "save the contents of downloads there", .file),
                Option(
                    "--result RESULT", "what to say of a fetch (noData)", .choice(LaunchCompletion.FetchResult.known)),
                Option("--no-complete", "only print: launches come again"),
                Option("--once", "end after the first launch"),
            ],
            examples: [Example("urlsession receive --save inbox", "saves what finishes, for urlsessiond serve --dev")],
            run: Receive.run),
        Subcommand(name: "webhook", summary: "show the app's webhook", run: AppCommands.webhook),
        Subcommand(
            name: "webhook set", summary: "say where the app is launched",
            arguments: [Argument("[URL]", "where launches go; - for nowhere")],
            options: [
                Option("--state STATE", "let it be called, or not", .choice(["enabled", "paused"])),
                Option("--include-events N", "how many events travel with a launch", .number(0...100)),
                Option("--deadline TIME", "from the launch to its completion", .duration),
            ],
            run: AppCommands.setWebhook),
        Subcommand(name: "webhook ping", summary: "send a ping now, and tell how it went", run: AppCommands.ping),
        Subcommand(
            name: "webhook rotate", summary: "replace the secret that signs webhooks",
            options: [Option("--grace TIME", "how long the old one goes on signing (24h)", .duration)],
            run: AppCommands.rotate),
        Subcommand(
            name: "webhook redeliver", summary: "send a launch once more, now, or all of a time",
            arguments: [Argument("[LAUNCH]", "the launch, lnch_...")],
            options: [
                Option("--since TIME", "all launches since then: 2h for two hours ago, or 2026-12-01T00:00:00Z"),
                Option("--until TIME", "only those before then"),
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only those in one of these states", .choices(Launch.State.known)),
            ],
            examples: [
                Example(
                    "urlsession webhook redeliver --since 2h --state exhausted",
                    "sends again what was given up in the last two hours")
            ],
            run: AppCommands.redeliver),
        Subcommand(
            name: "launches", summary: "list launches",
            options: [
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only those in these states", .choices(Launch.State.known)),
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
                Argument("[RESULT]", "of a fetch", .choice(LaunchCompletion.FetchResult.known)),
            ],
            run: AppCommands.complete),
        Subcommand(
            name: "refresh", summary: "show background refresh, or say how often to fetch",
            arguments: [Argument("[INTERVAL]", "never, minimum or a time of at least 15m")],
            run: AppCommands.refresh),
        Subcommand(name: "fetch", summary: "wake the app to fetch now", run: AppCommands.fetch),
        Subcommand(name: "app", summary: "show the app behind the key", run: AppCommands.own),
    ]

    private static let app = Argument("APP", "the name of an app")

    static let operators = [
        Subcommand(name: "apps", summary: "list apps", run: AppCommands.apps),
        Subcommand(
            name: "apps add", summary: "create an app, and show its key and its secret",
            arguments: [app],
            options: [
                Option("--webhook-url URL", "where it is launched"),
                Option("--max-tasks N", "tasks that are not completed", .number(0 ... .max)),
                Option("--max-bytes N", "bytes of contents and bodies", .number(0 ... .max)),
            ],
            run: AppCommands.add),
        Subcommand(
            name: "apps set", summary: "change an app",
            arguments: [app],
            options: [
                Option("--webhook-url URL", "where it is launched; - for nowhere"),
                Option("--max-tasks N", "tasks that are not completed; none for no limit", .limit),
                Option("--max-bytes N", "bytes of contents and bodies; none for no limit", .limit),
                Option("--refresh WORD", "whether it may be woken to fetch", .choice(BackgroundRefreshStatus.known)),
            ],
            run: AppCommands.set),
        Subcommand(
            name: "apps remove", summary: "cancel and forget everything of an app", arguments: [app],
            run: AppCommands.remove),
        Subcommand(name: "keys", summary: "list the keys of an app", arguments: [app], run: AppCommands.keys),
        Subcommand(
            name: "keys add", summary: "create a key, and show it",
            arguments: [app],
            options: [
                Option("--scope SCOPE", "what it may do; all unless given", .choice(Scope.known), isRepeated: true),
                Option("--expires TIME", "when it ends, such as 2027-01-01T00:00:00Z"),
            ],
            run: AppCommands.addKey),
        Subcommand(
            name: "keys revoke", summary: "revoke a key at once",
            arguments: [app, Argument("KEY", "its identifier")], run: AppCommands.revokeKey),
        Subcommand(
            name: "conditions", summary: "show what is declared about network, power, load and times",
            run: SystemCommands.conditions),
        Subcommand(
            name: "conditions set", summary: "declare all conditions",
            about: """
                Reads JSON as the API has it, such as {"network": {"expensive": true}}. What is absent there has its \
                default, so an empty object takes back all declarations.
                """,
            arguments: [Argument("[FILE]", "the JSON; - or nothing for standard input", .file)],
            examples: [
                Example(
                    "urlsession conditions --json | jq .network.expensive=true | urlsession conditions set",
                    "changes one of them")
            ],
            run: SystemCommands.setConditions),
        Subcommand(name: "nodes", summary: "list the nodes of the service", run: SystemCommands.nodes),
        Subcommand(
            name: "nodes drain", summary: "have a node hand over its transfers until it is started again",
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
