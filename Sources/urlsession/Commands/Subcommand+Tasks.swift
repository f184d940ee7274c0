import Options
import URLSessionClient
import Wire

extension Subcommand {
    static let session = Argument("SESSION", "the name of a session", .session)
    static let task = Argument("TASK", "the number of a task", .number(1 ... .max))

    private static let group = Option("--group NAME", "only those of this group")
    private static let selection = [
        Option("--state STATE,...", "only those in one of these states", .choices(TaskState.known)),
        Option("--outcome OUTCOME,...", "only those that ended so", .choices(TaskOutcome.known)),
        group,
    ]

    private static func telling(_ name: String, _ summary: String, _ about: String) -> Subcommand {
        Subcommand(
            name: name, summary: summary, about: about,
            arguments: [
                session,
                Argument("[TASK...]", "the number of a task", .number(1 ... .max)),
            ],
            options: [Option("--all", "all tasks of the session that match")] + selection,
            run: TaskCommands.tell)
    }

    static let tasks = [
        Subcommand(
            name: "sessions", summary: "list sessions", run: SessionCommands.list),
        Subcommand(
            name: "open", summary: "create a session, or reconnect to it",
            arguments: [session],
            options: [
                Option("--description TEXT", "words about it"),
                Option("--configuration FILE", "JSON as the API has it; only a new session takes it", .file),
            ],
            run: SessionCommands.open),
        Subcommand(
            name: "close", summary: "end a session",
            about: "Lets its tasks finish and takes no new ones.",
            arguments: [session],
            options: [
                Option("--cancel", "cancel its tasks"),
                Option("--forget", "cancel its tasks, and forget it with all its contents"),
            ],
            run: SessionCommands.close),
        Subcommand(
            name: "tasks", summary: "list the tasks of a session, or of all",
            arguments: [Argument("[SESSION]", "the name of a session; without it, all", .session)],
            options: [
                Option("--state STATE,...", "only those in these states", .choices(TaskState.known)),
                Option("--outcome OUTCOME,...", "only those that ended so", .choices(TaskOutcome.known)),
                group,
                Option("--search TEXT", "only those with this in their name, URL or client id"),
            ], run: TaskCommands.list),
        Subcommand(name: "task", summary: "show a task", arguments: [session, task], run: TaskCommands.show),
        Subcommand(
            name: "explain", summary: "tell what a task is doing, why it waits, and what happened to it",
            arguments: [session, task], run: Explain.run),
        telling("suspend", "stop tasks, bytes kept", "Tasks that were suspended go on with resume."),
        telling(
            "resume", "let tasks go on, or try again at once", "A task that waits for its next attempt begins it now."),
        telling("cancel", "end tasks", "What was received is dropped."),
        telling("retry", "make new tasks of completed ones", "Without --outcome, --all takes those that failed."),
    ]

    static let events = [
        Subcommand(
            name: "events", summary: "print the events of a session",
            about: """
                From the first that is not acknowledged. With --follow it waits for more, also while the service \
                restarts, and acknowledges what it printed; meanwhile the app is not launched.
                """,
            arguments: [session],
            options: [
                Option("-F, --follow", "wait for more, and acknowledge them"),
                Option("--live", "with --follow: print progress as well, and acknowledge nothing"),
                Option("--after SEQ", "begin behind this event", .number(0 ... .max)),
            ],
            run: EventCommands.events),
        Subcommand(
            name: "ack", summary: "acknowledge events",
            arguments: [
                session, Argument("SEQ", "the last event that was handled", .number(0 ... .max)),
            ],
            run: EventCommands.acknowledge),
        Subcommand(
            name: "questions", summary: "list what tasks ask",
            options: [
                Option("-s, --session SESSION", "only of this session", .session),
                Option("--state STATE,...", "only those in these states", .choices(QuestionState.known)),
            ],
            run: EventCommands.questions),
        Subcommand(
            name: "answer", summary: "answer a question",
            about: """
                useCredential reads the password, or without --user the token, from standard input: arguments can be \
                seen by everybody on the machine. useNewRequest takes --request.
                """,
            arguments: [
                Argument("QUESTION", "the question, qst_..."),
                Argument("DISPOSITION", "what to do", .choice(Disposition.known)),
            ],
            options: [
                Option("-u, --user NAME", "the user of the password"),
                Option(
                    "--persistence WORD", "how long the credential is kept (none)",
                    .choice(Credential.Persistence.known)),
                Option("--trust PIN", "with useCredential: trust this key of the server, sha256/BASE64"),
                Option("--request URL", "with useNewRequest: the URL to ask instead"),
            ],
            run: EventCommands.answer),
        Subcommand(name: "credentials", summary: "list stored credentials", run: EventCommands.credentials),
        Subcommand(
            name: "credentials add", summary: "store a credential, used without asking",
            about: "Reads the password, or without --user the token, from standard input.",
            arguments: [Argument("URL", "the server, such as https://example.com")],
            options: [
                Option("-u, --user NAME", "the user of the password"),
                Option("--realm TEXT", "what the server calls the space"),
                Option("--digest", "for HTTP Digest instead of Basic"),
            ],
            run: EventCommands.addCredential),
        Subcommand(
            name: "credentials remove", summary: "forget a credential",
            arguments: [Argument("CREDENTIAL", "its identifier")], run: EventCommands.removeCredential),
    ]
}
