import Synchronization
import URLSessionClient
import Wire

/// One call of `get` or `put`: its tasks in a session, followed to their ends or left for later.
///
/// Without `--session` the call has a session of its own. Its name is derived from the call, so the same call finds it
/// again. It is deleted when it is no longer needed.
struct Run {
    private let call: Invocation
    let session: String
    /// Whether the session was created for this call.
    private let isOwn: Bool
    private let key: String
    private let options: SessionOptions?
    private let user: User?

    private static let description = "urlsession"

    init(
        _ call: Invocation, session: String, isOwn: Bool, key: String = "", options: SessionOptions? = nil,
        user: User? = nil
    ) {
        self.call = call
        self.session = session
        self.isOwn = isOwn
        self.key = key
        self.options = options
        self.user = user
    }

    /// - Parameter key: The parts that distinguish this call from others.
    static func open(
        _ call: Invocation, prefix: String, key: [String], user: User? = nil, opensSession: Bool = true
    ) async throws -> Run {
        let options = try SessionOptions(call.words)
        let key = key + options.key
        let digest = SHA256.digest(Array(key.joined(separator: "\n").utf8)).prefix(5)
        let text = digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let given = call.words.text("session")
        let run = Run(
            call, session: given ?? "\(prefix)-\(text)", isOwn: given == nil, key: text, options: options, user: user)
        if opensSession { try await run.openSession() }
        return run
    }

    func openSession() async throws {
        let configuration = isOwn ? options?.configuration : nil
        let description = isOwn ? Self.description : nil
        _ = try await patiently {
            try await call.client.openSession(session, configuration: configuration, description: description)
        }
    }

    /// Repeats a request while the service has no room for it or is not ready. A service that does not respond is
    /// reported at once.
    private func patiently<Answer>(_ request: () async throws -> Answer) async throws -> Answer {
        var patience = Patience(limit: 10)
        while true {
            do {
                return try await request()
            } catch let problem as Problem {
                if !patience.hasWaited, [429, 503].contains(problem.status) {
                    call.output.note("\(Words.sentence(problem.detail)); the command waits")
                }
                try await patience.wait(after: problem)
            }
        }
    }

    /// Creates the tasks, or finds those of an earlier call.
    func handOver(_ tasks: [TaskCreation]) async throws -> ([SessionTask], seq: Int64) {
        let seq = try await patiently { try await call.client.session(session).lastEventSeq }
        let named = tasks.enumerated().map { index, task in
            var task = task
            task.clientTaskId = "urlsession-\(key)-\(index + 1)"
            return task
        }
        let earlier = try await earlierTasks()
        let new = named.filter { earlier[$0.clientTaskId ?? ""] == nil }
        var created: [SessionTask] = []
        for start in stride(from: 0, to: new.count, by: BatchCreation.maximumCount) {
            let batch = Array(new[start..<min(new.count, start + BatchCreation.maximumCount)])
            created += try await patiently { try await call.client.createTasks(batch, in: session).items ?? [] }
        }
        guard !earlier.isEmpty else { return (created, seq) }
        var rest = created[...]
        return (named.compactMap { earlier[$0.clientTaskId ?? ""] ?? rest.popFirst() }, seq)
    }

    /// The session's tasks by client id, if the call has a password: tasks of an earlier call may have another
    /// password, so the service would refuse to create them again.
    private func earlierTasks() async throws -> [String: SessionTask] {
        guard user != nil else { return [:] }
        var tasks: [String: SessionTask] = [:]
        try await Client.each({ try await call.client.tasks(in: session, cursor: $0, limit: 1000) }) { task in
            if let id = task.clientTaskId { tasks[id] = task }
        }
        return tasks
    }

    /// The task of an earlier call, if its password was not refused.
    func known() async throws -> (task: SessionTask, seq: Int64)? {
        do {
            let seq = try await call.client.session(session).lastEventSeq
            let task = try await call.client.tasks(in: session, clientTaskId: "urlsession-\(key)-1").items.first
            if user != nil, task?.response?.statusCode == 401 { return nil }
            return task.map { ($0, seq) }
        } catch let problem as Problem where problem.code == .notFound {
            return nil
        }
    }

    /// Retries ended tasks of earlier calls: failed ones, and saved ones in a session that is used repeatedly.
    ///
    /// - Parameter creations: The requested tasks. With a password such tasks are created again instead, because the
    ///   earlier ones have the password of that time.
    func again(_ tasks: [SessionTask], as creations: [TaskCreation] = []) async throws -> [SessionTask] {
        guard tasks.contains(where: { $0.state == .completed }) else { return tasks }
        if user != nil, creations.count == tasks.count {
            let earlier = try await earlierTasks()
            var result: [SessionTask] = []
            for (index, task) in tasks.enumerated() {
                result.append(try await renew(task, as: creations[index], index, earlier))
            }
            return result
        }
        var latest: [Int64: SessionTask] = [:]
        try await Client.each({ try await call.client.tasks(in: session, cursor: $0, limit: 1000) }) { task in
            if let original = task.retryOf { latest[original] = task }
        }
        var result: [SessionTask] = []
        for var task in tasks {
            while let newer = latest[task.taskIdentifier] { task = newer }
            if isOver(task) {
                task = try await call.client.command(.retry, task: task.taskIdentifier, in: session)
            }
            result.append(task)
        }
        return result
    }

    /// Whether a task of an earlier call has ended and is useless for this call.
    private func isOver(_ task: SessionTask) -> Bool {
        let isSaved = SaveLocation.saved(task) != nil || task.kind == .upload
        let isLost = task.hasLostContent && !(SaveLocation.saved(task).map(LocalFiles.exists) ?? false)
        return task.state == .completed && (task.outcome != .succeeded || isLost || isSaved && !isOwn)
    }

    /// The task that this call or an equal one created after the ended ones.
    private func renew(
        _ task: SessionTask, as creation: TaskCreation, _ index: Int, _ earlier: [String: SessionTask]
    ) async throws -> SessionTask {
        var (task, creation) = (task, creation)
        while isOver(task) {
            let id = "urlsession-\(key)-\(index + 1)-\(task.taskIdentifier)"
            guard let next = earlier[id] else {
                creation.clientTaskId = id
                return try await call.client.createTask(creation, in: session)
            }
            task = next
        }
        return task
    }

    /// The same; `nil` if the body of an upload is gone, and its session was created for it.
    func againIfPossible(_ tasks: [SessionTask]) async throws -> [SessionTask]? {
        do {
            return try await again(tasks)
        } catch let problem as Problem where isOwn && problem.status < 500 {
            try await call.client.deleteSession(session)
            return nil
        }
    }

    /// Follows tasks to their ends, unless they are detached.
    func finish(
        _ tasks: [SessionTask], after seq: Int64, place: SaveLocation? = nil, places: [Int64: SaveLocation] = [:]
    ) async throws {
        let (words, output) = (call.words, call.output)
        if words.flag("detach") {
            if output.isJSON { for task in tasks { try output.json(task) } }
            try output.say("created in session \(session); urlsession attach \(session) follows it")
            return
        }
        let isToStandardOutput = places.values.contains(.standardOutput)
        var follower = Follower(
            call.client, session: session,
            output: toStandardError(tasks, isToStandardOutput ? .standardOutput : place))
        follower.replaces = words.flag("force")
        follower.savesErrors = words.flag("save-errors")
        follower.attaches = words.command.name != "watch"
        (follower.place, follower.places, follower.user) = (place, places, user?.name)
        let endings: [Follower.Ending]
        do {
            endings = try await follower.follow(tasks, after: seq)
        } catch  where Task.isCancelled {
            tellHowToComeBack()
            throw CancellationError()
        }
        if endings.count > 1, !output.isJSON { output.note(TransferDisplay.total(of: endings)) }
        let failed = endings.filter { $0.failure != nil }
        guard !failed.isEmpty else {
            _ = try await close(endings)
            return
        }
        let isForgotten = isOfNoMoreUse(failed) ? (try? await close(endings)) == true : false
        // A content that could only not be saved needs no further explanation.
        if words.command.name != "watch", !isForgotten, let one = failed.first(where: { !$0.isTransferred }) {
            let number = one.task.taskIdentifier
            output.note("see urlsession explain \(session) \(number)" + (isOwn ? "; the same command retries" : ""))
        }
        throw Failure.silent(1)
    }

    /// Whether a session with such failures is useless for a repeated command: a content that could not be saved is
    /// still stored, and so is the body of an upload, unless its password was refused.
    private func isOfNoMoreUse(_ failed: [Follower.Ending]) -> Bool {
        failed.allSatisfy { ending in
            let isRefused = user != nil && ending.task.response?.statusCode == 401
            return !ending.isTransferred && (ending.task.kind == .download || isRefused)
        }
    }

    /// Deletes a session that was created only for a completed call.
    ///
    /// - Returns: Whether it was such a session.
    private func close(_ endings: [Follower.Ending]) async throws -> Bool {
        guard call.words.command.name != "watch" else { return false }
        if !isOwn {
            // The call used the session of another one.
            let name = session
            guard name.hasPrefix("get-") || name.hasPrefix("put-"), call.words.command.name == "attach" else {
                return false
            }
            guard try await call.client.session(session).sessionDescription == Self.description else { return false }
        }
        do {
            try await patiently { try await call.client.deleteSession(session) }
        } catch let problem as Problem where problem.code == .notFound {
            // Another call of the same command has deleted it.
        }
        for case .id(let body)? in endings.map(\.task.body) { try? await call.client.deleteBody(body) }
        return true
    }

    /// Standard output has only the contents, if they are written there.
    private func toStandardError(_ tasks: [SessionTask], _ place: SaveLocation?) -> Output {
        let goesThere = tasks.contains { (place ?? SaveLocation(keptWith: $0)) == .standardOutput }
        var output = call.output
        if goesThere { output.hasContentOnStandardOutput = true }
        return output
    }

    private func tellHowToComeBack() {
        guard call.words.command.name != "watch" else { return }
        let own = isOwn ? ", or the same command again" : ""
        call.output.note("Detached: the service continues. Attach again with: urlsession attach \(session)\(own)")
    }
}

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
