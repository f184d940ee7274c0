import Options

/// Completions of a line, derived from the table. The shells' scripts call the program itself with ``word``.
enum Completions {
    static let shells = ["bash", "zsh", "fish"]
    /// The first word of such a call. The shell and the words of the line follow, the last of which is to be completed.
    static let word = "__complete"

    /// The completions at the end of a line.
    enum Answer: Equatable {
        case files
        /// The names of sessions, from the service that the line calls.
        case sessions
        case words([Candidate])
    }

    struct Candidate: Equatable {
        let word: String
        var meaning = ""
    }

    /// - Parameter line: The words after the program's name.
    static func answer(_ line: [String]) -> Answer {
        var (rest, word) = (line.dropLast()[...], line.last ?? "")
        let leading = CommandTable.connection + CommandTable.common
        // Common options may precede the command.
        while let next = rest.first, next.hasPrefix("-") {
            rest.removeFirst()
            if let option = valued(next, leading), rest.popFirst() == nil { return values(option.kind) }
        }
        guard let first = rest.popFirst() else {
            return word.hasPrefix("-") ? options(word, leading) : .words(commands)
        }
        if first == "help" { return .words(commands) }
        var command = CommandTable.named(first)
        if let second = rest.first, let longer = CommandTable.named("\(first) \(second)") {
            command = longer
            rest.removeFirst()
        } else if rest.isEmpty, !word.hasPrefix("-"), case let family = CommandTable.family(first), !family.isEmpty {
            return .words(
                family.map { Candidate(word: String($0.name.dropFirst(first.count + 1)), meaning: $0.summary) })
        }
        guard let command else { return .words([]) }
        var place = 0
        while let next = rest.popFirst() {
            if let option = valued(next, command.allOptions) {
                if rest.popFirst() == nil { return values(option.kind) }
            } else if !next.hasPrefix("-") || next == "-" {
                place += 1
            }
        }
        if word.hasPrefix("-") { return options(word, command.allOptions) }
        let last = command.arguments.last.flatMap { $0.isRepeated ? $0 : nil }
        return values((place < command.arguments.count ? command.arguments[place] : last)?.kind ?? .text)
    }

    /// The option that a word names, if its value is the next word.
    private static func valued(_ word: String, _ options: [Option]) -> Option? {
        let word = OptionWord(word)
        return word.rest == nil ? options.first { word.names($0) && $0.value != nil } : nil
    }

    private static func options(_ word: String, _ options: [Option]) -> Answer {
        let word = OptionWord(word)
        if word.isLong, word.rest != nil, let option = options.first(where: word.names) {
            return .words(option.kind.words.map { Candidate(word: "\(word.spelling)=\($0)") })
        }
        return .words(options.map { Candidate(word: "--\($0.name)", meaning: $0.help) })
    }

    private static func values(_ kind: ValueKind) -> Answer {
        switch kind {
        case .file: .files
        case .session: .sessions
        default: .words(kind.words.map { Candidate(word: $0) })
        }
    }

    /// The words of a line that name the service.
    static func connection(of line: [String]) -> [String] {
        line.indices.flatMap { index in
            let word = OptionWord(line[index])
            guard CommandTable.connection.contains(where: { $0.value != nil && word.names($0) }) else {
                return [String]()
            }
            return Array(line[index...].prefix(word.rest == nil ? 2 : 1))
        }
    }

    private static var commands: [Candidate] {
        var (found, seen): ([Candidate], Set<String>) = ([], [])
        for command in CommandTable.all {
            let first = String(command.name.prefix { $0 != " " })
            guard seen.insert(first).inserted else { continue }
            found.append(Candidate(word: first, meaning: command.name == first ? command.summary : "\(first) commands"))
        }
        return found + [Candidate(word: "help", meaning: "print the help of a command")]
    }

    // MARK: Shells

    /// The completions of a line for a shell's script.
    ///
    /// - Parameters:
    ///   - words: The shell, and the words of the line after the program's name.
    ///   - sessions: The names of the sessions.
    static func lines(_ words: [String], sessions: ([String]) async -> [String]) async -> [String] {
        let shell = words.first ?? ""
        let (line, head) = shell == "bash" ? glued(Array(words.dropFirst())) : (Array(words.dropFirst()), "")
        let candidates: [Candidate]
        switch answer(line) {
        case .files: return [":files"]
        case .sessions: candidates = await sessions(line).map { Candidate(word: $0) }
        case .words(let words): candidates = words
        }
        return candidates.compactMap { candidate in
            let (word, meaning) = (candidate.word, candidate.meaning)
            switch shell {
            // Readline inserts every completion, even if it does not fit.
            case "bash": return word.hasPrefix(line.last ?? "") ? String(word.dropFirst(head.count)) : nil
            case "zsh": return "\(word.replacing(":", with: "\\:")):\(meaning)"
            default: return "\(word)\t\(meaning)"
            }
        }
    }

    /// The words of a line that readline has split at `=` and `:`, and the part of the last one before the split.
    private static func glued(_ words: [String]) -> (line: [String], head: String) {
        var (line, head, isOpen) = ([String](), "", false)
        for word in words {
            let isBreak = word == "=" || word == ":"
            head = isBreak || isOpen ? line.popLast() ?? "" : ""
            line.append(head + word)
            if isBreak { head += word }
            isOpen = isBreak
        }
        return (line, head)
    }

    static func script(for shell: String) -> String {
        switch shell {
        case "bash":
            #"""
            # bash completion of urlsession. Load it with: source <(urlsession completions bash)
            _urlsession() {
                local word=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
                COMPREPLY=($(timeout 3 "${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null || true))
                if [[ ${COMPREPLY[0]-} == :files ]]; then COMPREPLY=($(compgen -f -- "${word#=}" || true)); fi
            }
            complete -F _urlsession urlsession
            """#
        case "zsh":
            #"""
            #compdef urlsession
            # zsh completion of urlsession. Put it as _urlsession into a folder of $fpath.
            _urlsession() {
                local -a found=(${(f)"$(timeout 3 ${words[1]} __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)"})
                if [[ $found == :files ]]; then
                    _files
                else
                    _describe urlsession found
                fi
            }
            # The file is the function when zsh loads it by itself, and a script when it is sourced.
            if [[ $funcstack[1] == _urlsession ]]; then
                _urlsession "$@"
            else
                compdef _urlsession urlsession
            fi
            """#
        default:
            #"""
            # fish completion of urlsession. Load it with: urlsession completions fish | source
            function __urlsession_complete
                set -l words (commandline -opc)
                set -l program $words[1]
                set -l word (commandline -ct)
                set -e words[1]
                set -l found (timeout 3 $program __complete fish $words "$word" 2>/dev/null </dev/null)
                if test "$found" = :files
                    __fish_complete_path $word
                else
                    string join \n -- $found
                end
            end
            complete -c urlsession -f -a '(__urlsession_complete)'
            """#
        }
    }
}
