import Base
import Glibc
import Wire

/// Settings as texts, collected from flags, the environment and a file, in that order of precedence.
struct SettingValues {
    private(set) var values: [String: [String]] = [:]
    private(set) var faults: [String] = []

    /// Collects all settings; ``faults`` has all errors.
    init(arguments: [String], environment: [String: String]) {
        let flags = parse(flags: arguments)
        let variables = parse(environment: environment)
        let file = (flags["config"] ?? variables["config"])?.last
        let members = file.map { parse(file: $0) } ?? [:]
        values = members.merging(variables) { $1 }.merging(flags) { $1 }
    }

    private mutating func parse(flags arguments: [String]) -> [String: [String]] {
        var found: [String: [String]] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else {
                faults.append("\(argument): not a flag; flags begin with --")
                continue
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            guard let setting = Setting.named(name) else {
                faults.append("--\(name): there is no such flag; see urlsessiond --help")
                continue
            }
            let value: String
            if parts.count == 2 {
                value = String(parts[1])
            } else if setting.kind == .flag {
                value = "true"
            } else if let next = rest.popFirst() {
                value = next
            } else {
                faults.append("--\(name): needs a value, \(setting.argument)")
                continue
            }
            if !setting.isRepeatable, found[name] != nil { faults.append("--\(name): given twice") }
            found[name, default: []].append(value)
        }
        return found
    }

    private mutating func parse(environment: [String: String]) -> [String: [String]] {
        var found: [String: [String]] = [:]
        let known = Dictionary(uniqueKeysWithValues: Setting.all.map { ($0.environmentName, $0) })
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix("URLSESSIOND_") {
            guard let setting = known[name] else {
                faults.append("\(name): there is no such setting")
                continue
            }
            found[setting.name] = setting.isRepeatable ? value.split(separator: ",").map(String.init) : [value]
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

    private static func texts(_ value: JSON, of setting: Setting) -> [String]? {
        switch value {
        case .string(let text): [text]
        case .bool(let flag) where setting.kind == .flag: [flag ? "true" : "false"]
        case .integer(let number): [String(number)]
        case .number(let number): [String(number)]
        case .array(let elements) where setting.isRepeatable:
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

    mutating func flag(_ name: String) -> Bool {
        switch text(name) {
        case nil, "false", "0", "no", "": return false
        case "true", "1", "yes": return true
        default:
            fault(name, "is true or false")
            return false
        }
    }

    mutating func number(_ name: String, or standard: Int) -> Int {
        guard let text = text(name), case .number(let range)? = Setting.named(name)?.kind else { return standard }
        guard let number = Int64(text), range.contains(number) else {
            fault(name, "is a whole number from \(range.lowerBound) to \(range.upperBound)")
            return standard
        }
        return Int(number)
    }

    mutating func bytes(_ name: String, or standard: Int64) -> Int64 {
        guard let text = text(name) else { return standard }
        let (digits, scale) = Self.parts(of: text, ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40])
        guard let number = Int64(digits), number >= 0, !number.multipliedReportingOverflow(by: scale).overflow else {
            fault(name, "is a number of bytes, such as 1073741824 or 1G")
            return standard
        }
        return number * scale
    }

    mutating func duration(_ name: String, or standard: Duration) -> Duration {
        guard let text = text(name) else { return standard }
        let (digits, scale) = Self.parts(of: text, ["s": 1, "m": 60, "h": 3600, "d": 86_400])
        guard let number = Double(digits), number >= 0, number.isFinite, number < 1e9 else {
            fault(name, "is a time, such as 90, 8s, 24h or 30d")
            return standard
        }
        return .milliseconds(Int64(number * Double(scale) * 1000))
    }

    /// The digits in a text, and the factor of the unit after them.
    private static func parts(of text: String, _ units: [Character: Int64]) -> (digits: Substring, scale: Int64) {
        guard let scale = text.last.flatMap({ units[$0] }) else { return (text[...], 1) }
        return (text.dropLast(), scale)
    }

    mutating func choice(_ name: String) -> String? {
        guard let text = text(name), case .choice(let choices)? = Setting.named(name)?.kind else { return nil }
        guard choices.contains(text) else {
            fault(name, "is one of \(choices.joined(separator: ", "))")
            return nil
        }
        return text
    }
}
