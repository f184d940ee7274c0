import Options
import Wire

/// One command: its words, what it says about itself, and what it does.
///
/// Parsing, help, completions and manual pages are all made of ``CommandTable/all``.
struct Subcommand: Sendable {
    /// A word that the command needs, or may have, in its place.
    struct Argument: Sendable {
        let name: String
        let help: String
        var kind = ValueKind.text
        var isOptional = false
        /// Takes all words that are left. Only the last one.
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
    /// Whether it talks to the service.
    var isLocal = false
    let run: @Sendable (Invocation) async throws -> Void

    /// All options it takes.
    var allOptions: [Option] { options + (isLocal ? [] : CommandTable.connection) + CommandTable.common }

    var usage: String {
        (["urlsession \(name)"] + (options.isEmpty ? [] : ["[OPTIONS]"]) + arguments.map(\.usage))
            .joined(separator: " ")
    }
}

/// Commands that belong together.
struct CommandGroup: Sendable {
    let title: String
    let commands: [Subcommand]
}

/// All there is.
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

    /// Options of every command that talks to the service.
    static let connection = [
        Option(name: "profile", value: "NAME", help: "use this part of the configuration file"),
        Option(name: "url", value: "URL", help: "where the service listens"),
        Option(
            name: "ca-file", value: "FILE", kind: .file,
            help: "certificates (PEM) that an https service is trusted by, instead of those of this machine"),
        Option(name: "json", help: "write JSON as the API has it, a document a line"),
        Option(name: "quiet", short: "q", help: "write nothing but errors"),
    ]

    /// Options of every command.
    static let common = [
        Option(name: "help", short: "h", help: "tell about the command"),
        Option(name: "version", help: "tell the version"),
    ]

    /// The exit statuses, for help and manual.
    static let statuses: [(status: Int32, meaning: String)] = [
        (0, "it is done"),
        (1, "it failed: a refusal, a failed transfer, no service"),
        (2, "it was called wrongly, or interrupted"),
        (4, "the key is missing, wrong, or not allowed to do this"),
    ]

    /// The environment, for help and manual.
    static let variables: [(name: String, meaning: String)] = [
        ("URLSESSION_URL", "where the service listens (http://127.0.0.1:8080)"),
        ("URLSESSION_KEY", "the API key (dev)"),
        ("URLSESSION_CA_FILE", "certificates that an https service is trusted by, instead of those of this machine"),
        ("URLSESSION_PROFILE", "the part of the configuration file to use"),
        ("URLSESSION_WEBHOOK_SECRET", "the secret that `receive` verifies signatures with"),
    ]

    static func named(_ name: String) -> Subcommand? { all.first { $0.name == name } }

    /// The commands whose first word is this, where that alone is none.
    static func family(_ word: String) -> [Subcommand] { all.filter { $0.name.hasPrefix(word + " ") } }
}
