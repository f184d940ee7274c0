import Options
import Wire

/// One command: its words, its help, and its action.
///
/// Parsing, help, completions and manual pages are all derived from ``CommandTable/all``.
struct Subcommand: Sendable {
    /// A positional argument of the command, required or optional.
    struct Argument: Sendable {
        /// `SESSION`, `[SESSION]`, `TASK...` or `[TASK...]`.
        let usage: String
        let name: String
        let kind: ValueKind
        let isOptional: Bool
        /// Whether it takes all remaining words. Only for the last argument.
        let isRepeated: Bool
        let help: String

        init(_ usage: String, _ help: String, _ kind: ValueKind = .text) {
            (self.usage, self.kind, self.help) = (usage, kind, help)
            name = usage.filter { !"[.]".contains($0) }
            (isOptional, isRepeated) = (usage.hasPrefix("["), usage.contains("..."))
        }
    }

    struct Example: Sendable {
        let command: String
        let meaning: String

        init(_ command: String, _ meaning: String) { (self.command, self.meaning) = (command, meaning) }
    }

    /// `get`, or `webhook set`.
    let name: String
    let summary: String
    var about = ""
    var arguments: [Argument] = []
    var options: [Option] = []
    var examples: [Example] = []
    var isLocal = false
    let run: @Sendable (Invocation) async throws -> Void

    /// The options of the command, and those common options of whose names it has no option of its own.
    var allOptions: [Option] {
        let names = Set(options.map(\.name))
        return options + (isLocal ? [] : CommandTable.connection)
            + CommandTable.common.filter { !names.contains($0.name) }
    }

    var usage: String {
        (["urlsession \(name)"] + (options.isEmpty ? [] : ["[OPTIONS]"]) + arguments.map(\.usage))
            .joined(separator: " ")
    }
}

struct CommandGroup: Sendable {
    let title: String
    let commands: [Subcommand]
}

enum CommandTable {
    static let version = Release.version

    static let groups = [
        CommandGroup(title: "Transfers", commands: Subcommand.transfers),
        CommandGroup(title: "Sets", commands: Subcommand.sets),
        CommandGroup(title: "Sessions and tasks", commands: Subcommand.tasks),
        CommandGroup(title: "Events and questions", commands: Subcommand.events),
        CommandGroup(title: "Webhooks", commands: Subcommand.webhooks),
        CommandGroup(title: "Operators (with the admin key)", commands: Subcommand.operators),
        CommandGroup(title: "This tool", commands: Subcommand.local),
    ]

    static let all = groups.flatMap(\.commands)

    /// Options of every command that calls the service.
    static let connection = [
        Option("--profile NAME", "use this profile of the configuration file"),
        Option("--url URL", "the URL of the service"),
        Option(
            "--ca-file FILE",
            "trusted certificates (PEM) of an https service, instead of those of this machine",
            .file),
        Option("--json", "write the API's JSON, one document on each line"),
        Option("-q, --quiet", "write errors only"),
    ]

    static let common = [
        Option("-h, --help", "print the help of the command"),
        Option("--version", "print the version"),
    ]

    static let statuses: [(status: Int32, meaning: String)] = [
        (0, "success"),
        (1, "failure: a refusal, a failed transfer, no service"),
        (2, "a wrong call, or an interruption"),
        (4, "the key is missing, invalid, or lacks the permission"),
    ]

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

extension ValueKind {
    static func choice(_ words: [some RawRepresentable<String>]) -> ValueKind { .choice(words.map(\.rawValue)) }
    static func choices(_ words: [some RawRepresentable<String>]) -> ValueKind { .choices(words.map(\.rawValue)) }
}
