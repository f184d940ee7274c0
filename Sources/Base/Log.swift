import Glibc

/// Structured logging to standard error: a static message and facts beside it, one `write` a line.
///
/// `error`: a person must act. `warning`: it healed, but look. `info`: the life of the process, of a task, of a
/// launch. `debug`: the rest. Secrets, header values, bodies and query strings never become facts.
package struct Log: Sendable {
    package enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error

        package init?(name: String) {
            guard let level = Level.allCases.first(where: { $0.name == name }) else { return nil }
            self = level
        }

        package var name: String {
            switch self {
            case .debug: "debug"
            case .info: "info"
            case .warning: "warning"
            case .error: "error"
            }
        }

        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    package enum Format: String, Sendable { case text, json }

    package typealias Fact = (name: StaticString, value: any CustomStringConvertible & Sendable)

    private let level: Level
    private let format: Format
    private let clock: Clock
    private let sink: @Sendable ([UInt8]) -> Void
    private var context: [(name: StaticString, value: String)] = []

    package init(
        level: Level = .info, format: Format = .json, clock: Clock = .system,
        sink: @escaping @Sendable ([UInt8]) -> Void = Log.standardError
    ) {
        self.level = level
        self.format = format
        self.clock = clock
        self.sink = sink
    }

    /// A log that drops everything, for tests.
    package static let none = Log(level: .error, sink: { _ in })

    /// A log whose every line carries one more fact.
    package func with(_ name: StaticString, _ value: some CustomStringConvertible) -> Log {
        var child = self
        child.context.append((name, value.description))
        return child
    }

    package func debug(_ message: StaticString, _ facts: Fact...) { write(.debug, message, facts) }
    package func info(_ message: StaticString, _ facts: Fact...) { write(.info, message, facts) }
    package func warning(_ message: StaticString, _ facts: Fact...) { write(.warning, message, facts) }
    package func error(_ message: StaticString, _ facts: Fact...) { write(.error, message, facts) }

    private func write(_ level: Level, _ message: StaticString, _ facts: [Fact]) {
        guard level >= self.level else { return }
        let facts = context + facts.map { ($0.name, $0.value.description) }
        let time = Self.rfc3339(clock.wall())
        var line: String
        switch format {
        case .text:
            line = "\(time) \(level.name) \(message)"
            for fact in facts { line += " \(fact.name)=\(Self.escaped(fact.value, quoteAlways: false))" }
        case .json:
            line = "{\"time\":\"\(time)\",\"level\":\"\(level.name)\",\"message\":\(Self.escaped("\(message)"))"
            for fact in facts { line += ",\"\(fact.name)\":\(Self.escaped(fact.value))" }
            line += "}"
        }
        line += "\n"
        sink(Array(line.utf8))
    }

    /// Writes a line with one `write(2)`. A reader that does not read costs the line, never the service.
    @Sendable package static func standardError(_ line: [UInt8]) {
        _ = line.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func escaped(_ text: String, quoteAlways: Bool = true) -> String {
        let plain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
        if plain && !quoteAlways && !text.isEmpty { return text }
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static func rfc3339(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ value: some BinaryInteger, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date = "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
        let time = "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
        return "\(date)T\(time).\(padded(milliseconds % 1000, 3))Z"
    }
}
