import Options
import Wire

/// One command: its words, its help, and its action.
///
/// Parsing, help, completions and manual pages are all derived from ``CommandTable/all``.
struct Subcommand: Sendable {
    /// A positional argument of the command, required or optional.
    struct Argument: Sendable {
        let name: String
        let help: String
        var kind = ValueKind.text
        var isOptional = false
        /// Whether it takes all remaining words. Only for the last argument.
        var isRepeated = false

        var usage: String {
            let word = isRepeated ? name + "..." : name
            return isOptional ? "[\(word)]" : word
        }
    }

    struct Example: Sendable {
        let command: String
        let meaning: String
    }

    /// `get`, or `webhook set`.
    let name: String
    /// One line.
    let summary: String
    /// Paragraphs.
    var about = ""
    var arguments: [Argument] = []
    var options: [Option] = []
    var examples: [Example] = []
    /// Whether the command does not call the service.
    var isLocal = false
    let run: @Sendable (Invocation) async throws -> Void

    /// All options of the command.
    var allOptions: [Option] { options + (isLocal ? [] : CommandTable.connection) + CommandTable.common }

    var usage: String {
        (["urlsession \(name)"] + (options.isEmpty ? [] : ["[OPTIONS]"]) + arguments.map(\.usage))
            .joined(separator: " ")
    }
}

/// A group of related commands.
struct CommandGroup: Sendable {
    let title: String
    let commands: [Subcommand]
}

/// All commands.
enum CommandTable {
    static let version = Release.version

    static let groups = [
        CommandGroup(title: "Transfers", commands: Subcommand.transfers),
        CommandGroup(title: "Sessions and tasks", commands: Subcommand.tasks),
        CommandGroup(title: "Events and questions", commands: Subcommand.events),
        CommandGroup(title: "Webhooks", commands: Subcommand.webhooks),
        CommandGroup(title: "Operators (with the admin key)", commands: Subcommand.operators),
        CommandGroup(title: "This tool", commands: Subcommand.local),
    ]

    static let all = groups.flatMap(\.commands)

    /// Options of every command that calls the service.
    static let connection = [
        Option(name: "profile", value: "NAME", help: "use this profile of the configuration file"),
        Option(name: "url", value: "URL", help: "the URL of the service"),
        Option(
            name: "ca-file", value: "FILE", kind: .file,
            help: "trusted certificates (PEM) of an https service, instead of those of this machine"),
        Option(name: "json", help: "write the API's JSON, one document on each line"),
        Option(name: "quiet", short: "q", help: "write errors only"),
    ]

    /// Options of every command.
    static let common = [
        Option(name: "help", short: "h", help: "print the help of the command"),
        Option(name: "version", help: "print the version"),
    ]

    /// The exit statuses, for help and manual.
    static let statuses: [(status: Int32, meaning: String)] = [
        (0, "success"),
        (1, "failure: a refusal, a failed transfer, no service"),
        (2, "a wrong call, or an interruption"),
        (4, "the key is missing, invalid, or lacks the permission"),
    ]

    /// The environment, for help and manual.
    static let variables: [(name: String, meaning: String)] = [
        ("URLSESSION_URL", "the URL of the service (http://127.0.0.1:8080)"),
        ("URLSESSION_KEY", "the API key (dev)"),
        ("URLSESSION_CA_FILE", "trusted certificates of an https service, instead of those of this machine"),
        ("URLSESSION_PROFILE", "the profile of the configuration file"),
        ("URLSESSION_WEBHOOK_SECRET", "the secret with which `receive` verifies signatures"),
    ]

    static func named(_ name: String) -> Subcommand? { all.first { $0.name == name } }

    /// The commands with this first word, if the word alone is no command.
    static func family(_ word: String) -> [Subcommand] { all.filter { $0.name.hasPrefix(word + " ") } }
}
