import Options
import URLSessionClient
import Wire

extension Subcommand {
    static let session = Argument(name: "SESSION", help: "the name of a session", kind: .session)
    static let task = Argument(name: "TASK", help: "the number of a task", kind: .number(1 ... .max))

    private static let group = Option(name: "group", value: "NAME", help: "only of this group")
    private static let selection = [
        Option(
            name: "state", value: "STATE,...", kind: .choices(TaskState.known.map(\.rawValue)),
            help: "only in one of these states"),
        Option(
            name: "outcome", value: "OUTCOME,...", kind: .choices(TaskOutcome.known.map(\.rawValue)),
            help: "only with these outcomes"),
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
            options: [Option(name: "all", help: "all matching tasks of the session")] + selection,
            run: TaskCommands.tell)
    }

    static let tasks = [
        Subcommand(
            name: "sessions", summary: "list sessions", run: SessionCommands.list),
        Subcommand(
            name: "open", summary: "create a session, or reconnect to it",
            arguments: [session],
            options: [
                Option(name: "description", value: "TEXT", help: "a description of the session"),
                Option(
                    name: "configuration", value: "FILE", kind: .file,
                    help: "the API's JSON, for a new session"),
            ],
            run: SessionCommands.open),
        Subcommand(
            name: "close", summary: "end a session",
            about: "Lets its tasks finish and accepts no new ones.",
            arguments: [session],
            options: [
                Option(name: "cancel", help: "cancel its tasks"),
                Option(name: "forget", help: "cancel its tasks, and delete it with all its contents"),
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
                    help: "only in these states"),
                Option(
                    name: "outcome", value: "OUTCOME,...", kind: .choices(TaskOutcome.known.map(\.rawValue)),
                    help: "only with these outcomes"),
                group,
                Option(name: "search", value: "TEXT", help: "only with this text in their name, URL or client id"),
            ], run: TaskCommands.list),
        Subcommand(name: "task", summary: "show a task", arguments: [session, task], run: TaskCommands.show),
        Subcommand(
            name: "explain", summary: "describe a task: its state, the reason of its wait, and its history",
            arguments: [session, task], run: Explain.run),
        telling("suspend", "stop tasks and keep their bytes", "The command resume resumes suspended tasks."),
        telling(
            "resume", "resume tasks, or retry at once", "A task that waits for its next attempt begins it now."),
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
                Option(name: "follow", short: "F", help: "wait for more events, and acknowledge them"),
                Option(name: "live", help: "with --follow: print progress as well, and acknowledge nothing"),
                Option(name: "after", value: "SEQ", kind: .number(0 ... .max), help: "begin after this event"),
            ],
            run: EventCommands.events),
        Subcommand(
            name: "ack", summary: "acknowledge events",
            arguments: [
                session, Argument(name: "SEQ", help: "the last handled event", kind: .number(0 ... .max)),
            ],
            run: EventCommands.acknowledge),
        Subcommand(
            name: "questions", summary: "list the questions of tasks",
            options: [
                Option(name: "session", short: "s", value: "SESSION", kind: .session, help: "only of this session"),
                Option(
                    name: "state", value: "STATE,...", kind: .choices(QuestionState.known.map(\.rawValue)),
                    help: "only in these states"),
            ],
            run: EventCommands.questions),
        Subcommand(
            name: "answer", summary: "answer a question",
            about: """
                useCredential reads the password, or without --user the token, from standard input, because every \
                user of the machine can see arguments. useNewRequest requires --request.
                """,
            arguments: [
                Argument(name: "QUESTION", help: "the question, qst_..."),
                Argument(name: "DISPOSITION", help: "the answer", kind: .choice(Disposition.known.map(\.rawValue))),
            ],
            options: [
                Option(name: "user", short: "u", value: "NAME", help: "the user of the password"),
                Option(
                    name: "persistence", value: "WORD", kind: .choice(Credential.Persistence.known.map(\.rawValue)),
                    help: "the scope of the credential (none)"),
                Option(
                    name: "trust", value: "PIN", help: "with useCredential: trust this key of the server, sha256/BASE64"
                ),
                Option(name: "request", value: "URL", help: "with useNewRequest: the new URL"),
            ],
            run: EventCommands.answer),
        Subcommand(name: "credentials", summary: "list stored credentials", run: EventCommands.credentials),
        Subcommand(
            name: "credentials add", summary: "store a credential, which is used without a question",
            about: "Reads the password, or without --user the token, from standard input.",
            arguments: [Argument(name: "URL", help: "the server, such as https://example.com")],
            options: [
                Option(name: "user", short: "u", value: "NAME", help: "the user of the password"),
                Option(name: "realm", value: "TEXT", help: "the server's realm"),
                Option(name: "digest", help: "for HTTP Digest instead of Basic"),
            ],
            run: EventCommands.addCredential),
        Subcommand(
            name: "credentials remove", summary: "delete a credential",
            arguments: [Argument(name: "CREDENTIAL", help: "its identifier")], run: EventCommands.removeCredential),
    ]
}
