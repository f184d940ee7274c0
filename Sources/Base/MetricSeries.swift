import Synchronization

/// The numbers of one metric: one for each combination of its labels' values.
struct MetricSeries: Sendable {
    private let labels: [(name: String, places: [String: Int])]
    private let texts: [String]
    private let numbers: [MetricNumber]

    init(_ labels: [(String, [String])]) {
        self.labels = labels.map { name, values in
            (name, Dictionary(zip(values, values.indices), uniquingKeysWith: { first, _ in first }))
        }
        var texts = [""]
        for (name, values) in labels {
            precondition(MetricText.isName(name) && !values.isEmpty, "label \(name) needs a name and values")
            texts = texts.flatMap { text in
                values.map { text + (text.isEmpty ? "" : ",") + name + "=\"" + MetricText.escaped($0) + "\"" }
            }
        }
        self.texts = texts
        numbers = texts.map { _ in MetricNumber() }
    }

    /// The index of the series with these label values. Unknown values are a programming error.
    func index(of values: [String]) -> Int {
        precondition(values.count == labels.count, "\(labels.count) label values are needed")
        var result = 0
        for (label, value) in zip(labels, values) {
            guard let place = label.places[value] else {
                preconditionFailure("label \(label.name) has no value \(value)")
            }
            result = result * label.places.count + place
        }
        return result
    }

    func number(_ values: [String]) -> MetricNumber { numbers[index(of: values)] }
    func number(at index: Int) -> MetricNumber { numbers[index] }
    func text(at index: Int) -> String { texts[index] }

    func forEach(_ body: (Int, String, MetricNumber) -> Void) {
        for index in numbers.indices { body(index, texts[index], numbers[index]) }
    }
}

/// A floating-point number that threads add to without a lock.
final class MetricNumber: Sendable {
    private let bits = Atomic<UInt64>(0)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func add(_ amount: Double) {
        var seen = bits.load(ordering: .relaxed)
        while true {
            let sum = (Double(bitPattern: seen) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: seen, desired: sum, ordering: .relaxed)
            if exchanged { return }
            seen = original
        }
    }
}

/// Text in the exposition format of Prometheus.
struct MetricText {
    private(set) var bytes: [UInt8] = []

    mutating func head(_ name: String, help: String, kind: String) {
        bytes += Array("# HELP \(name) \(Self.escaped(help, quotes: false))\n# TYPE \(name) \(kind)\n".utf8)
    }

    mutating func sample(_ name: String, _ labels: String, _ value: Double) {
        let labels = labels.isEmpty ? "" : "{\(labels)}"
        bytes += Array("\(name)\(labels) \(Self.number(value))\n".utf8)
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return String(value)
    }

    static func escaped(_ text: String, quotes: Bool = true) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F: true
            default: false
            }
        }
    }
}
