import Options
import URLSessionClient
import Wire

extension Subcommand {
    static let session = Argument(name: "SESSION", help: "the name of a session", kind: .session)
    static let task = Argument(name: "TASK", help: "the number of a task", kind: .number(1 ... .max))

    private static let group = Option(name: "group", value: "NAME", help: "only those of this group")
    private static let selection = [
        Option(
            name: "state", value: "STATE,...", kind: .choices(TaskState.known.map(\.rawValue)),
            help: "only those in one of these states"),
        Option(
            name: "outcome", value: "OUTCOME,...", kind: .choices(TaskOutcome.known.map(\.rawValue)),
            help: "only those that ended so"),
        group,
    ]

    private static func telling(_ name: String, _ summary: String, _ about: String) -> Subcommand {
        Subcommand(
            name: name, summary: summary, about: about,
            arguments: [
                session,
                Argument(
                    name: "TASK", help: "the number of a task", kind: .number(1 ... .max), isOptional: true,
                    isRepeated: true),
            ],
            options: [Option(name: "all", help: "all tasks of the session that match")] + selection,
            run: TaskCommands.tell)
    }

    static let tasks = [
        Subcommand(
            name: "sessions", summary: "list sessions", run: SessionCommands.list),
        Subcommand(
            name: "open", summary: "create a session, or reconnect to it",
            arguments: [session],
            options: [
                Option(name: "description", value: "TEXT", help: "words about it"),
                Option(
                    name: "configuration", value: "FILE", kind: .file,
                    help: "JSON as the API has it; only a new session takes it"),
            ],
            run: SessionCommands.open),
        Subcommand(
            name: "close", summary: "end a session",
            about: "Lets its tasks finish and takes no new ones.",
            arguments: [session],
            options: [
                Option(name: "cancel", help: "cancel its tasks"),
                Option(name: "forget", help: "cancel its tasks, and forget it with all its contents"),
            ],
            run: SessionCommands.close),
        Subcommand(
            name: "tasks", summary: "list the tasks of a session, or of all",
            arguments: [
                Argument(
                    name: "SESSION", help: "the name of a session; without it, all", kind: .session, isOptional: true)
            ],
            options: [
                Option(
                    name: "state", value: "STATE,...", kind: .choices(TaskState.known.map(\.rawValue)),
                    help: "only those in these states"),
                Option(
                    name: "outcome", value: "OUTCOME,...", kind: .choices(TaskOutcome.known.map(\.rawValue)),
                    help: "only those that ended so"),
                group,
                Option(name: "search", value: "TEXT", help: "only those with this in their name, URL or client id"),
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
                Option(name: "follow", short: "F", help: "wait for more, and acknowledge them"),
                Option(name: "live", help: "with --follow: print progress as well, and acknowledge nothing"),
                Option(name: "after", value: "SEQ", kind: .number(0 ... .max), help: "begin behind this event"),
            ],
            run: EventCommands.events),
        Subcommand(
            name: "ack", summary: "acknowledge events",
            arguments: [
                session, Argument(name: "SEQ", help: "the last event that was handled", kind: .number(0 ... .max)),
            ],
            run: EventCommands.acknowledge),
        Subcommand(
            name: "questions", summary: "list what tasks ask",
            options: [
                Option(name: "session", short: "s", value: "SESSION", kind: .session, help: "only of this session"),
                Option(
                    name: "state", value: "STATE,...", kind: .choices(QuestionState.known.map(\.rawValue)),
                    help: "only those in these states"),
            ],
            run: EventCommands.questions),
        Subcommand(
            name: "answer", summary: "answer a question",
            about: """
                useCredential reads the password, or without --user the token, from standard input: arguments can be \
                seen by everybody on the machine. useNewRequest takes --request.
                """,
            arguments: [
                Argument(name: "QUESTION", help: "the question, qst_..."),
                Argument(name: "DISPOSITION", help: "what to do", kind: .choice(Disposition.known.map(\.rawValue))),
            ],
            options: [
                Option(name: "user", short: "u", value: "NAME", help: "the user of the password"),
                Option(
                    name: "persistence", value: "WORD", kind: .choice(Credential.Persistence.known.map(\.rawValue)),
                    help: "how long the credential is kept (none)"),
                Option(
                    name: "trust", value: "PIN", help: "with useCredential: trust this key of the server, sha256/BASE64"
                ),
                Option(name: "request", value: "URL", help: "with useNewRequest: the URL to ask instead"),
            ],
            run: EventCommands.answer),
        Subcommand(name: "credentials", summary: "list stored credentials", run: EventCommands.credentials),
        Subcommand(
            name: "credentials add", summary: "store a credential, used without asking",
            about: "Reads the password, or without --user the token, from standard input.",
            arguments: [Argument(name: "URL", help: "the server, such as https://example.com")],
            options: [
                Option(name: "user", short: "u", value: "NAME", help: "the user of the password"),
                Option(name: "realm", value: "TEXT", help: "what the server calls the space"),
                Option(name: "digest", help: "for HTTP Digest instead of Basic"),
            ],
            run: EventCommands.addCredential),
        Subcommand(
            name: "credentials remove", summary: "forget a credential",
            arguments: [Argument(name: "CREDENTIAL", help: "its identifier")], run: EventCommands.removeCredential),
    ]
}
