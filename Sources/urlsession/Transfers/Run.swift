import Synchronization
import URLSessionClient
import Wire

/// One call of `get` or `put`: its tasks in a session, followed to their ends or left for later.
///
/// Without `--session` the session is the call's own. Its name is made of the call, so the same call finds it again; it
/// is deleted when everything went well.
struct Run {
    private let call: Call
    let session: String
    /// Whether the session was made for this call.
    private let isOwn: Bool
    private let key: String

    private static let description = "urlsession"

    init(_ call: Call, session: String, isOwn: Bool, key: String = "") {
        self.call = call
        self.session = session
        self.isOwn = isOwn
        self.key = key
    }

    /// - Parameter key: What makes this call another than others.
    static func open(_ call: Call, prefix: String, key: [String], opensSession: Bool = true) async throws -> Run {
        let digest = SHA256.digest(Array(key.joined(separator: "\n").utf8)).prefix(5)
        let text = digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let given = call.words.text("session")
        let run = Run(call, session: given ?? "\(prefix)-\(text)", isOwn: given == nil, key: text)
        if opensSession { try await run.openSession() }
        return run
    }

    func openSession() async throws {
        guard isOwn else { return _ = try await call.client.openSession(session) }
        let configuration = SessionConfiguration {
            // Nobody is to be woken for it, and nobody there to be asked.
            $0.sessionSendsLaunchEvents = false
            $0.authenticationChallenges = .performDefaultHandling
        }
        _ = try await call.client.openSession(session, configuration: configuration, description: Self.description)
    }

    /// Creates the tasks, or finds those that an earlier call created.
    func handOver(_ tasks: [TaskCreation]) async throws -> ([SessionTask], seq: Int64) {
        let seq = try await call.client.session(session).lastEventSeq
        let named = tasks.enumerated().map { index, task in
            var task = task
            task.clientTaskId = "urlsession-\(key)-\(index + 1)"
            return task
        }
        var items: [SessionTask] = []
        for start in stride(from: 0, to: named.count, by: BatchCreation.maximumCount) {
            let batch = Array(named[start..<min(named.count, start + BatchCreation.maximumCount)])
            items += try await call.client.createTasks(batch, in: session).items ?? []
        }
        return (items, seq)
    }

    /// The task of an earlier call, where there was one.
    func known() async throws -> (task: SessionTask, seq: Int64)? {
        do {
            let seq = try await call.client.session(session).lastEventSeq
            let task = try await call.client.tasks(in: session, clientTaskId: "urlsession-\(key)-1").items.first
            return task.map { ($0, seq) }
        } catch let problem as Problem where problem.code == .notFound {
            return nil
        }
    }

    /// Tries those again that were there before and are over: failed ones, and in a session that is used again and again
    /// those that were saved.
    func again(_ tasks: [SessionTask]) async throws -> [SessionTask] {
        guard tasks.contains(where: { $0.state == .completed }) else { return tasks }
        var latest: [Int64: SessionTask] = [:]
        try await Pages.each({ try await call.client.tasks(in: session, cursor: $0, limit: 1000) }) { task in
            if let original = task.retryOf { latest[original] = task }
        }
        var result: [SessionTask] = []
        for var task in tasks {
            while let newer = latest[task.taskIdentifier] { task = newer }
            let isSaved = Place.saved(task) != nil || task.kind == .upload
            let isOver = task.outcome != .succeeded || isSaved && !isOwn
            if task.state == .completed, isOver {
                task = try await call.client.command(.retry, task: task.taskIdentifier, in: session)
            }
            result.append(task)
        }
        return result
    }

    /// The same; `nil` where the body of an upload is gone, and with it a session that was made for it.
    func againIfPossible(_ tasks: [SessionTask]) async throws -> [SessionTask]? {
        do {
            return try await again(tasks)
        } catch let problem as Problem where isOwn && problem.status < 500 {
            try await call.client.deleteSession(session)
            return nil
        }
    }

    /// Follows tasks to their ends, unless they are to be left.
    func finish(_ tasks: [SessionTask], after seq: Int64, place: Place? = nil) async throws {
        let (words, output) = (call.words, call.output)
        if words.flag("detach") {
            if output.isJSON { for task in tasks { try output.json(task) } }
            try output.say("handed over to session \(session); urlsession attach \(session) comes back to it")
            return
        }
        var follower = Follower(call.client, session: session, output: toStandardError(tasks, place))
        follower.replaces = words.flag("force")
        follower.savesErrors = words.flag("save-errors")
        follower.place = place
        let endings: [Follower.Ending]
        do {
            endings = try await follower.follow(tasks, after: seq)
        } catch  where Task.isCancelled {
            tellHowToComeBack()
            throw CancellationError()
        }
        let failed = endings.count { $0.failure != nil }
        if failed == 0 {
            try await close(endings)
            return
        }
        // Of what only could not be saved there is no more to tell.
        if words.command.name != "watch", let one = endings.first(where: { $0.failure != nil && !$0.isTransferred }) {
            let number = one.task.taskIdentifier
            output.note(
                "urlsession explain \(session) \(number) tells more" + (isOwn ? "; the same command tries again" : ""))
        }
        throw Failure.silent(1)
    }

    /// Forgets a session that was only made for a call that is over.
    private func close(_ endings: [Follower.Ending]) async throws {
        guard call.words.command.name != "watch" else { return }
        if !isOwn {
            // Somebody came back to the session of a call.
            let name = session
            guard name.hasPrefix("get-") || name.hasPrefix("put-"), call.words.command.name == "attach" else { return }
            guard try await call.client.session(session).sessionDescription == Self.description else { return }
        }
        try await call.client.deleteSession(session)
        for case .id(let body)? in endings.map(\.task.body) { try? await call.client.deleteBody(body) }
    }

    /// Contents on standard output stay alone there.
    private func toStandardError(_ tasks: [SessionTask], _ place: Place?) -> Output {
        let goesThere = tasks.contains { (place ?? Place(keptWith: $0)) == .standardOutput }
        var output = call.output
        if goesThere { output.hasContentOnStandardOutput = true }
        return output
    }

    private func tellHowToComeBack() {
        guard call.words.command.name != "watch" else { return }
        let own = isOwn ? ", or the same command again" : ""
        call.output.note("Detached: the service goes on. Come back with: urlsession attach \(session)\(own)")
    }
}

/// How far a file is on its way to the service.
final class StoringDisplay: Sendable {
    private let output: Output
    private let name: String
    private let state = Mutex((bars: Bars(), meter: SpeedMeter(), last: -1.0))

    init(_ output: Output, _ name: String) {
        self.output = output
        self.name = name
    }

    private var isLive: Bool { Terminal.isTerminal(2) && !output.isQuiet && !output.isJSON }

    func show(_ stored: Int64, _ length: Int64) {
        guard isLive else { return }
        state.withLock { state in
            let now = Follower.seconds
            state.meter.add(stored, at: now)
            guard now - state.last > 0.1 else { return }
            state.last = now
            let bar = Bar(name: name, received: stored, expected: length, speed: state.meter.speed(at: now))
            state.bars.draw([bar.line(columns: Terminal.size.columns, isUnicode: Terminal.isUnicode)])
        }
    }

    func end() { if isLive { state.withLock { $0.bars.draw([]) } } }
}
