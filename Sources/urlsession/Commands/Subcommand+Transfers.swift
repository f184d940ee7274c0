import Options

extension Subcommand {
    private static let requestOptions = [
        Option(
            "-H, --header TEXT",
            "a header field to send, NAME: TEXT, or @FILE for the lines of a file (@- for standard input), which keeps it out of the process list",
            isRepeated: true),
        Option("-X, --method METHOD", "another method than GET or PUT"),
        Option(
            "-u, --user NAME", "the user for HTTP Basic; the password is typed, or the first line of standard input"),
    ]

    private static let sessionOptions = [
        Option(
            "--tries N",
            "attempts in all for each, when the server is away or answers 503 and its like; without it for a week",
            .number(1...1_000_000)),
        Option("--max-time TIME", "give up what is not done after this time (7d)", .duration),
        Option("-j, --connections N", "transfers at a time per host (6)", .number(1...10_000)),
        Option(
            "--limit-rate RATE", "bytes per second of all transfers together, such as 500k, 2M or 1G (1k is 1024)",
            .rate),
    ]

    private static let taskOptions = [
        Option("--priority N", "0 to 1 (0.5)", .fraction),
        Option("--group NAME", "what the tasks belong to, for suspend, resume, cancel and retry"),
        Option("--not-before TIME", "begin at this time, such as 2026-12-01T00:00:00Z"),
        Option("-s, --session SESSION", "hand over to this session instead of one of its own", .session),
        Option("-d, --detach", "hand over and leave; urlsession attach comes back"),
    ]

    private static let saveOptions = [
        Option("-f, --force", "replace files that are there"),
        Option("--save-errors", "save what servers say with an error, too; the exit status stays 1"),
    ]

    private static let output = Option(
        "-o, --output PATH",
        "save as this file, or into this folder if it is one or ends with /; - for standard output",
        .file)

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
            arguments: [Argument("[URL...]", "what to download; s3://BUCKET/KEY from a bucket of the service")],
            options: [output] + saveOptions + requestOptions + [
                Option("--segments N", "connections at a time", .choice((1...16).map { String($0) } + ["auto"])),
                Option("--mirror URL", "another place with the same bytes", isRepeated: true),
                Option("--digest DIGEST", "what must come: sha-256:HEX, sha-512:HEX or md5:HEX"),
                Option(
                    "--into BUCKET/KEY",
                    "write it into a bucket of the service instead; a KEY that ends with / gets the URL's name"),
                Option("--max-length BYTES", "fail if it is longer", .number(0 ... .max)),
                Option(
                    "-i, --input-file FILE",
                    "take URLs from a file, one a line, each with a tab and the NAME to save it as if wanted; - for standard input",
                    .file),
            ] + taskOptions + sessionOptions,
            examples: [
                Example(
                    "urlsession get https://www.debian.org/",
                    "saves www.debian.org.html; a file by the name that the server or the URL gives it"),
                Example("urlsession get -o images/ -i urls.txt --segments auto", "saves many into a folder"),
                Example(
                    "urlsession get --into media/films/ https://example.com/film.mp4",
                    "writes the object films/film.mp4, and no file"),
                Example("urlsession get -o - https://example.com/data.json | jq .", "writes to standard output"),
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
                Argument("FILE", "what to upload", .file),
                Argument("URL", "where to; one that ends with / gets the file's name"),
            ],
            options: requestOptions + [
                Option("--type TYPE", "media type (application/octet-stream)")
            ] + taskOptions + sessionOptions,
            examples: [
                Example("urlsession put backup.tar https://files.example.com/backups/", "uploads as backups/backup.tar")
            ],
            run: Transfers.put),
        Subcommand(
            name: "attach", summary: "come back to the transfers of a session",
            about: """
                Follows what get and put left in a session, and saves what is to be saved where they were told to, below \
                the current folder; elsewhere only with -o.
                """,
            arguments: [Argument("SESSION", "the session that get or put named", .session)],
            options: [output] + saveOptions,
            run: Transfers.attach),
        Subcommand(
            name: "watch", summary: "show how far the tasks of a session are",
            about: "Until all that are under way are over. Saves nothing.",
            arguments: [Argument("SESSION", "the session to watch", .session)],
            run: Transfers.attach),
        Subcommand(
            name: "content", summary: "write the content of a finished task",
            arguments: [
                Argument("SESSION", "the task's session", .session),
                Argument("TASK", "its number", .number(1 ... .max)),
            ],
            options: [output, Option("-f, --force", "replace a file that is there")],
            run: TaskCommands.content),
    ]
}
