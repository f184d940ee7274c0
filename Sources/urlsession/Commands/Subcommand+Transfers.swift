import Options

extension Subcommand {
    private static let requestOptions = [
        Option(
            name: "header", short: "H", value: "TEXT", isRepeated: true,
            help:
                "a header field to send, NAME: TEXT, or @FILE for the lines of a file (@- for standard input), which keeps it out of the process list"
        ),
        Option(name: "method", short: "X", value: "METHOD", help: "another method than GET or PUT"),
        Option(
            name: "user", short: "u", value: "NAME",
            help: "the user for HTTP Basic; the password is typed, or the first line of standard input"),
    ]

    private static let sessionOptions = [
        Option(
            name: "tries", value: "N", kind: .number(1...1_000_000),
            help: "attempts in all for each, when the server is away or answers 503 and its like; without it for a week"
        ),
        Option(name: "max-time", value: "TIME", kind: .duration, help: "give up what is not done after this time (7d)"),
        Option(
            name: "connections", short: "j", value: "N", kind: .number(1...10_000),
            help: "transfers at a time per host (6)"),
        Option(
            name: "limit-rate", value: "RATE", kind: .rate,
            help: "bytes per second of all transfers together, such as 500k, 2M or 1G (1k is 1024)"),
    ]

    private static let taskOptions = [
        Option(name: "priority", value: "N", kind: .fraction, help: "0 to 1 (0.5)"),
        Option(name: "group", value: "NAME", help: "what the tasks belong to, for suspend, resume, cancel and retry"),
        Option(name: "not-before", value: "TIME", help: "begin at this time, such as 2026-12-01T00:00:00Z"),
        Option(
            name: "session", short: "s", value: "SESSION", kind: .session,
            help: "hand over to this session instead of one of its own"),
        Option(name: "detach", short: "d", help: "hand over and leave; urlsession attach comes back"),
    ]

    private static let saveOptions = [
        Option(name: "force", short: "f", help: "replace files that are there"),
        Option(name: "save-errors", help: "save what servers say with an error, too; the exit status stays 1"),
    ]

    private static let output = Option(
        name: "output", short: "o", value: "PATH", kind: .file,
        help: "save as this file, or into this folder if it is one or ends with /; - for standard output")

    static let transfers = [
        Subcommand(
            name: "get", summary: "download URLs into files",
            about: """
                Hands the downloads over to the service, shows how far they are, and saves each when it is whole. Names \
                come from the servers, or from lines URL<TAB>NAME of --input-file; a file that is there is not replaced. \
                Nothing is saved of a download that failed, and the exit status is 1 then.

                Ctrl-C leaves: the service goes on. The same command again comes back to the same downloads, and so does \
                urlsession attach with the session that was named. After a failure the same command tries again; a file \
                that is there with the same bytes counts as saved.

                A session of its own is deleted when all downloads have ended and all that came is saved. With --session \
                the downloads stay there, and contents as long as the service keeps them.
                """,
            arguments: [
                Argument(
                    name: "URL", help: "what to download; s3://BUCKET/KEY from a bucket of the service",
                    isOptional: true, isRepeated: true)
            ],
            options: [output] + saveOptions + requestOptions + [
                Option(
                    name: "segments", value: "N", kind: .choice((1...16).map { String($0) } + ["auto"]),
                    help: "connections at a time"),
                Option(name: "mirror", value: "URL", isRepeated: true, help: "another place with the same bytes"),
                Option(name: "digest", value: "DIGEST", help: "what must come: sha-256:HEX, sha-512:HEX or md5:HEX"),
                Option(
                    name: "into", value: "BUCKET/KEY",
                    help: "write it into a bucket of the service instead; a KEY that ends with / gets the URL's name"),
                Option(name: "max-length", value: "BYTES", kind: .number(0 ... .max), help: "fail if it is longer"),
                Option(
                    name: "input-file", short: "i", value: "FILE", kind: .file,
                    help:
                        "take URLs from a file, one a line, each with a tab and the NAME to save it as if wanted; - for standard input"
                ),
            ] + taskOptions + sessionOptions,
            examples: [
                Example(
                    command: "urlsession get https://www.debian.org/",
                    meaning: "saves www.debian.org.html; a file by the name that the server or the URL gives it"),
                Example(
                    command: "urlsession get -o images/ -i urls.txt --segments auto",
                    meaning: "saves many into a folder"),
                Example(
                    command: "urlsession get --into media/films/ https://example.com/film.mp4",
                    meaning: "writes the object films/film.mp4, and no file"),
                Example(
                    command: "urlsession get -o - https://example.com/data.json | jq .",
                    meaning: "writes to standard output"),
            ],
            run: Transfers.get),
        Subcommand(
            name: "put", summary: "upload a file",
            about: """
                Stores the file with the service, hands the upload over, and shows how far it is. Once it is stored, \
                Ctrl-C leaves and the service goes on; the same command again comes back. The exit status is 1 when the \
                server does not take it.
                """,
            arguments: [
                Argument(name: "FILE", help: "what to upload", kind: .file),
                Argument(name: "URL", help: "where to; one that ends with / gets the file's name"),
            ],
            options: requestOptions + [
                Option(name: "type", value: "TYPE", help: "media type (application/octet-stream)")
            ] + taskOptions + sessionOptions,
            examples: [
                Example(
                    command: "urlsession put backup.tar https://files.example.com/backups/",
                    meaning: "uploads as backups/backup.tar")
            ],
            run: Transfers.put),
        Subcommand(
            name: "attach", summary: "come back to the transfers of a session",
            about: """
                Follows what get and put left in a session, and saves what is to be saved where they were told to, below \
                the current folder; elsewhere only with -o.
                """,
            arguments: [Argument(name: "SESSION", help: "the session that get or put named", kind: .session)],
            options: [output] + saveOptions,
            run: Transfers.attach),
        Subcommand(
            name: "watch", summary: "show how far the tasks of a session are",
            about: "Until all that are under way are over. Saves nothing.",
            arguments: [Argument(name: "SESSION", help: "the session to watch", kind: .session)],
            run: Transfers.attach),
        Subcommand(
            name: "content", summary: "write the content of a finished task",
            arguments: [
                Argument(name: "SESSION", help: "the task's session", kind: .session),
                Argument(name: "TASK", help: "its number", kind: .number(1 ... .max)),
            ],
            options: [output, Option(name: "force", short: "f", help: "replace a file that is there")],
            run: TaskCommands.content),
    ]
}
