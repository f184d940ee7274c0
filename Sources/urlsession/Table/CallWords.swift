/// The words of one call, sorted by the table.
struct CallWords: Sendable {
    let command: Subcommand
    private(set) var arguments: [String: [String]] = [:]
    private(set) var options: [String: [String]] = [:]

    /// What was called wrongly.
    struct Fault: Error, Equatable {
        let text: String
        /// The command whose help would tell.
        var command: String?
    }

    enum Parsed {
        case run(CallWords)
        /// Help of a command, or of all.
        case help(Subcommand?)
        /// Help of the commands with this first word.
        case family(String)
        case version
    }

    /// Sorts the words after the tool's name.
    static func parse(_ words: [String]) throws(Fault) -> Parsed {
        var rest = words[...]
        // Options of all commands may stand before the command.
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
        // `webhook seet` is no `webhook` with a word too many.
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
        if call.flag("version") { return .version }
        try call.take(arguments: plain)
        return .run(call)
    }

    private mutating func take(option word: String, _ rest: inout ArraySlice<String>) throws(Fault) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let isLong = word.hasPrefix("--")
        let known = command.allOptions
        let option =
            isLong
            ? known.first { "--\($0.name)" == parts[0] }
            : known.first { $0.short != nil && $0.short == word.dropFirst().first }
        guard let option else { throw fault("there is no option \(isLong ? parts[0] : word)") }
        var value: String?
        if isLong, parts.count == 2 {
            value = parts[1]
        } else if !isLong, word.count > 2 {
            // `-oFILE`, and `-qf` for two that have no value.
            value = String(word.dropFirst(2))
            if option.value == nil {
                rest.insert("-" + String(word.dropFirst(2)), at: rest.startIndex)
                value = nil
            }
        }
        let name = "--\(option.name)"
        if option.value == nil, value != nil { throw fault("\(name) has no value") }
        if option.value != nil, value == nil { value = rest.popFirst() }
        guard let text = option.value == nil ? "" : value else {
            throw fault("\(name) needs a value, \(option.value ?? "")")
        }
        if !option.isRepeated, options[option.name] != nil, option.value != nil {
            throw fault("\(name) is given twice")
        }
        try check(text, option.kind, option.value == nil ? nil : name)
        options[option.name, default: []].append(text)
    }

    private mutating func take(arguments words: [String]) throws(Fault) {
        var rest = words[...]
        for argument in command.arguments {
            let taken = argument.isRepeated ? Array(rest) : Array(rest.prefix(1))
            rest = rest.dropFirst(taken.count)
            guard !taken.isEmpty || argument.isOptional else { throw fault("\(argument.name) is missing") }
            for word in taken { try check(word, argument.kind, argument.name) }
            if !taken.isEmpty { arguments[argument.name] = taken }
        }
        if let word = rest.first { throw fault("\(word) is one word too many") }
    }

    private func check(_ text: String, _ kind: Subcommand.Kind, _ name: String?) throws(Fault) {
        guard let name else { return }
        switch kind {
        case .text, .file, .session: if text.isEmpty { throw fault("\(name) must not be empty") }
        case .number(let range):
            guard let number = Int64(text), range.contains(number) else {
                let bounds =
                    range.upperBound == .max ? "from \(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
                throw fault("\(name) must be a whole number, \(bounds): \(text)")
            }
        case .fraction:
            guard let number = Double(text), (0...1).contains(number) else {
                throw fault("\(name) must be a number from 0 to 1: \(text)")
            }
        case .duration:
            guard Self.seconds(text) != nil else {
                throw fault("\(name) must be a time such as 90, 30s, 5m or 24h: \(text)")
            }
        case .rate:
            guard Self.rate(text) != nil else {
                throw fault("\(name) must be bytes per second such as 500k, 2M or 1G: \(text)")
            }
        case .limit:
            guard text == "none" || (Int64(text) ?? -1) >= 0 else {
                throw fault("\(name) must be a whole number, from 0, or none: \(text)")
            }
        case .choice(let words):
            guard words.contains(text) else {
                throw fault("\(name) must be one of \(words.joined(separator: ", ")): \(text)")
            }
        case .choices(let words):
            guard Self.list(text).allSatisfy(words.contains) else {
                throw fault("\(name) must be one of \(words.joined(separator: ", ")), or several with commas: \(text)")
            }
        }
    }

    private func fault(_ text: String) -> Fault { Fault(text: text, command: command.name) }

    // MARK: Values

    func flag(_ option: String) -> Bool { options[option] != nil }

    func text(_ name: String) -> String? { options[name]?.last ?? arguments[name]?.last }

    func texts(_ name: String) -> [String] { options[name] ?? arguments[name] ?? [] }

    /// The words of a value that may have several; none where the option is not given.
    func list(_ name: String) -> [String] { choices(name) ?? [] }

    /// The words of a value that may have several; `nil` where the option is not given.
    func choices(_ name: String) -> [String]? { text(name).map { Self.list($0) } }

    private static func list(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) } }

    func seconds(_ name: String) -> Double? { text(name).flatMap { Self.seconds($0) } }

    static func seconds(_ text: String) -> Double? {
        let scales: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let scale = text.last.flatMap { scales[$0] }
        guard let number = Double(scale == nil ? text[...] : text.dropLast()), number >= 0, number.isFinite else {
            return nil
        }
        return number * (scale ?? 1)
    }

    func rate(_ name: String) -> Int64? { text(name).flatMap { Self.rate($0) } }

    /// As curl and wget read a rate: 1k is 1,024 bytes.
    static func rate(_ text: String) -> Int64? {
        let shifts = ["k": 10, "m": 20, "g": 30]
        let shift = text.last.flatMap { shifts[$0.lowercased()] }
        guard let number = Double(shift == nil ? text[...] : text.dropLast()), number.isFinite else { return nil }
        let bytes = (number * Double(1 << (shift ?? 0))).rounded()
        return (1..<9e18).contains(bytes) ? Int64(bytes) : nil
    }

    // MARK: Suggestions

    private static func unknown(_ word: String) -> Fault {
        let names = Set(CommandTable.all.flatMap { [$0.name, String($0.name.prefix { $0 != " " })] })
        let near = names.map { ($0, distance(word, $0)) }.filter { $0.1 <= max(1, word.count / 3) }
            .min { ($0.1, $0.0) < ($1.1, $1.0) }
        return Fault(text: "there is no command \(word)" + (near.map { "; did you mean \($0.0)?" } ?? ""))
    }

    /// How many letters have to change (Levenshtein).
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
