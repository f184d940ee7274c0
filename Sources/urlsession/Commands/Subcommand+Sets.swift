import Options
import URLSessionClient
import Wire

extension Subcommand {
    private static let set = Argument("SET", "the name of a set")
    private static let version = Argument("VERSION", "the name of a version, or its sver_...")

    /// Options of a source of the kind `huggingface`.
    static let hub = [
        Option("--hf ORG/NAME", "the files of a Hugging Face repository"),
        Option("--revision REVISION", "with --hf: a branch, tag or commit (main)"),
        Option("--type TYPE", "with --hf: the type of the repository (model)", .choice(SetSource.RepositoryType.known)),
        Option("--allow GLOB", "with --hf: only the files with such a path", isRepeated: true),
        Option("--ignore GLOB", "with --hf: not the files with such a path", isRepeated: true),
    ]

    private static let otherSources = [
        Option("--endpoint URL", "with --hf: another server than huggingface.co"),
        Option("--checksums URL", "the files of a list such as SHA256SUMS"),
        Option("--base URL", "with --checksums: the URL of the files, if it is not that of the list"),
        Option("--manifest URL", "the files of a manifest of the service, or of a Metalink document"),
    ]

    private static let configuration = [
        Option("--root NAME", "publish into a folder below this --files-root of the service"),
        Option("--path PATH", "with --root: the folder"),
        Option("--bucket NAME", "publish into this bucket of the service"),
        Option("--prefix PREFIX", "with --bucket: the beginning of the objects' keys"),
        Option(
            "--layout LAYOUT", "the arrangement of the files there (versions)", .choice(SetLayout.known)),
        Option("--keep N", "the number of versions that are kept besides the current one (3)", .number(0...1000)),
        Option("--grace TIME", "how long a version is kept after it stopped being current (1h)", .duration),
    ]

    static let sets = [
        Subcommand(name: "sets", summary: "list sets", run: SetCommands.list),
        Subcommand(
            name: "set publish", summary: "create a version of a set, and the set if it does not exist",
            about: """
                The service fetches all files and publishes them as one version when the last one is verified. The \
                files are those of a source, or of a FILE with a file on each line: URL, URL<TAB>PATH, or the API's \
                JSON with path, request, expectedDigest and length; - for standard input.

                With --wait the command follows the progress, and ends with 1 if the version fails. A commit that is \
                published already counts as published. Ctrl-C detaches: the service continues.
                """,
            arguments: [set, Argument("[FILE]", "the list of files", .file)],
            options: hub + otherSources + [
                Option("--version NAME", "the name of the version, by default the commit or a new identifier"),
                Option("-s, --session SESSION", "fetch the files in this session", .session),
                Option("-w, --wait", "wait until the version is published or has failed"),
            ] + configuration,
            examples: [
                Example(
                    "urlsession set publish gpt2 --hf openai-community/gpt2 --allow '*.safetensors' --wait",
                    "publishes the weights of a model"),
                Example(
                    "urlsession set publish site files.txt --root www --path site",
                    "publishes a list of files as the folder site/current"),
            ],
            run: SetCommands.publish),
        Subcommand(
            name: "set show", summary: "show a set, or one of its versions with its progress and failures",
            arguments: [set, Argument("[VERSION]", "the name of a version, or its sver_...")], run: SetCommands.show),
        Subcommand(
            name: "set switch", summary: "make a kept version current again", arguments: [set, version],
            run: SetCommands.switchSet),
        Subcommand(
            name: "set retry", summary: "fetch the failed files of a version again", arguments: [set, version],
            options: [Option("-w, --wait", "wait until the version is published or has failed")],
            run: SetCommands.retry),
        Subcommand(
            name: "set cancel", summary: "give a version up", arguments: [set, version], run: SetCommands.cancel),
        Subcommand(
            name: "set rm", summary: "delete a set and its files", arguments: [set],
            options: [Option("--keep-files", "leave the files of the current version at the destination")],
            run: SetCommands.remove),
    ]
}
