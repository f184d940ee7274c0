import Glibc
import URLSessionClient
import Wire

enum SessionCommands {
    static func list(_ call: Invocation) async throws {
        try await call.output.list(
            ["session", "state", "running", "completed"],
            { try await call.client.sessions(cursor: $0, limit: 1000) }, row)
    }

    static func open(_ call: Invocation) async throws {
        let configuration: SessionConfiguration? = try call.words.text("configuration").map(LocalFiles.json)
        let session = try await call.client.openSession(
            call.words.text("SESSION") ?? "", configuration: configuration, description: call.words.text("description"))
        try call.output.row(session, row)
    }

    static func close(_ call: Invocation) async throws {
        let name = call.words.text("SESSION") ?? ""
        if call.words.flag("forget") {
            try await call.client.deleteSession(name)
            return try call.output.say("\(name) is deleted")
        }
        let session =
            call.words.flag("cancel")
            ? try await call.client.invalidateAndCancel(name) : try await call.client.finishTasksAndInvalidate(name)
        try call.output.row(session, row)
    }

    private static func row(_ session: Session) -> [String] {
        let counts = session.taskCounts
        return [session.identifier, "\(session.state)", "running \(counts.running)", "completed \(counts.completed)"]
    }
}

enum TaskCommands {
    static func list(_ call: Invocation) async throws {
        let words = call.words
        let states = words.list("state").map { TaskState(rawValue: $0) }
        let outcomes = words.list("outcome").map { TaskOutcome(rawValue: $0) }
        let group = words.text("group")
        let search = words.text("search")
        let session = words.text("SESSION")
        try await call.output.list(
            (session == nil ? ["session"] : []) + ["task", "state", "received", "URL"],
            {
                try await call.client.tasks(
                    in: session, states: states, outcomes: outcomes, group: group, search: search, cursor: $0,
                    limit: 1000)
            }, { (session == nil ? [$0.sessionIdentifier] : []) + row($0) })
    }

    static func row(_ task: SessionTask) -> [String] {
        [
            String(task.taskIdentifier), Words.state(task),
            String(task.kind == .upload ? task.countOfBytesSent : task.countOfBytesReceived),
            task.originalRequest.address,
        ]
    }

    static func show(_ call: Invocation) async throws {
        let session = call.words.text("SESSION") ?? ""
        let task = try await call.client.task(call.words.number("TASK") ?? 0, in: session)
        try call.output.show(task) { Explain.lines($0, in: session) }
    }

    static func tell(_ call: Invocation) async throws {
        let words = call.words
        let session = words.text("SESSION") ?? ""
        guard let command = Client.Command(rawValue: words.command.name) else { return }
        let numbers = words.texts("TASK").compactMap { Int64($0) }
        let hasFilter = ["state", "outcome", "group"].contains { words.text($0) != nil }
        guard numbers.isEmpty == (words.flag("all") || hasFilter) else {
            throw CallWords.Fault(
                text: "name tasks by their numbers, or give --all or a filter", command: words.command.name)
        }
        guard numbers.isEmpty else {
            for number in numbers {
                let task = try await call.client.command(command, task: number, in: session)
                try call.output.row(task, row)
            }
            return
        }
        let selection = TaskSelection {
            $0.state = words.choices("state").map { OneOrMore($0.map { TaskState(rawValue: $0) }) }
            $0.outcome = words.choices("outcome").map { OneOrMore($0.map { TaskOutcome(rawValue: $0) }) }
            $0.group = words.text("group")
        }
        let answer = try await call.client.command(command, tasks: selection, in: session)
        try call.output.show(answer) { answer in
            ["\(answer.changed.counted("task")) of \(answer.matched) changed"]
                + answer.errors.map { "task \($0.taskIdentifier): \($0.problem.detail)" }
        }
    }

    static func content(_ call: Invocation) async throws {
        let (session, number) = (call.words.text("SESSION") ?? "", call.words.number("TASK") ?? 0)
        switch call.words.text("output").map({ SaveLocation($0) }) ?? .standardOutput {
        case .standardOutput where call.words.flag("arriving"):
            try await call.client.arrivingContent(ofTask: number, in: session) { try Terminal.write($1) }
        case _ where call.words.flag("arriving"):
            throw CallWords.Fault(text: "--arriving writes to standard output", command: call.words.command.name)
        case .standardOutput, .nowhere:
            try await call.client.content(ofTask: number, in: session) { try Terminal.write($0.bytes) }
        case let place:
            let task = try await call.client.task(number, in: session)
            guard let path = place.path(for: task, besides: []) else { return }
            if case .folder(let folder) = place, !LocalFiles.isFolder(folder) { try LocalFiles.makeFolder(folder) }
            let content = try await call.client.content(
                ofTask: number, in: session, to: path, replacing: call.words.flag("force"))
            try call.output.show(content) { ["saved \(LocalFiles.relative(path)) (\(Words.bytes($0.length)))"] }
        }
    }
}

enum Explain {
    static func run(_ call: Invocation) async throws {
        let (session, number) = (call.words.text("SESSION") ?? "", call.words.number("TASK") ?? 0)
        let task = try await call.client.task(number, in: session)
        var events: [Event] = []
        var (last, isAtEnd): (Int64, Bool) = (0, false)
        while !isAtEnd {
            do {
                let page = try await call.client.eventPage(of: session, after: last, limit: 1000)
                events += page.items.filter { $0.taskIdentifier == number }
                last = page.items.last?.seq ?? page.lastSeq
                isAtEnd = last >= page.lastSeq
            } catch let problem as Problem where problem.code == .eventsExpired {
                guard let oldest = problem.oldestSeq, oldest > last else { break }
                last = oldest - 1
            }
        }
        let explanation = Explanation { ($0.task, $0.events) = (task, events) }
        try call.output.show(explanation) { explanation in
            var lines = lines(task, in: session)
            if !explanation.events.isEmpty { lines += ["", "What happened:"] }
            lines += explanation.events.map { "  \(Words.time($0.occurredAt))  \(Words.event($0))" }
            return lines
        }
    }

    /// The output of `--json`.
    struct Explanation: Shape {
        var task = SessionTask()
        var events: [Event] = []

        init() {}

        mutating func visit(_ members: inout some MemberVisitor) {
            members.member("task", &task)
            members.member("events", &events)
        }
    }

    static func lines(_ task: SessionTask, in session: String, now: Int64 = Words.now) -> [String] {
        var lines = [
            "Task \(task.taskIdentifier) of \(session): \(task.kind) \(task.kind == .upload ? "to" : "of") \(task.originalRequest.address)"
        ]
        if let last = task.redirects.last { lines.append("Redirected to \(last.to)") }
        if task.waitingFor.isEmpty { lines.append(standing(task, now)) }
        for reason in task.waitingFor {
            let until = reason.until.map { " (until \(Words.time($0, now: now)))" } ?? ""
            lines.append("It waits: \(Words.sentence(reason.detail))\(until).")
            if let question = reason.questionId { lines.append("  answer with: urlsession answer \(question) ...") }
        }
        lines.append(contentsOf: bytes(task))
        lines.append(contentsOf: attempts(task, now))
        if let content = task.content {
            let until = content.expiresAt.map { ", kept until \(Words.time($0, now: now))" } ?? ""
            lines.append(
                "Content: \(Words.bytes(content.length)), \(content.digest.algorithm) \(content.digest.value)\(until)")
        }
        if let original = task.retryOf { lines.append("It repeats task \(original).") }
        return lines
    }

    private static func standing(_ task: SessionTask, _ now: Int64) -> String {
        let since = task.completedAt.map { ", \(Words.distance($0, now: now) ?? $0)" } ?? ""
        switch task.outcome {
        case .succeeded?:
            return "It succeeded\(task.response.map { " with \(Words.status($0.statusCode))" } ?? "")\(since)."
        case .notModified?: return "It is not modified\(since)."
        case .cancelled?: return "It was cancelled\(since)."
        case nil: break
        default: return "It failed: \(Words.failure(task))\(since)."
        }
        if let waiting = Words.waiting(task, now: now) { return "It is unfinished: \(waiting)." }
        return task.phase == .sending ? "It is being sent." : "It is being received."
    }

    private static func bytes(_ task: SessionTask) -> [String] {
        var lines: [String] = []
        if task.countOfBytesReceived > 0 || task.kind == .download {
            lines.append(
                "Received: \(Bar.figures(task.countOfBytesReceived, task.countOfBytesExpectedToReceive, task.outcome == nil ? task.progress.throughput : nil))"
            )
        }
        if task.countOfBytesSent > 0 || task.kind == .upload {
            lines.append("Sent: \(Bar.figures(task.countOfBytesSent, task.countOfBytesExpectedToSend, nil))")
        }
        if task.countOfBytesFetchedTwice > 0 {
            lines.append("Fetched twice: \(Words.bytes(task.countOfBytesFetchedTwice))")
        }
        return lines
    }

    private static func attempts(_ task: SessionTask, _ now: Int64) -> [String] {
        guard task.attempts.count > 0 else { return ["Attempts: none yet"] }
        var line = "Attempts: \(task.attempts.count)"
        if let last = task.attempts.last {
            line += "; the last one began \(Words.time(last.startedAt, now: now))"
            if let status = last.statusCode { line += " with the response \(Words.status(status))" }
            if let error = last.error { line += " and ended: \(Words.error(error))" }
        }
        if let next = task.attempts.nextAt { line += "; the next one begins \(Words.distance(next, now: now) ?? next)" }
        return [line]
    }
}
