import Options
import Wire

/// One command: its words, what it says about itself, and what it does.
///
/// Parsing, help, completions and manual pages are all made of ``CommandTable/all``.
struct Subcommand: Sendable {
    /// A word that the command needs, or may have, in its place.
    struct Argument: Sendable {
        /// `SESSION`, `[SESSION]`, `TASK...` or `[TASK...]`.
        let usage: String
        let name: String
        let kind: ValueKind
        let isOptional: Bool
        /// Takes all words that are left. Only the last one.
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

    var allOptions: [Option] { options + (isLocal ? [] : CommandTable.connection) + CommandTable.common }

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
        CommandGroup(title: "Sessions and tasks", commands: Subcommand.tasks),
        CommandGroup(title: "Events and questions", commands: Subcommand.events),
        CommandGroup(title: "Webhooks", commands: Subcommand.webhooks),
        CommandGroup(title: "Operators (with the admin key)", commands: Subcommand.operators),
        CommandGroup(title: "This tool", commands: Subcommand.local),
    ]

    static let all = groups.flatMap(\.commands)

    /// Options of every command that talks to the service.
    static let connection = [
        Option("--profile NAME", "use this part of the configuration file"),
        Option("--url URL", "where the service listens"),
        Option(
            "--ca-file FILE",
            "certificates (PEM) that an https service is trusted by, instead of those of this machine",
            .file),
        Option("--json", "write JSON as the API has it, a document a line"),
        Option("-q, --quiet", "write nothing but errors"),
    ]

    static let common = [
        Option("-h, --help", "tell about the command"),
        Option("--version", "tell the version"),
    ]

    static let statuses: [(status: Int32, meaning: String)] = [
        (0, "it is done"),
        (1, "it failed: a refusal, a failed transfer, no service"),
        (2, "it was called wrongly, or interrupted"),
        (4, "the key is missing, wrong, or not allowed to do this"),
    ]

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

extension ValueKind {
    static func choice(_ words: [some RawRepresentable<String>]) -> ValueKind { .choice(words.map(\.rawValue)) }
    static func choices(_ words: [some RawRepresentable<String>]) -> ValueKind { .choices(words.map(\.rawValue)) }
}
