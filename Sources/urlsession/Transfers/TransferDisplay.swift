import Glibc
import Wire

/// The view of transfers: bars on a terminal, else a line now and then.
struct TransferDisplay {
    private let output: Output
    private let isLive: Bool
    private var bars = Bars()
    private var pending: [String] = []
    private var lastLine: Double
    private var startedAt: Double

    /// Seconds between lines without a terminal.
    static let pause = 10.0

    init(_ output: Output) {
        self.output = output
        isLive = Terminal.isTerminal(STDERR_FILENO) && !output.isQuiet && !output.isJSON
        startedAt = Follower.seconds
        lastLine = startedAt
    }

    var interval: Duration { isLive ? .milliseconds(125) : .milliseconds(500) }

    /// Writes a line about one transfer; an urgent one requests an action of the user.
    mutating func tell(_ line: String, isUrgent: Bool = false) {
        if isLive {
            if isUrgent { pending.append(line) }
        } else if !output.isJSON {
            output.note(line)
        }
    }

    mutating func end(of ending: Follower.Ending, name: String) throws {
        if output.isJSON { return try output.json(EndingLine(ending)) }
        bars.draw([])
        let subject =
            ending.file.map { LocalFiles.relative($0) }
            ?? (ending.task.kind == .upload ? "\(name) to \(Self.place(of: ending.task))" : name)
        if let failure = ending.failure {
            Output.complain("\(Self.place(of: ending.task)): \(failure)")
            if let file = ending.file {
                try output.say("saved \(LocalFiles.relative(file)), the error page of the server")
            }
        } else {
            let figures = ending.pace?.words(for: ending.bytes) ?? Words.bytes(ending.bytes)
            try output.say("\(Self.verb(ending)) \(subject) (\(figures))")
        }
    }

    /// The task's URL without its query, which may be a signature: these lines are mailed by cron and kept in build
    /// logs.
    private static func place(of task: SessionTask) -> String {
        String(task.originalRequest.address.prefix { $0 != "?" })
    }

    private static func verb(_ ending: Follower.Ending) -> String {
        if ending.task.kind == .upload { return "sent" }
        if ending.task.outcome == .notModified { return "not modified:" }
        if ending.wasThere { return "is there:" }
        return ending.file == nil ? "fetched" : "saved"
    }

    /// `3 of 4 saved, 12.0 MB in 4.0 s, 3.0 MB/s`: the total of several transfers.
    static func total(of endings: [Follower.Ending]) -> String {
        let good = endings.filter { $0.failure == nil }
        let word = good.allSatisfy { $0.task.kind == .upload || $0.file == nil } && !good.isEmpty ? "done" : "saved"
        let moved = good.filter { !$0.wasThere }
        let head = "\(good.count) of \(endings.count) \(word)"
        guard !moved.isEmpty else { return head }
        return "\(head), \(Pace(moved.compactMap(\.pace)).words(for: moved.reduce(0) { $0 + $1.bytes }))"
    }

    /// Shows the progress of all transfers.
    mutating func draw(_ items: [Int64: Follower.Item], _ done: Follower.Done) {
        if isLive {
            let (columns, rows) = Terminal.size
            bars.draw(Self.lines(items, done, columns, rows, Terminal.isUnicode), above: pending)
            pending = []
            return
        }
        let now = Follower.seconds
        guard now - lastLine >= Self.pause, !items.isEmpty else { return }
        lastLine = now
        output.note(Self.total(items, done))
    }

    mutating func end() { if isLive { bars.draw([], above: pending) } }

    /// The bars of transfers with progress, then of waiting ones, as many as fit, and a line for all.
    static func lines(
        _ items: [Int64: Follower.Item], _ done: Follower.Done, _ columns: Int, _ rows: Int, _ isUnicode: Bool
    ) -> [String] {
        let sorted = items.sorted { left, right in
            let waits = (left.value.bar.note != nil, right.value.bar.note != nil)
            return waits.0 == waits.1 ? left.key < right.key : !waits.0
        }
        let room = max(1, min(10, rows - 4))
        var lines = sorted.prefix(room).map { $0.value.bar.line(columns: columns, isUnicode: isUnicode) }
        if sorted.count > room { lines.append("and \(sorted.count - room) more") }
        if items.count + done.count > 1 { lines.append(total(items, done)) }
        return lines
    }

    /// `3 of 12 done, 45.6 of 120 MB, 12 MB/s, 0:07 left`.
    static func total(_ items: [Int64: Follower.Item], _ done: Follower.Done) -> String {
        let bars = items.values.map(\.bar)
        let received = bars.reduce(done.bytes) { $0 + $1.received }
        let isKnown = bars.allSatisfy { $0.expected != nil }
        let expected = isKnown ? bars.reduce(done.bytes) { $0 + ($1.expected ?? 0) } : nil
        let speeds = bars.compactMap(\.speed)
        let speed = speeds.isEmpty ? nil : speeds.reduce(0, +)
        let count = items.count + done.count
        let head = count > 1 ? "\(done.count) of \(count) done, " : ""
        let waiting = count == 1 ? bars.first?.note : nil
        return head + (waiting ?? Bar.figures(received, expected, speed))
    }
}

/// The output of `--json` for each transfer at its end.
struct EndingLine: Shape {
    var task = SessionTask()
    /// The file with its content.
    var file: String?
    var failure: String?

    init() {}

    init(_ ending: Follower.Ending) { (task, file, failure) = (ending.task, ending.file, ending.failure) }

    mutating func visit(_ members: inout some MemberVisitor) {
        members.member("task", &task)
        members.nullable("file", &file)
        members.nullable("failure", &failure)
    }
}
