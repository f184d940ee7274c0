import Options

/// Scripts that let shells complete the words of a call, made of the table.
enum Completions {
    static let shells = ["bash", "zsh", "fish"]

    static func script(for shell: String) -> String {
        switch shell {
        case "bash": bash()
        case "zsh": zsh()
        default: fish()
        }
    }

    private static var names: [String] {
        var names: [String] = []
        for command in CommandTable.all {
            let first = String(command.name.prefix { $0 != " " })
            if !names.contains(first) { names.append(first) }
        }
        return names + ["help"]
    }

    private static var families: [(word: String, commands: [String])] {
        names.compactMap { word in
            let family = CommandTable.family(word).map { String($0.name.dropFirst(word.count + 1)) }
            return family.isEmpty ? nil : (word, family)
        }
    }

    private static func spellings(_ option: Option) -> [String] {
        (option.short.map { ["-\($0)"] } ?? []) + ["--\(option.name)"]
    }

    /// Options that may stand before the command, and those of them that have a value.
    private static let leading = CommandTable.connection + CommandTable.common
    private static let valued = leading.filter { $0.value != nil }.map { "--\($0.name)" }
    /// Those that say which service is called.
    private static let naming = valued

    // MARK: bash

    private static func bash() -> String {
        var lines = [
            "# bash completion of urlsession. Load it with: source <(urlsession completions bash)",
            "# The names of sessions, from the service that this line calls.",
            "_urlsession_sessions() {",
            "    local -a line=() call=()",
            "    local place=1 names=",
            "    read -ra line <<< \"${COMP_LINE-}\"",
            "    for ((; place < ${#line[@]}; place++)); do",
            "        case ${line[place]} in",
            "        \(naming.joined(separator: "|")))",
            "            call+=(\"${line[place]}\" \"${line[place+1]-}\")",
            "            ((++place))",
            "            ;;",
            "        \(naming.map { "\($0)=*" }.joined(separator: "|")))",
            "            call+=(\"${line[place]}\")",
            "            ;;",
            "        esac",
            "    done",
            "    names=$(timeout 3 \"${COMP_WORDS[0]}\" ${call[@]+\"${call[@]}\"} sessions 2>/dev/null </dev/null | cut -f 1)",
            "    local IFS=$'\\n'",
            "    COMPREPLY=($(compgen -W \"$names\" -- \"$word\" || true))",
            "}",
            "_urlsession() {",
            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= next= place=1",
            "    COMPREPLY=()",
            "    # Readline makes three words of --option=value, and of host:port.",
            "    if [[ $word == = ]]; then",
            "        word=",
            "    elif [[ $before == = ]]; then",
            "        before=${COMP_WORDS[COMP_CWORD-2]}",
            "    fi",
            "    while ((place < COMP_CWORD)); do",
            "        next=${COMP_WORDS[place]}",
            "        case $next in",
            "        \(valued.joined(separator: "|")))",
            "            [[ ${COMP_WORDS[place+1]} == = ]] && ((place++))",
            "            ((place += 2))",
            "            while [[ ${COMP_WORDS[place]-} == : ]]; do ((place += 2)); done",
            "            ;;",
            "        -*)",
            "            ((place++))",
            "            ;;",
            "        *)",
            "            command=$next",
            "            break",
            "            ;;",
            "        esac",
            "    done",
            "    # The value of an option before the command.",
            "    ((place > COMP_CWORD)) && return",
            "    if [[ -z $command ]]; then",
            "        local first=\(quoted(names.joined(separator: " ")))",
            "        [[ $word == -* ]] && first=\(quoted(leading.map { "--\($0.name)" }.joined(separator: " ")))",
            "        COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))",
            "        return",
            "    fi",
            "    case $command in",
        ]
        for (family, commands) in families {
            lines += [
                "    \(family))",
                "        next=${COMP_WORDS[place+1]}",
                "        if ((COMP_CWORD > place + 1)) && [[ \" \(commands.joined(separator: " ")) \" == *\" $next \"* ]]; then",
                "            command=\"$command $next\"",
                "        else",
            ]
            if CommandTable.named(family) == nil {
                lines += [
                    "            COMPREPLY=($(compgen -W \(quoted(commands.joined(separator: " "))) -- \"$word\"))",
                    "            return",
                ]
            } else {
                lines += [
                    "            [[ $word != -* ]] && COMPREPLY=($(compgen -W \(quoted(commands.joined(separator: " "))) -- \"$word\"))",
                    "            [[ $word != -* ]] && return",
                ]
            }
            lines += ["        fi", "        ;;"]
        }
        lines += [
            "    help)",
            "        COMPREPLY=($(compgen -W \(quoted(names.joined(separator: " "))) -- \"$word\"))",
            "        return",
            "        ;;",
            "    esac",
            "    case $command in",
        ]
        for command in CommandTable.all { lines += bash(command) }
        return (lines + ["    esac", "}", "complete -F _urlsession urlsession", ""]).joined(separator: "\n")
    }

    private static func bash(_ command: Subcommand) -> [String] {
        var lines = ["    \(quoted(command.name)))", "        case $before in"]
        for option in command.allOptions where option.value != nil {
            lines += [
                "        \(spellings(option).joined(separator: "|")))", "            \(bash(option.kind, "return"))",
                "            return", "            ;;",
            ]
        }
        let words = command.allOptions.map { "--\($0.name)" }.joined(separator: " ")
        lines += [
            "        esac", "        if [[ $word == -* ]]; then",
            "            COMPREPLY=($(compgen -W \(quoted(words)) -- \"$word\"))",
        ]
        if let kind = command.arguments.first(where: { $0.kind != .text })?.kind {
            lines += ["        else", "            \(bash(kind, ":"))"]
        }
        return lines + ["        fi", "        ;;"]
    }

    private static func bash(_ kind: ValueKind, _ otherwise: String) -> String {
        switch kind {
        case .file: "COMPREPLY=($(compgen -f -- \"$word\"))"
        case .session: "_urlsession_sessions"
        case .choice(let words), .choices(let words):
            "COMPREPLY=($(compgen -W \(quoted(words.joined(separator: " "))) -- \"$word\"))"
        default: otherwise
        }
    }

    // MARK: zsh

    private static func zsh() -> String {
        var lines = [
            "#compdef urlsession",
            "# zsh completion of urlsession. Put it as _urlsession into a folder of $fpath.",
            "# The names of sessions, from the service that this line calls.",
            "_urlsession_sessions() {",
            "    local -a names=(${(f)\"$(timeout 3 $call sessions 2>/dev/null </dev/null | cut -f 1)\"})",
            "    compadd -a names",
            "}",
            "_urlsession() {",
            "    # Words that name the service, wherever they stand.",
            "    local -a call=(${words[1]})",
            "    local place=2",
            "    for ((; place <= $#words; place++)); do",
            "        case ${words[place]} in",
            "        \(naming.joined(separator: "|")))",
            "            call+=(${words[place]} ${words[place+1]})",
            "            ((++place))",
            "            ;;",
            "        \(naming.map { "\($0)=*" }.joined(separator: "|")))",
            "            call+=(${words[place]})",
            "            ;;",
            "        esac",
            "    done",
            "    # Options of all commands may stand before the command.",
            "    while ((CURRENT > 2)) && [[ ${words[2]} == -* ]]; do",
            "        if [[ ${words[2]} == (\(valued.joined(separator: "|"))) ]]; then",
            "            ((CURRENT == 3)) && return",
            "            words[2]=()",
            "            ((CURRENT--))",
            "        fi",
            "        words[2]=()",
            "        ((CURRENT--))",
            "    done",
            "    local command=${words[2]}",
            "    if ((CURRENT == 2)) && [[ $command == -* ]]; then",
            "        compadd -- \(leading.map { "--\($0.name)" }.joined(separator: " "))",
            "        return",
            "    fi",
            "    if ((CURRENT == 2)); then",
            "        local -a commands=(",
        ]
        var seen: Set<String> = []
        for command in CommandTable.all {
            let first = String(command.name.prefix { $0 != " " })
            guard seen.insert(first).inserted else { continue }
            let summary = command.name == first ? command.summary : "\(first) commands"
            lines.append("            \(quoted("\(first):\(summary)"))")
        }
        lines += [
            "        )", "        _describe command commands", "        return", "    fi", "    case $command in",
        ]
        for (family, commands) in families {
            lines += [
                "    \(family))", "        if ((CURRENT == 3)); then",
                "            compadd -- \(commands.joined(separator: " "))",
            ]
            if CommandTable.named(family) == nil { lines.append("            return") }
            lines += [
                "        elif [[ \" \(commands.joined(separator: " ")) \" == *\" ${words[3]} \"* ]]; then",
                "            command=\"$command ${words[3]}\"", "            shift words", "            ((CURRENT--))",
                "        fi",
                "        ;;",
            ]
        }
        lines += ["    esac", "    shift words", "    ((CURRENT--))", "    case $command in"]
        for command in CommandTable.all {
            lines.append("    \(quoted(command.name)))")
            lines.append("        _arguments -S \\")
            for option in command.allOptions { lines.append("            \(zsh(option)) \\") }
            for argument in command.arguments {
                let place = argument.isRepeated ? "*" : ""
                let colon = argument.isOptional && !argument.isRepeated ? "::" : ":"
                lines.append("            \(quoted("\(place)\(colon)\(argument.name):\(zsh(argument.kind))")) \\")
            }
            lines += ["            && return", "        ;;"]
        }
        // The file is the function when zsh loads it by itself, and a script when it is sourced.
        let end = [
            "    esac", "}", "if [[ $funcstack[1] == _urlsession ]]; then", "    _urlsession \"$@\"", "else",
            "    compdef _urlsession urlsession", "fi", "",
        ]
        return (lines + end).joined(separator: "\n")
    }

    private static func zsh(_ option: Option) -> String {
        let help = option.help.replacing("[", with: "(").replacing("]", with: ")").replacing(":", with: ",")
        let value = option.value.map { ":\($0.replacing(":", with: " ")):\(zsh(option.kind))" } ?? ""
        let repeated = option.isRepeated ? "*" : ""
        return spellings(option).map { quoted("\(repeated)\($0)[\(help)]\(value)") }.joined(separator: " ")
    }

    private static func zsh(_ kind: ValueKind) -> String {
        switch kind {
        case .file: "_files"
        case .session: "_urlsession_sessions"
        case .choice(let words), .choices(let words): "(\(words.joined(separator: " ")))"
        // Not a space, which would be a message, and hide the options.
        default: "()"
        }
    }

    // MARK: fish

    private static func fish() -> String {
        var lines = [
            "# fish completion of urlsession. Load it with: urlsession completions fish | source",
            "# The words before the cursor, from the command on: options of all commands may stand before it.",
            "function __urlsession_words",
            "    set -l words (commandline -opc)",
            "    set -e words[1]",
            "    while set -q words[1]; and string match -q -- '-*' $words[1]",
            "        contains -- $words[1] \(valued.joined(separator: " ")); and set -q words[2]; and set -e words[2]",
            "        set -e words[1]",
            "    end",
            "    string join \\n -- $words",
            "end",
            "# The names of sessions, from the service that this line calls.",
            "function __urlsession_sessions",
            "    set -l words (commandline -opc)",
            "    set -l call $words[1]",
            "    set -e words[1]",
            "    while set -q words[1]",
            "        if contains -- $words[1] \(naming.joined(separator: " ")); and set -q words[2]",
            "            set -a call $words[1..2]",
            "            set -e words[1]",
            "        else if string match -qr -- '^(\(naming.joined(separator: "|")))=' $words[1]",
            "            set -a call $words[1]",
            "        end",
            "        set -e words[1]",
            "    end",
            "    timeout 3 $call sessions 2>/dev/null </dev/null | string replace -r '\\t.*' ''",
            "end",
            "function __urlsession_bare",
            "    set -l words (__urlsession_words)",
            "    not set -q words[1]",
            "end",
            "function __urlsession_command",
            "    set -l words (__urlsession_words)",
            "    set -q words[1]; and test $words[1] = $argv[1]; or return 1",
            "    test (count $argv) -eq 1; and return 0",
            "    set -q words[2]; and test $words[2] = $argv[2]",
            "end",
            "complete -c urlsession -f",
        ]
        lines += leading.map { fish($0, when: "__urlsession_bare") }
        var seen: Set<String> = []
        for command in CommandTable.all {
            let parts = command.name.split(separator: " ").map(String.init)
            if seen.insert(parts[0]).inserted {
                let summary = parts.count == 1 ? command.summary : "\(parts[0]) commands"
                lines.append("complete -c urlsession -n __urlsession_bare -a \(parts[0]) -d \(quoted(summary))")
            }
            if parts.count == 2 {
                lines.append(
                    "complete -c urlsession -n '__urlsession_command \(parts[0])' -a \(parts[1]) -d \(quoted(command.summary))"
                )
            }
            lines += command.allOptions.map { fish($0, when: "__urlsession_command \(command.name)") }
            for argument in command.arguments where argument.kind != .text {
                lines.append(
                    "complete -c urlsession -n '__urlsession_command \(command.name)'\(fish(argument.kind, required: false))"
                )
            }
        }
        return (lines + [""]).joined(separator: "\n")
    }

    private static func fish(_ option: Option, when condition: String) -> String {
        let short = option.short.map { " -s \($0)" } ?? ""
        let value = option.value == nil ? "" : fish(option.kind, required: true)
        return "complete -c urlsession -n '\(condition)' -l \(option.name)\(short)\(value)"
            + " -d \(quoted(option.help))"
    }

    private static func fish(_ kind: ValueKind, required: Bool) -> String {
        switch kind {
        case .file: required ? " -r -F" : " -F"
        case .session: (required ? " -x" : "") + " -a '(__urlsession_sessions)'"
        case .choice(let words), .choices(let words):
            (required ? " -x" : "") + " -a \(quoted(words.joined(separator: " ")))"
        default: required ? " -x" : ""
        }
    }

    /// In single quotes, as all three shells take them.
    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
