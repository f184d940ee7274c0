import Options

extension Subcommand {
    private static let requestOptions = [
        Option(
            name: "header", short: "H", value: "TEXT", isRepeated: true,
            help:
                "a header field, NAME: TEXT, or @FILE for the lines of a file (@- for standard input), which are hidden from the process list"
        ),
        Option(name: "method", short: "X", value: "METHOD", help: "the method, instead of GET or PUT"),
        Option(
            name: "user", short: "u", value: "NAME",
            help: "the user for HTTP Basic; the password is typed, or the first line of standard input"),
    ]

    private static let sessionOptions = [
        Option(
            name: "tries", value: "N", kind: .number(1...1_000_000),
            help: "the maximum attempts of each transfer, if the server is away or answers 503 and similar (for a week)"
        ),
        Option(
            name: "max-time", value: "TIME", kind: .duration,
            help: "the time after which unfinished transfers fail (7d)"),
        Option(
            name: "connections", short: "j", value: "N", kind: .number(1...10_000),
            help: "concurrent transfers per host (6)"),
        Option(
            name: "limit-rate", value: "RATE", kind: .rate,
            help: "bytes per second of all transfers together, such as 500k, 2M or 1G (1k is 1024)"),
    ]

    private static let taskOptions = [
        Option(name: "priority", value: "N", kind: .fraction, help: "0 to 1 (0.5)"),
        Option(name: "group", value: "NAME", help: "the group of the tasks, for suspend, resume, cancel and retry"),
        Option(name: "not-before", value: "TIME", help: "begin no earlier, such as 2026-12-01T00:00:00Z"),
        Option(
            name: "session", short: "s", value: "SESSION", kind: .session,
            help: "use this session instead of one of the call's own"),
        Option(name: "detach", short: "d", help: "create the tasks and exit; urlsession attach follows them"),
    ]

    private static let saveOptions = [
        Option(name: "force", short: "f", help: "replace existing files"),
        Option(name: "save-errors", help: "save error pages of servers, too; the exit status stays 1"),
    ]

    private static let output = Option(
        name: "output", short: "o", value: "PATH", kind: .file,
        help: "save as this file, or into this folder if it is one or ends with /; - for standard output")

    static let transfers = [
        Subcommand(
            name: "get", summary: "download URLs into files",
            about: """
                Creates the downloads at the service, shows their progress, and saves each when it is complete. Names \
                come from the servers, or from lines URL<TAB>NAME of --input-file; existing files are not replaced. A \
                failed download saves no file, and the exit status is 1.

                Ctrl-C detaches: the service continues. The same command follows the same downloads again, and so does \
                urlsession attach with the printed session. After a failure the same command retries; an existing file \
                with the same bytes counts as saved.

                A session of the call's own is deleted when all downloads have ended and their contents are saved. With \
                --session the downloads stay there, and contents for the service's retention.
                """,
            arguments: [
                Argument(
                    name: "URL", help: "the URL to download; s3://BUCKET/KEY for a bucket of the service",
                    isOptional: true, isRepeated: true)
            ],
            options: [output] + saveOptions + requestOptions + [
                Option(
                    name: "segments", value: "N", kind: .choice((1...16).map { String($0) } + ["auto"]),
                    help: "the number of concurrent connections"),
                Option(name: "mirror", value: "URL", isRepeated: true, help: "another URL of the same bytes"),
                Option(
                    name: "digest", value: "DIGEST", help: "the expected digest: sha-256:HEX, sha-512:HEX or md5:HEX"),
                Option(
                    name: "into", value: "BUCKET/KEY",
                    help: "write into a bucket of the service instead; a KEY that ends with / gets the URL's name"),
                Option(
                    name: "max-length", value: "BYTES", kind: .number(0 ... .max), help: "fail if the content is longer"
                ),
                Option(
                    name: "input-file", short: "i", value: "FILE", kind: .file,
                    help:
                        "read URLs from a file, one on each line, optionally with a tab and the NAME of its file; - for standard input"
                ),
            ] + taskOptions + sessionOptions,
            examples: [
                Example(
                    command: "urlsession get https://www.debian.org/",
                    meaning: "saves www.debian.org.html, named by the server or the URL"),
                Example(
                    command: "urlsession get -o images/ -i urls.txt --segments auto",
                    meaning: "saves many files in a folder"),
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
                Stores the file with the service, creates the upload, and shows its progress. Once the file is stored, \
                Ctrl-C detaches and the service continues; the same command follows the upload again. The exit status \
                is 1 if the server refuses the file.
                """,
            arguments: [
                Argument(name: "FILE", help: "the file to upload", kind: .file),
                Argument(name: "URL", help: "the target; a URL that ends with / gets the file's name"),
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
            name: "attach", summary: "follow the transfers of a session again",
            about: """
                Follows the transfers that get and put left in a session, and saves contents in their places below the \
                current folder; elsewhere only with -o.
                """,
            arguments: [Argument(name: "SESSION", help: "the session of get or put", kind: .session)],
            options: [output] + saveOptions,
            run: Transfers.attach),
        Subcommand(
            name: "watch", summary: "show the progress of a session's tasks",
            about: "Ends with the last running task. Saves nothing.",
            arguments: [Argument(name: "SESSION", help: "the session to watch", kind: .session)],
            run: Transfers.attach),
        Subcommand(
            name: "content", summary: "write the content of a finished task",
            arguments: [
                Argument(name: "SESSION", help: "the task's session", kind: .session),
                Argument(name: "TASK", help: "its number", kind: .number(1 ... .max)),
            ],
            options: [output, Option(name: "force", short: "f", help: "replace an existing file")],
            run: TaskCommands.content),
    ]
}
