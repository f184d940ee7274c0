struct Bar: Equatable {
    var name: String
    var received: Int64 = 0
    var expected: Int64?
    /// Bytes per second, if the transfer makes progress.
    var speed: Double?
    /// A text instead of figures: the reason of a wait, or the current step.
    var note: String?

    /// 0 to 1, if the length is known.
    var fraction: Double? {
        guard let expected, expected > 0 else { return nil }
        return min(1, Double(received) / Double(expected))
    }

    /// One line that fits a number of columns.
    func line(columns: Int, isUnicode: Bool) -> String {
        let nameWidth = max(8, min(28, columns / 3))
        let name = Self.fit(self.name, nameWidth)
        if let note { return Self.cut("\(name) \(note)", columns) }
        let figures = Self.figures(received, expected, speed)
        let barWidth = min(30, columns - nameWidth - figures.count - 9)
        guard barWidth >= 5 else { return Self.cut("\(name) \(figures)", columns) }
        let percent = fraction.map { "\(Self.padded(String(Int($0 * 100)), 3)) %" } ?? "     "
        return Self.cut("\(name) \(drawing(barWidth, isUnicode)) \(percent) \(figures)", columns)
    }

    private func drawing(_ width: Int, _ isUnicode: Bool) -> String {
        let filled = fraction.map { Int($0 * Double(width)) } ?? 0
        let (full, empty) = isUnicode ? ("━", "┈") : ("#", ".")
        return String(repeating: full, count: filled) + String(repeating: empty, count: width - filled)
    }

    /// `12.3 of 45.6 MB, 7.8 MB/s, 0:04 left`.
    static func figures(_ received: Int64, _ expected: Int64?, _ speed: Double?) -> String {
        var parts = [expected.map { Words.bytes(received, of: $0) } ?? Words.bytes(received)]
        if let speed { parts.append("\(Words.bytes(Int64(speed)))/s") }
        if let expected, let speed, speed >= 1, expected > received {
            parts.append("\(Words.clock(Double(expected - received) / speed)) left")
        }
        return parts.joined(separator: ", ")
    }

    /// A text of exactly this width: padded, or with its middle left out, because the ends of names distinguish them.
    static func fit(_ text: String, _ width: Int) -> String {
        let text = Terminal.printable(text)
        guard text.count > width else { return text + String(repeating: " ", count: width - text.count) }
        let tail = (width - 1) / 2
        return text.prefix(width - 1 - tail) + "…" + text.suffix(tail)
    }

    private static func cut(_ text: String, _ columns: Int) -> String {
        text.count < columns ? text : String(text.prefix(columns - 1))
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}

/// Bars that stay at the bottom of the terminal while lines scroll above them.
struct Bars {
    private var drawn = 0

    mutating func draw(_ lines: [String], above finished: [String] = []) {
        var text = drawn > 0 ? "\u{1B}[\(drawn)A\r\u{1B}[J" : "\r"
        for line in finished { text += Terminal.printable(line) + "\n" }
        for line in lines { text += Terminal.printable(line) + "\n" }
        drawn = lines.count
        guard text != "\r" else { return }
        Terminal.tell(text)
    }
}

/// The rate of a transfer over the last seconds.
struct SpeedMeter {
    private var samples: [(time: Double, bytes: Int64)] = []
    /// The period in seconds.
    static let span = 5.0

    /// - Parameter bytes: The total so far.
    mutating func add(_ bytes: Int64, at time: Double) {
        if let last = samples.last, bytes < last.bytes { samples = [] }
        samples.append((time, bytes))
        while samples.count > 2, time - samples[1].time >= Self.span { samples.removeFirst() }
    }

    /// Bytes per second; `nil` until it can be computed.
    func speed(at time: Double) -> Double? {
        guard let first = samples.first, let last = samples.last, time - first.time >= 0.3 else { return nil }
        let past = time - last.time >= Self.span
        return past ? 0 : Double(last.bytes - first.bytes) / (time - first.time)
    }
}
