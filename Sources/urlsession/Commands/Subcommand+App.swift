import Options
import URLSessionClient
import Wire

extension Subcommand {
    private static let launch = Argument(name: "LAUNCH", help: "the launch, lnch_...")

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
                Option(
                    name: "listen", short: "l", value: "ADDR:PORT",
                    help: "where to listen (\(Receive.standardAddress)); port 0 picks one"),
                Option(
                    name: "webhook-url", value: "URL", help: "what the service calls instead, such as a tunnel to here"),
                Option(name: "no-register", help: "leave the app's webhook as it is"),
                Option(name: "replace", help: "take the place of another webhook while this runs"),
                Option(name: "secret-file", value: "FILE", kind: .file, help: "has the webhook's secret, whsec_..."),
                Option(
                    name: "save", short: "o", value: "DIR", kind: .file, help: "save the contents of downloads there"),
                Option(
                    name: "result", value: "RESULT", kind: .choice(LaunchCompletion.FetchResult.known.map(\.rawValue)),
                    help: "what to say of a fetch (noData)"),
                Option(name: "no-complete", help: "only print: launches come again"),
                Option(name: "once", help: "end after the first launch"),
            ],
            examples: [
                Example(
                    command: "urlsession receive --save inbox",
                    meaning: "saves what finishes, for urlsessiond serve --dev")
            ],
            run: Receive.run),
        Subcommand(name: "webhook", summary: "show the app's webhook", run: AppCommands.webhook),
        Subcommand(
            name: "webhook set", summary: "say where the app is launched",
            arguments: [Argument(name: "URL", help: "where launches go; - for nowhere", isOptional: true)],
            options: [
                Option(
                    name: "state", value: "STATE", kind: .choice(["enabled", "paused"]),
                    help: "let it be called, or not"),
                Option(
                    name: "include-events", value: "N", kind: .number(0...100),
                    help: "how many events travel with a launch"),
                Option(name: "deadline", value: "TIME", kind: .duration, help: "from the launch to its completion"),
            ],
            run: AppCommands.setWebhook),
        Subcommand(name: "webhook ping", summary: "send a ping now, and tell how it went", run: AppCommands.ping),
        Subcommand(
            name: "webhook rotate", summary: "replace the secret that signs webhooks",
            options: [
                Option(
                    name: "grace", value: "TIME", kind: .duration, help: "how long the old one goes on signing (24h)")
            ],
            run: AppCommands.rotate),
        Subcommand(
            name: "webhook redeliver", summary: "send a launch once more, now, or all of a time",
            arguments: [Argument(name: "LAUNCH", help: "the launch, lnch_...", isOptional: true)],
            options: [
                Option(
                    name: "since", value: "TIME",
                    help: "all launches since then: 2h for two hours ago, or 2026-12-01T00:00:00Z"),
                Option(name: "until", value: "TIME", help: "only those before then"),
                Option(name: "session", short: "s", value: "SESSION", kind: .session, help: "only of this session"),
                Option(
                    name: "state", value: "STATE,...", kind: .choices(Launch.State.known.map(\.rawValue)),
                    help: "only those in one of these states"),
            ],
            examples: [
                Example(
                    command: "urlsession webhook redeliver --since 2h --state exhausted",
                    meaning: "sends again what was given up in the last two hours")
            ],
            run: AppCommands.redeliver),
        Subcommand(
            name: "launches", summary: "list launches",
            options: [
                Option(name: "session", short: "s", value: "SESSION", kind: .session, help: "only of this session"),
                Option(
                    name: "state", value: "STATE,...", kind: .choices(Launch.State.known.map(\.rawValue)),
                    help: "only those in these states"),
                Option(
                    name: "kind", value: "KIND,...",
                    kind: .choices([
                        "session.handleEvents", "app.performFetch", "app.backgroundRefreshStatusDidChange",
                    ]),
                    help: "only of these kinds"),
            ],
            run: AppCommands.launches),
        Subcommand(
            name: "launch", summary: "show a launch and its attempts", arguments: [launch], run: AppCommands.launch),
        Subcommand(
            name: "complete", summary: "complete a launch",
            arguments: [
                launch,
                Argument(
                    name: "RESULT", help: "of a fetch",
                    kind: .choice(LaunchCompletion.FetchResult.known.map(\.rawValue)),
                    isOptional: true),
            ],
            run: AppCommands.complete),
        Subcommand(
            name: "refresh", summary: "show background refresh, or say how often to fetch",
            arguments: [Argument(name: "INTERVAL", help: "never, minimum or a time of at least 15m", isOptional: true)],
            run: AppCommands.refresh),
        Subcommand(name: "fetch", summary: "wake the app to fetch now", run: AppCommands.fetch),
        Subcommand(name: "app", summary: "show the app behind the key", run: AppCommands.own),
    ]

    private static let app = Argument(name: "APP", help: "the name of an app")

    static let operators = [
        Subcommand(name: "apps", summary: "list apps", run: AppCommands.apps),
        Subcommand(
            name: "apps add", summary: "create an app, and show its key and its secret",
            arguments: [app],
            options: [
                Option(name: "webhook-url", value: "URL", help: "where it is launched"),
                Option(name: "max-tasks", value: "N", kind: .number(0 ... .max), help: "tasks that are not completed"),
                Option(name: "max-bytes", value: "N", kind: .number(0 ... .max), help: "bytes of contents and bodies"),
            ],
            run: AppCommands.add),
        Subcommand(
            name: "apps set", summary: "change an app",
            arguments: [app],
            options: [
                Option(name: "webhook-url", value: "URL", help: "where it is launched; - for nowhere"),
                Option(
                    name: "max-tasks", value: "N", kind: .limit, help: "tasks that are not completed; none for no limit"
                ),
                Option(
                    name: "max-bytes", value: "N", kind: .limit, help: "bytes of contents and bodies; none for no limit"
                ),
                Option(
                    name: "refresh", value: "WORD", kind: .choice(BackgroundRefreshStatus.known.map(\.rawValue)),
                    help: "whether it may be woken to fetch"),
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
                Option(
                    name: "scope", value: "SCOPE", kind: .choice(Scope.known.map(\.rawValue)), isRepeated: true,
                    help: "what it may do; all unless given"),
                Option(name: "expires", value: "TIME", help: "when it ends, such as 2027-01-01T00:00:00Z"),
            ],
            run: AppCommands.addKey),
        Subcommand(
            name: "keys revoke", summary: "revoke a key at once",
            arguments: [app, Argument(name: "KEY", help: "its identifier")], run: AppCommands.revokeKey),
        Subcommand(
            name: "conditions", summary: "show what is declared about network, power, load and times",
            run: SystemCommands.conditions),
        Subcommand(
            name: "conditions set", summary: "declare all conditions",
            about: """
                Reads JSON as the API has it, such as {"network": {"expensive": true}}. What is absent there has its \
                default, so an empty object takes back all declarations.
                """,
            arguments: [
                Argument(
                    name: "FILE", help: "the JSON; - or nothing for standard input", kind: .file, isOptional: true)
            ],
            examples: [
                Example(
                    command: "urlsession conditions --json | jq .network.expensive=true | urlsession conditions set",
                    meaning: "changes one of them")
            ],
            run: SystemCommands.setConditions),
        Subcommand(name: "nodes", summary: "list the nodes of the service", run: SystemCommands.nodes),
        Subcommand(
            name: "nodes drain", summary: "have a node hand over its transfers until it is started again",
            arguments: [Argument(name: "ID", help: "the node's identifier")], run: SystemCommands.drain),
    ]

    static let local = [
        Subcommand(
            name: "completions", summary: "write a script that completes words in a shell",
            arguments: [Argument(name: "SHELL", help: "the shell", kind: .choice(Completions.shells))],
            examples: [
                Example(command: "source <(urlsession completions bash)", meaning: "for this bash"),
                Example(
                    command: "urlsession completions zsh > ~/.zfunc/_urlsession",
                    meaning: "for zsh, with ~/.zfunc in $fpath"),
                Example(
                    command: "urlsession completions fish > ~/.config/fish/completions/urlsession.fish",
                    meaning: "for fish"),
            ],
            isLocal: true,
            run: { call in try Output.text(Completions.script(for: call.words.text("SHELL") ?? "")) }),
        Subcommand(
            name: "man", summary: "write a manual page",
            arguments: [Argument(name: "COMMAND", help: "the page of a command", isOptional: true, isRepeated: true)],
            options: [Option(name: "all", value: "DIR", kind: .file, help: "write all pages into a folder")],
            examples: [Example(command: "urlsession man get | man -l -", meaning: "reads it")],
            isLocal: true, run: LocalCommands.manual),
        Subcommand(
            name: "profiles", summary: "list the profiles of the configuration file", about: Profile.about,
            isLocal: true, run: LocalCommands.profiles),
    ]
}

/// Commands that call no service.
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
