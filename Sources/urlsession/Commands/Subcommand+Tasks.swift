import Options
import URLSessionClient
import Wire

extension Subcommand {
    static let session = Argument("SESSION", "the name of a session", .session)
    static let task = Argument("TASK", "the number of a task", .number(1 ... .max))

    private static let group = Option("--group NAME", "only of this group")
    private static let selection = [
        Option("--state STATE,...", "only in one of these states", .choices(TaskState.known)),
        Option("--outcome OUTCOME,...", "only with these outcomes", .choices(TaskOutcome.known)),
        group,
    ]

    private static func telling(_ name: String, _ summary: String, _ about: String) -> Subcommand {
        Subcommand(
            name: name, summary: summary, about: about,
            arguments: [session, Argument("[TASK...]", "the number of a task", .number(1 ... .max))],
            options: [Option("--all", "all matching tasks of the session")] + selection,
            run: TaskCommands.tell)
    }

    static let tasks = [
        Subcommand(name: "sessions", summary: "list sessions", run: SessionCommands.list),
        Subcommand(
            name: "open", summary: "create a session, or reconnect to it",
            arguments: [session],
            options: [
                Option("--description TEXT", "a description of the session"),
                Option("--configuration FILE", "the API's JSON, for a new session", .file),
            ],
            run: SessionCommands.open),
        Subcommand(
            name: "close", summary: "end a session",
            about: "Lets its tasks finish and accepts no new ones.",
            arguments: [session],
            options: [
                Option("--cancel", "cancel its tasks"),
                Option("--forget", "cancel its tasks, and delete it with all its contents"),
            ],
            run: SessionCommands.close),
        Subcommand(
            name: "tasks", summary: "list the tasks of a session, or of all",
            arguments: [Argument("[SESSION]", "the name of a session; without it, all", .session)],
            options: [
                Option("--state STATE,...", "only in these states", .choices(TaskState.known)),
                Option("--outcome OUTCOME,...", "only with these outcomes", .choices(TaskOutcome.known)),
                group,
                Option("--search TEXT", "only with this text in their name, URL or client id"),
            ], run: TaskCommands.list),
        Subcommand(name: "task", summary: "show a task", arguments: [session, task], run: TaskCommands.show),
        Subcommand(
            name: "explain", summary: "describe a task: its state, the reason of its wait, and its history",
            arguments: [session, task], run: Explain.run),
        telling("suspend", "stop tasks and keep their bytes", "The command resume resumes suspended tasks."),
        telling("resume", "resume tasks, or retry at once", "A task that waits for its next attempt begins it now."),
        telling("cancel", "end tasks", "Received bytes are deleted."),
        telling("retry", "repeat completed tasks as new ones", "Without --outcome, --all repeats failed tasks."),
    ]

    static let events = [
        Subcommand(
            name: "events", summary: "print the events of a session",
            about: """
                From the first unacknowledged one. With --follow it waits for more, also while the service restarts, \
                and acknowledges printed events; meanwhile the app is not launched.
                """,
            arguments: [session],
            options: [
                Option("-F, --follow", "wait for more events, and acknowledge them"),
                Option("--live", "with --follow: print progress as well, and acknowledge nothing"),
                Option("--after SEQ", "begin after this event", .number(0 ... .max)),
            ],
            run: EventCommands.events),
        Subcommand(
            name: "ack", summary: "acknowledge events",
            arguments: [session, Argument("SEQ", "the last handled event", .number(0 ... .max))],
            run: EventCommands.acknowledge),
        Subcommand(
            name: "questions", summary: "list the questions of tasks",
            options: [
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only in these states", .choices(QuestionState.known)),
            ],
            run: EventCommands.questions),
        Subcommand(
            name: "answer", summary: "answer a question",
            about: """
                useCredential reads the password, or without --user the token, from standard input, because every \
                user of the machine can see arguments. useNewRequest requires --request.
                """,
            arguments: [
                Argument("QUESTION", "the question, qst_..."),
                Argument("DISPOSITION", "the answer", .choice(Disposition.known)),
            ],
            options: [
                Option("-u, --user NAME", "the user of the password"),
                Option(
                    "--persistence WORD", "the scope of the credential (none)",
                    .choice(Credential.Persistence.known)),
                Option("--trust PIN", "with useCredential: trust this key of the server, sha256/BASE64"),
                Option("--request URL", "with useNewRequest: the new URL"),
            ],
            run: EventCommands.answer),
        Subcommand(name: "credentials", summary: "list stored credentials", run: EventCommands.credentials),
        Subcommand(
            name: "credentials add", summary: "store a credential, which is used without a question",
            about: "Reads the password, or without --user the token, from standard input.",
            arguments: [Argument("URL", "the server, such as https://example.com")],
            options: [
                Option("-u, --user NAME", "the user of the password"),
                Option("--realm TEXT", "the server's realm"),
                Option("--digest", "for HTTP Digest instead of Basic"),
            ],
            run: EventCommands.addCredential),
        Subcommand(
            name: "credentials remove", summary: "delete a credential",
            arguments: [Argument("CREDENTIAL", "its identifier")], run: EventCommands.removeCredential),
    ]
}
