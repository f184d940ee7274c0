import Options

enum Help {
    static func overview() -> String {
        var lines = [
            "urlsession \(CommandTable.version): background transfers from a shell", "",
            "usage: urlsession COMMAND [OPTIONS] ...",
        ]
        for group in CommandTable.groups {
            lines += ["", group.title + ":"]
            lines += rows(group.commands.map { ($0.name, $0.summary) })
        }
        lines += ["", "Options of the commands that call the service:"]
        lines += rows(CommandTable.connection.map { ($0.usage, $0.help) })
        lines += ["", "Options of all commands:"] + rows(CommandTable.common.map { ($0.usage, $0.help) })
        lines += ["", "Environment:"] + rows(CommandTable.variables.map { ($0.name, $0.meaning) })
        lines += ["", "Exit status:"] + rows(CommandTable.statuses.map { (String($0.status), $0.meaning) })
        lines += ["", "urlsession COMMAND --help tells more about each."]
        return lines.joined(separator: "\n")
    }

    static func family(_ word: String) -> String {
        (["usage: urlsession \(word) COMMAND ...", ""] + rows(CommandTable.family(word).map { ($0.name, $0.summary) }))
            .joined(separator: "\n")
    }

    static func command(_ command: Subcommand) -> String {
        var lines = ["urlsession \(command.name): \(command.summary)", "", "usage: \(command.usage)"]
        if !command.about.isEmpty { lines += [""] + paragraphs(command.about) }
        if !command.arguments.isEmpty {
            lines += ["", "Arguments:"] + rows(command.arguments.map { ($0.name, describe($0.help, $0.kind)) })
        }
        lines += ["", "Options:"] + rows(command.allOptions.map { ($0.usage, describe($0.help, $0.kind)) })
        let family = CommandTable.family(command.name)
        if !family.isEmpty { lines += ["", "Commands:"] + rows(family.map { ($0.name, $0.summary) }) }
        if !command.examples.isEmpty {
            lines += ["", "Examples:"] + command.examples.flatMap { ["  \($0.command)", "      \($0.meaning)"] }
        }
        return lines.joined(separator: "\n")
    }

    static func describe(_ help: String, _ kind: ValueKind) -> String {
        kind.words.isEmpty ? help : "\(help): \(kind.words.joined(separator: ", "))"
    }

    /// Two columns, the second one wrapped at 100 columns.
    private static func rows(_ rows: [(String, String)]) -> [String] {
        let width = min(rows.map(\.0.count).max() ?? 0, 26)
        return rows.flatMap { name, help in
            let lines = wrap(help, width: 96 - width)
            let gap = String(repeating: " ", count: max(2, width + 2 - name.count))
            let indent = String(repeating: " ", count: width + 4)
            guard name.count <= width else { return ["  " + name] + lines.map { indent + $0 } }
            return ["  " + name + gap + (lines.first ?? "")] + lines.dropFirst().map { indent + $0 }
        }
    }

    private static func paragraphs(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { wrap(String($0), width: 98) }
    }

    static func wrap(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " " + word
        }
        return lines + [line]
    }
}
