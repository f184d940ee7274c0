/// The kind of value of an option or an argument.
package enum ValueKind: Sendable, Equatable {
    case text
    case number(ClosedRange<Int64>)
    /// 0 to 1.
    case fraction
    case duration
    case bytes
    /// Bytes per second, at least one.
    case rate
    /// A number from 0, or `none`.
    case limit
    /// The name of a session of the app.
    case session
    case file
    case choice([String])
    /// One or more of the words, separated by commas.
    case choices([String])

    /// The words of a choice; empty for other kinds.
    package var words: [String] {
        switch self {
        case .choice(let words), .choices(let words): words
        default: []
        }
    }

    /// The kind in words, such as "a number from 0 to 1".
    package var requirement: String {
        switch self {
        case .text, .session, .file: "a text"
        case .number(let range) where range.upperBound == .max: "a whole number, from \(range.lowerBound)"
        case .number(let range): "a whole number, \(range.lowerBound) to \(range.upperBound)"
        case .fraction: "a number from 0 to 1"
        case .duration: "a time such as 90, 30s, 5m or 24h"
        case .bytes: "a number of bytes, such as 1073741824 or 1G"
        case .rate: "bytes per second such as 500k, 2M or 1G"
        case .limit: "a whole number, from 0, or none"
        case .choice(let words): "one of \(words.joined(separator: ", "))"
        case .choices(let words): "one of \(words.joined(separator: ", ")), or several with commas"
        }
    }

    package func accepts(_ text: String) -> Bool {
        switch self {
        case .text, .session, .file: true
        case .number(let range): Int64(text).map(range.contains) ?? false
        case .fraction: Double(text).map((0...1).contains) ?? false
        case .duration: Amount.seconds(text) != nil
        case .bytes: Amount.bytes(text) != nil
        case .rate: Amount.bytes(text) ?? 0 > 0
        case .limit: text == "none" || Int64(text) ?? -1 >= 0
        case .choice(let words): words.contains(text)
        case .choices(let words): Self.list(text).allSatisfy(words.contains)
        }
    }

    /// The words of a text, separated by commas.
    package static func list(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
}

/// Numbers with a unit.
package enum Amount {
    /// Seconds, or a number with `s`, `m`, `h` or `d`; `nil` for any other text, and for a billion seconds or more.
    package static func seconds(_ text: String) -> Double? {
        number(text, ["s": 1, "m": 60, "h": 3600, "d": 86_400], below: 1e9)
    }

    /// Bytes, or a number with `k`, `M`, `G` or `T` in either case. 1k is 1,024, as in curl and wget.
    package static func bytes(_ text: String) -> Int64? {
        let units: [Character: Double] = ["k": 1024, "m": 1_048_576, "g": 1_073_741_824, "t": 1_099_511_627_776]
        let bytes = number(text.lowercased(), units, below: .infinity)?.rounded()
        return bytes.flatMap { $0 < 9e18 ? Int64($0) : nil }
    }

    private static func number(_ text: String, _ units: [Character: Double], below limit: Double) -> Double? {
        let unit = text.last.flatMap { units[$0] }
        guard let number = Double(unit == nil ? text[...] : text.dropLast()), number >= 0, number < limit else {
            return nil
        }
        return number * (unit ?? 1)
    }
}
