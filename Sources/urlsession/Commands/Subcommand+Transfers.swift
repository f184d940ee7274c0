import Options

extension Subcommand {
    private static let requestOptions = [
        Option(
            "-H, --header TEXT",
            "a header field, NAME: TEXT, or @FILE for the lines of a file (@- for standard input), which are hidden from the process list",
            isRepeated: true),
        Option("-X, --method METHOD", "the method, instead of GET or PUT"),
        Option(
            "-u, --user NAME", "the user for HTTP Basic; the password is typed, or the first line of standard input"),
    ]

    private static let sessionOptions = [
        Option(
            "--tries N",
            "the maximum attempts of each transfer, if the server is away or answers 503 and similar (for a week)",
            .number(1...1_000_000)),
        Option("--max-time TIME", "the time after which unfinished transfers fail (7d)", .duration),
        Option("-j, --connections N", "concurrent transfers per host (6)", .number(1...10_000)),
        Option(
            "--limit-rate RATE", "bytes per second of all transfers together, such as 500k, 2M or 1G (1k is 1024)",
            .rate),
    ]

    private static let taskOptions = [
        Option("--priority N", "0 to 1 (0.5)", .fraction),
        Option("--group NAME", "the group of the tasks, for suspend, resume, cancel and retry"),
        Option("--not-before TIME", "begin no earlier, such as 2026-12-01T00:00:00Z"),
        Option("-s, --session SESSION", "use this session instead of one of the call's own", .session),
        Option("-d, --detach", "create the tasks and exit; urlsession attach follows them"),
    ]

    private static let saveOptions = [
        Option("-f, --force", "replace existing files"),
        Option("--save-errors", "save error pages of servers, too; the exit status stays 1"),
    ]

    private static let output = Option(
        "-o, --output PATH",
        "save as this file, or into this folder if it is one or ends with /; - for standard output",
        .file)

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

                With --set or --hf the files of one version are saved in a folder, the argument or one of the set's \
                name, with their lengths and digests verified. --hf makes a set of the repository first, which is \
                deleted when its files are saved, unless --set names it.

                A session of the call's own is deleted when all downloads have ended and their contents are saved. With \
                --session the downloads stay there, and contents for the service's retention.
                """,
            arguments: [
                Argument(
                    "[URL...]",
                    "the URL to download; s3://BUCKET/KEY for a bucket of the service; with --set or --hf the folder")
            ],
            options: [output] + saveOptions + requestOptions + [
                Option(
                    "--segments N", "the number of concurrent connections",
                    .choice((1...16).map { String($0) } + ["auto"])),
                Option("--mirror URL", "another URL of the same bytes", isRepeated: true),
                Option("--digest DIGEST", "the expected digest: sha-256:HEX, sha-512:HEX or md5:HEX"),
                Option(
                    "--into BUCKET/KEY",
                    "write into a bucket of the service instead; a KEY that ends with / gets the URL's name"),
                Option("--max-length BYTES", "fail if the content is longer", .number(0 ... .max)),
                Option(
                    "-i, --input-file FILE",
                    "read URLs from a file, one on each line, optionally with a tab and the NAME of its file; - for standard input",
                    .file),
                Option("--set NAME", "the files of the current version of this set"),
                Option("--set-version VERSION", "with --set: of this version instead"),
            ] + hub + taskOptions + sessionOptions,
            examples: [
                Example(
                    "urlsession get https://www.debian.org/",
                    "saves www.debian.org.html, named by the server or the URL"),
                Example("urlsession get -o images/ -i urls.txt --segments auto", "saves many files in a folder"),
                Example(
                    "urlsession get --into media/films/ https://example.com/film.mp4",
                    "writes the object films/film.mp4, and no file"),
                Example("urlsession get -o - https://example.com/data.json | jq .", "writes to standard output"),
                Example("urlsession get --hf openai-community/gpt2 --allow '*.json' gpt2/", "saves files of a model"),
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
                Argument("FILE", "the file to upload", .file),
                Argument("URL", "the target; a URL that ends with / gets the file's name"),
            ],
            options: requestOptions + [
                Option("--type TYPE", "media type (application/octet-stream)")
            ] + taskOptions + sessionOptions,
            examples: [
                Example("urlsession put backup.tar https://files.example.com/backups/", "uploads as backups/backup.tar")
            ],
            run: Transfers.put),
        Subcommand(
            name: "attach", summary: "follow the transfers of a session again",
            about: """
                Follows the transfers that get and put left in a session, and saves contents in their places below the \
                current folder; elsewhere only with -o.
                """,
            arguments: [Argument("SESSION", "the session of get or put", .session)],
            options: [output] + saveOptions,
            run: Transfers.attach),
        Subcommand(
            name: "watch", summary: "show the progress of a session's tasks",
            about: """
                Ends with the last running task. Saves nothing, and does not attach: the app is launched meanwhile as \
                usual.
                """,
            arguments: [Argument("SESSION", "the session to watch", .session)],
            run: Transfers.attach),
        Subcommand(
            name: "content", summary: "write the content of a finished or running task",
            arguments: [
                Argument("SESSION", "the task's session", .session),
                Argument("TASK", "its number", .number(1 ... .max)),
            ],
            options: [
                output, Option("-f, --force", "replace an existing file"),
                Option("--arriving", "write the bytes of an unfinished download as they arrive"),
            ],
            run: TaskCommands.content),
    ]
}
