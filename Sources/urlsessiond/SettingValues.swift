import Glibc
import Options
import Wire

/// Settings as texts, collected from flags, the environment and a file, in that order of precedence.
struct SettingValues {
    private var values: [String: [String]] = [:]
    private(set) var faults: [String] = []

    /// Collects all settings; ``faults`` has all errors.
    init(arguments: [String], environment: [String: String]) {
        let flags = parse(flags: arguments)
        let variables = parse(environment: environment)
        let file = (flags["config"] ?? variables["config"])?.last
        let members = file.map { parse(file: $0) } ?? [:]
        values = members.merging(variables) { $1 }.merging(flags) { $1 }
        for setting in Setting.all {
            guard let text = text(setting.name), text != "" || setting.value != nil else { continue }
            if setting.value == nil, Self.truths[text] == nil { fault(setting.name, "is true or false") }
            if !setting.kind.accepts(text) { fault(setting.name, "is \(setting.kind.requirement)") }
        }
    }

    private mutating func parse(flags arguments: [String]) -> [String: [String]] {
        var found: [String: [String]] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else {
                faults.append("\(argument): not a flag; flags begin with --")
                continue
            }
            let word = OptionWord(argument)
            guard let setting = Setting.all.first(where: word.names) else {
                faults.append("\(word.spelling): there is no such flag; see urlsessiond --help")
                continue
            }
            guard let value = word.rest ?? (setting.value == nil ? "true" : rest.popFirst()) else {
                faults.append("\(word.spelling): needs a value, \(setting.value ?? "")")
                continue
            }
            if !setting.isRepeated, found[setting.name] != nil { faults.append("\(word.spelling): given twice") }
            found[setting.name, default: []].append(value)
        }
        return found
    }

    private mutating func parse(environment: [String: String]) -> [String: [String]] {
        var found: [String: [String]] = [:]
        let known = Dictionary(uniqueKeysWithValues: Setting.all.map { (Setting.environmentName(of: $0), $0) })
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix("URLSESSIOND_") {
            guard let setting = known[name] else {
                faults.append("\(name): there is no such setting")
                continue
            }
            found[setting.name] = setting.isRepeated ? value.split(separator: ",").map(String.init) : [value]
        }
        return found
    }

    private mutating func parse(file path: String) -> [String: [String]] {
        guard let bytes = LocalFile.read(path) else {
            faults.append("\(path): cannot be read: \(String(cString: strerror(errno)))")
            return [:]
        }
        guard let members = parse(json: bytes, of: path) else { return [:] }
        var found: [String: [String]] = [:]
        for member in members {
            guard let setting = Setting.named(member.name), setting.name != "config" else {
                faults.append("\(path): \(member.name): there is no such setting")
                continue
            }
            guard let texts = Self.texts(member.value, of: setting) else {
                faults.append("\(path): \(member.name): has the wrong type")
                continue
            }
            found[setting.name] = texts
        }
        return found
    }

    private mutating func parse(json bytes: [UInt8], of path: String) -> [JSON.Member]? {
        do throws(JSONError) {
            if let members = try JSON.parse(bytes).members { return members }
            faults.append("\(path): is not one JSON object")
        } catch {
            switch error {
            case .malformed(let offset, let detail):
                let before = String(decoding: bytes.prefix(offset), as: UTF8.self).unicodeScalars
                let line = before.count { $0 == "\n" } + 1
                let column = before.reversed().prefix { $0 != "\n" }.count + 1
                faults.append("\(path):\(line):\(column): \(detail)")
            case .invalid(let found):
                for fault in found { faults.append("\(path): \(fault.pointer.dropFirst()): \(fault.detail)") }
            }
        }
        return nil
    }

    private static func texts(_ value: JSON, of setting: Option) -> [String]? {
        switch value {
        case .string(let text): [text]
        case .bool(let flag) where setting.value == nil: [flag ? "true" : "false"]
        case .integer(let number): [String(number)]
        case .number(let number): [String(number)]
        case .array(let elements) where setting.isRepeated:
            elements.compactMap(\.stringValue).count == elements.count ? elements.compactMap(\.stringValue) : nil
        default: nil
        }
    }

    // MARK: Typed values

    mutating func fault(_ name: String, _ text: String) { faults.append("\(name): \(text)") }

    func text(_ name: String) -> String? { values[name]?.last }

    func list(_ name: String) -> [String] {
        (values[name] ?? []).flatMap { $0.split(separator: ",").map(String.init) }
    }

    private static let truths = ["true": true, "1": true, "yes": true, "false": false, "0": false, "no": false]

    func flag(_ name: String) -> Bool { text(name).flatMap { Self.truths[$0] } ?? false }

    func number(_ name: String) -> Int? { text(name).flatMap { Int($0) } }

    func bytes(_ name: String) -> Int64? { text(name).flatMap(Amount.bytes) }

    func duration(_ name: String) -> Duration? {
        text(name).flatMap(Amount.seconds).map { .milliseconds(Int64($0 * 1000)) }
    }
}
