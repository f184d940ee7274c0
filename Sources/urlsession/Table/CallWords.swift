import Options

/// The words of one call, sorted by the table.
struct CallWords: Sendable {
    let command: Subcommand
    /// The texts of arguments and options by their names, which differ.
    private var texts: [String: [String]] = [:]

    struct Fault: Error, Equatable {
        let text: String
        /// The command whose help is relevant.
        var command: String?
    }

    enum Parsed {
        case run(CallWords)
        /// The help of a command, or of all.
        case help(Subcommand?)
        /// The help of the commands with this first word.
        case family(String)
        case version
    }

    static func parse(_ words: [String]) throws(Fault) -> Parsed {
        var rest = words[...]
        // Common options may precede the command.
        var leading: [String] = []
        while let word = rest.first, word.hasPrefix("-"), word != "-" {
            if word == "--help" || word == "-h" { return .help(nil) }
            if word == "--version" { return .version }
            leading.append(rest.removeFirst())
            let isLone = word.contains("=") || ["--json", "--quiet", "-q"].contains(word)
            if !isLone, let value = rest.popFirst() { leading.append(value) }
        }
        guard let first = rest.popFirst() else { return .help(nil) }
        if first == "help" { return try help(about: rest) }
        if first == "version" { return .version }
        var command = CommandTable.named(first)
        let family = CommandTable.family(first)
        if let second = rest.first, let longer = CommandTable.named("\(first) \(second)") {
            command = longer
            rest.removeFirst()
        }
        // `webhook seet` is not `webhook` with an excess word.
        if let second = rest.first, command?.arguments.isEmpty == true, !family.isEmpty, !second.hasPrefix("-") {
            throw unknown("\(first) \(second)")
        }
        guard let command else {
            guard !family.isEmpty else { throw unknown(first) }
            if rest.contains("--help") || rest.contains("-h") { return .family(first) }
            let wanted = family.map { String($0.name.dropFirst(first.count + 1)) }.joined(separator: ", ")
            throw Fault(text: "\(first) what? One of \(wanted)", command: first)
        }
        return try parse(leading + rest, of: command)
    }

    private static func help(about words: ArraySlice<String>) throws(Fault) -> Parsed {
        let name = words.joined(separator: " ")
        if name.isEmpty { return .help(nil) }
        if let command = CommandTable.named(name) { return .help(command) }
        guard CommandTable.family(name).isEmpty else { return .family(name) }
        throw unknown(name)
    }

    private static func parse(_ words: [String], of command: Subcommand) throws(Fault) -> Parsed {
        var call = CallWords(command: command)
        var (rest, plain, onlyPlain) = (words[...], [String](), false)
        while let word = rest.popFirst() {
            if onlyPlain || word == "-" || !word.hasPrefix("-") {
                plain.append(word)
            } else if word == "--" {
                onlyPlain = true
            } else {
                try call.take(option: word, &rest)
            }
        }
        if call.flag("help") { return .help(command) }
        if call.flag("version"), call.text("version") == "" { return .version }
        try call.take(arguments: plain)
        return .run(call)
    }

    private mutating func take(option word: String, _ rest: inout ArraySlice<String>) throws(Fault) {
        let word = OptionWord(word)
        guard let option = command.allOptions.first(where: word.names) else {
            throw fault("there is no option \(word.spelling)")
        }
        let name = "--\(option.name)"
        guard let value = option.value else {
            // `-qf` for two options without values.
            if let others = word.rest, !word.isLong { rest.insert("-" + others, at: rest.startIndex) }
            guard word.rest == nil || !word.isLong else { throw fault("\(name) has no value") }
            return texts[option.name, default: []].append("")
        }
        guard let text = word.rest ?? rest.popFirst() else { throw fault("\(name) needs a value, \(value)") }
        if !option.isRepeated, texts[option.name] != nil { throw fault("\(name) is given twice") }
        try check(text, option.kind, name)
        texts[option.name, default: []].append(text)
    }

    private mutating func take(arguments words: [String]) throws(Fault) {
        var rest = words[...]
        for argument in command.arguments {
            let taken = argument.isRepeated ? Array(rest) : Array(rest.prefix(1))
            rest = rest.dropFirst(taken.count)
            guard !taken.isEmpty || argument.isOptional else { throw fault("\(argument.name) is missing") }
            for word in taken { try check(word, argument.kind, argument.name) }
            if !taken.isEmpty { texts[argument.name] = taken }
        }
        if let word = rest.first { throw fault("\(word) is one word too many") }
    }

    private func check(_ text: String, _ kind: ValueKind, _ name: String) throws(Fault) {
        let isFree = [.text, .file, .session].contains(kind)
        guard !isFree || !text.isEmpty else { throw fault("\(name) must not be empty") }
        guard kind.accepts(text) else { throw fault("\(name) must be \(kind.requirement): \(text)") }
    }

    private func fault(_ text: String) -> Fault { Fault(text: text, command: command.name) }

    // MARK: Values

    var given: [Subcommand.Argument] { command.arguments.filter { texts[$0.name] != nil } }

    func flag(_ option: String) -> Bool { texts[option] != nil }

    func text(_ name: String) -> String? { texts[name]?.last }

    func texts(_ name: String) -> [String] { texts[name] ?? [] }

    /// The words of a list; empty if the option is not given.
    func list(_ name: String) -> [String] { choices(name) ?? [] }

    /// The words of a list; `nil` if the option is not given.
    func choices(_ name: String) -> [String]? { text(name).map(ValueKind.list) }

    func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) } }

    func seconds(_ name: String) -> Double? { text(name).flatMap(Amount.seconds) }

    func bytes(_ name: String) -> Int64? { text(name).flatMap(Amount.bytes) }

    // MARK: Suggestions

    private static func unknown(_ word: String) -> Fault {
        let names = Set(CommandTable.all.flatMap { [$0.name, String($0.name.prefix { $0 != " " })] })
        let near = names.map { ($0, distance(word, $0)) }.filter { $0.1 <= max(1, word.count / 3) }
            .min { ($0.1, $0.0) < ($1.1, $1.0) }
        return Fault(text: "there is no command \(word)" + (near.map { "; did you mean \($0.0)?" } ?? ""))
    }

    /// The number of letters to change (Levenshtein).
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var row = Array(0...right.count)
        for (i, letter) in left.enumerated() {
            var previous = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let cost = previous + (letter == other ? 0 : 1)
                previous = row[j + 1]
                row[j + 1] = min(cost, row[j] + 1, previous + 1)
            }
        }
        return row[right.count]
    }
}
