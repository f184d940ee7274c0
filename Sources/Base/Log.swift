import Formats
import Synchronization

/// Structured logging: a static message with facts, one line each, without waiting for the output (``LogWriter``).
///
/// `error`: the operator must act. `warning`: a fault that healed. `info`: the life of the process, of a task, of a
/// launch. `debug`: the rest. Secrets, header values, bodies and query strings are never facts.
package struct Log: Sendable {
    package enum Level: UInt8, Sendable, Comparable, CaseIterable, AtomicRepresentable {
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

    /// The lowest written level: shared by a log and all logs derived from it.
    private final class Threshold: Sendable {
        let level: Atomic<Level>
        init(_ level: Level) { self.level = Atomic(level) }
    }

    package enum Format: String, Sendable { case text, json }

    package typealias Fact = (name: StaticString, value: any CustomStringConvertible & Sendable)

    private let threshold: Threshold
    private let format: Format
    private let clock: Clock
    private let sink: @Sendable ([UInt8]) -> Void
    private var context: [Fact] = []

    /// - Parameter sink: Receives each line. It must not block.
    package init(
        level: Level = .info, format: Format = .json, clock: Clock = .system,
        sink: @escaping @Sendable ([UInt8]) -> Void
    ) {
        threshold = Threshold(level)
        self.format = format
        self.clock = clock
        self.sink = sink
    }

    /// A log that discards everything, for tests.
    package static let none = Log(level: .error, sink: { _ in })

    /// A derived log with one more fact in every line.
    package func with(_ name: StaticString, _ value: some CustomStringConvertible & Sendable) -> Log {
        with((name, value))
    }

    /// A derived log with more facts in every line.
    package func with(_ facts: Fact...) -> Log {
        var child = self
        child.context += facts
        return child
    }

    /// Whether lines of a level are written.
    package func shows(_ level: Level) -> Bool { level >= threshold.level.load(ordering: .relaxed) }

    /// Sets the lowest written level, of this log and of all logs derived from the same one.
    package func show(from level: Level) { threshold.level.store(level, ordering: .relaxed) }

    package func debug(_ message: StaticString, _ facts: Fact...) { write(.debug, message, facts) }
    package func info(_ message: StaticString, _ facts: Fact...) { write(.info, message, facts) }
    package func warning(_ message: StaticString, _ facts: Fact...) { write(.warning, message, facts) }
    package func error(_ message: StaticString, _ facts: Fact...) { write(.error, message, facts) }

    private func write(_ level: Level, _ message: StaticString, _ facts: [Fact]) {
        if shows(level) { sink(line(level, message, facts)) }
    }

    /// A complete line with its end.
    package func line(_ level: Level, _ message: StaticString, _ facts: [Fact]) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(320)
        switch format {
        case .text:
            TimeText.append(clock.wall(), to: &line)
            line += " \(level.name) ".utf8
            message.withUTF8Buffer { line += $0 }
        case .json:
            line += #"{"time":""#.utf8
            TimeText.append(clock.wall(), to: &line)
            line += #"","level":"\#(level.name)","message":"#.utf8
            JSONWriter.append(quoted: message.description, to: &line)
        }
        for fact in context { append(fact, to: &line) }
        for fact in facts { append(fact, to: &line) }
        line += (format == .json ? "}\n" : "\n").utf8
        return line
    }

    private func append(_ fact: Fact, to line: inout [UInt8]) {
        let value = fact.value.description
        switch format {
        case .text:
            line.append(UInt8(ascii: " "))
            fact.name.withUTF8Buffer { line += $0 }
            line.append(UInt8(ascii: "="))
            guard value.isEmpty || value.utf8.contains(where: Self.needsQuotes) else { return line += value.utf8 }
        case .json:
            line += #",""#.utf8
            fact.name.withUTF8Buffer { line += $0 }
            line += #"":"#.utf8
            guard !Self.isLiteral(fact.value) else { return line += value.utf8 }
        }
        JSONWriter.append(quoted: value, to: &line)
    }

    /// Whether the value's description is valid JSON.
    private static func isLiteral(_ value: any CustomStringConvertible) -> Bool {
        switch value {
        case is String: false
        // The common types first: a cast to a protocol is slow.
        case is Int, is Int64, is Bool, is any BinaryInteger: true
        case let number as Double: number.isFinite
        default: false
        }
    }

    private static func needsQuotes(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}
