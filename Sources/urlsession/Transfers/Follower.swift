import Glibc
import URLSessionClient
import Wire

/// Follows tasks of a session to their ends: shows their progress, and saves their contents.
///
/// A single loop receives everything through one stream: events of the service, tasks, the progress of files that are
/// being saved, and the clock.
struct Follower {
    enum Happening: Sendable {
        case event(Event)
        case look(SessionTask)
        /// The comparison of a file in which the content was saved before: the file, if it still has the content.
        case compared(Int64, String?)
        case saving(Int64, received: Int64, length: Int64)
        case saved(Int64, Result<Saved, any Error>)
        case tick
        case lost(any Error)
    }

    enum Saved: Sendable {
        /// The content is now in this file; `nil` for standard output.
        case file(String?)
        /// The content was in this file before.
        case wasThere(String)
    }

    /// The end of a task for the user.
    struct Ending {
        let task: SessionTask
        /// The file with its content.
        let file: String?
        /// Whether it was saved before.
        var wasThere = false
        let failure: String?
        /// The times of its transfer, if they were received.
        var pace: Pace?

        var bytes: Int64 {
            task.kind == .upload ? task.countOfBytesSent : task.content?.length ?? task.countOfBytesReceived
        }

        /// Whether the service's part succeeded.
        var isTransferred: Bool { task.outcome == .succeeded || task.outcome == .notModified }
    }

    struct Done {
        var count = 0
        var bytes: Int64 = 0
    }

    let client: Client
    let session: String
    let output: Output
    /// Whether files may be replaced.
    var replaces = false
    /// Whether error pages are saved as well.
    var savesErrors = false
    /// The place of contents; `nil` for the tasks' own places, below the current folder.
    var place: SaveLocation?
    /// The places of single tasks.
    var places: [Int64: SaveLocation] = [:]
    /// The user whose password is sent to the server.
    var user: String?
    /// Whether the app counts as attached, so that it is not launched for the tasks.
    var attaches = true

    private static let mostSaves = 4
    /// The maximum number of requests in flight for silent tasks. They wait while the service is away.
    private static let mostQueries = 8

    /// A request for the state of a task.
    private struct Query {
        let work: Task<Void, Never>
        /// Whether the task has changed since, so that it is read once more.
        var isOutdated = false
    }

    private var items: [Int64: Item] = [:]
    /// The requests in flight, at most one for each task.
    private var queries: [Int64: Query] = [:]
    private var endings: [Ending] = []
    private var done = Done()
    /// The time of the last query of silent tasks.
    private var askedAt = 0.0
    private var taken: Set<String> = []
    /// Files of this call, to distinguish them from those of earlier calls.
    private var written: Set<String> = []
    private var display: TransferDisplay
    private var workers: [Task<Void, Never>] = []
    private let happenings: AsyncStream<Happening>
    private let happened: AsyncStream<Happening>.Continuation

    init(_ client: Client, session: String, output: Output) {
        self.client = client
        self.session = session
        self.output = output
        display = TransferDisplay(output)
        (happenings, happened) = AsyncStream.makeStream(of: Happening.self)
    }

    struct Item {
        enum Phase { case running, comparing, waitingToSave, saving }
        var task: SessionTask
        var phase = Phase.running
        var file: String?
        /// Existing files with such names.
        var others: [String] = []
        var pace: Pace?
        var bar: Bar
        var meter = SpeedMeter()
        /// The time of the last message about it.
        var heardAt: Double
    }

    /// Follows tasks until all have ended.
    ///
    /// - Parameters:
    ///   - tasks: The tasks after `seq`.
    ///   - seq: The session's last event at that time.
    /// - Returns: Their ends, in order.
    /// - Throws: `CancellationError` when the caller cancels; an error that prevents further work.
    mutating func follow(_ tasks: [SessionTask], after seq: Int64) async throws -> [Ending] {
        defer {
            workers.forEach { $0.cancel() }
            queries.values.forEach { $0.work.cancel() }
            display.end()
        }
        for task in tasks {
            items[task.taskIdentifier] = Item(task: task, bar: Bar(name: Self.name(of: task)), heardAt: Self.seconds)
        }
        for task in tasks { try look(at: task) }
        startListening(after: seq)
        var iterator = happenings.makeAsyncIterator()
        display.draw(items, done)
        while !items.isEmpty {
            guard let happening = await iterator.next() else { throw CancellationError() }
            try take(happening)
        }
        return endings
    }

    private mutating func startListening(after seq: Int64) {
        let (client, session, happened, attaches) = (client, session, happened, attaches)
        workers.append(
            Task {
                do {
                    for try await event in client.stream(of: session, after: seq, attaching: attaches) {
                        happened.yield(.event(event))
                    }
                } catch {
                    happened.yield(.lost(error))
                }
            })
        workers.append(
            Task { [interval = display.interval] in
                while (try? await Task.sleep(for: interval)) != nil { happened.yield(.tick) }
            })
    }

    private mutating func take(_ happening: Happening) throws {
        switch happening {
        case .event(let event): hear(event)
        case .look(let task):
            let query = queries.removeValue(forKey: task.taskIdentifier)
            try look(at: task)
            if query?.isOutdated == true { ask(about: task.taskIdentifier) }
        case .compared(let number, let file?): try finish(number, file, wasThere: true)
        case .compared(let number, nil): try keep(number)
        case .saving(let number, let received, let length):
            items[number]?.bar.received = received
            items[number]?.bar.expected = length
            items[number]?.meter.add(received, at: Self.seconds)
        case .saved(let number, let result): try end(number, result)
        // Files are saved without the events of the session, which another call may have deleted.
        case .lost(let error): if items.values.contains(where: { $0.phase == .running }) { throw error }
        case .tick: tick()
        }
    }

    /// Seconds of a monotonic clock.
    static var seconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    // MARK: Tasks

    private mutating func hear(_ event: Event) {
        guard let number = event.taskIdentifier, items[number]?.phase == .running else { return }
        items[number]?.heardAt = Self.seconds
        switch event.type {
        case .taskDidWriteData:
            guard let data = try? event.data.read(EventData.DidWriteData.self) else { return }
            move(number, data.totalBytesWritten, data.totalBytesExpectedToWrite)
        case .taskDidSendBodyData:
            guard let data = try? event.data.read(EventData.DidSendBodyData.self) else { return }
            move(number, data.totalBytesSent, data.totalBytesExpectedToSend)
        case .taskWillRetry, .taskIsWaitingForConnectivity:
            items[number]?.bar.note = Words.event(event)
            display.tell("\(items[number]?.bar.name ?? ""): \(Words.event(event))")
        case .taskDidReceiveChallenge where user != nil:
            // The server refused the password, and there is no other.
            guard let question = (try? event.data.read(AuthenticationChallenge.self))?.questionId else { return }
            let answer = Answer(.performDefaultHandling)
            workers.append(Task { [client] in _ = try? await client.answer(answer, to: question) })
        case .taskDidReceiveChallenge, .taskWillBeginDelayedRequest:
            items[number]?.bar.note = "asks a question"
            display.tell(
                "\(items[number]?.bar.name ?? ""): \(Words.event(event)); answer with urlsession answer", isUrgent: true
            )
        case .taskDidFinishCollectingMetrics:
            items[number]?.pace = (try? event.data.read(TaskMetrics.self)).map { Pace($0) }
        case .taskDidComplete:
            queries[number]?.isOutdated = true
            ask(about: number)
        default: break
        }
    }

    private mutating func move(_ number: Int64, _ count: Int64, _ whole: Int64?) {
        guard var item = items[number] else { return }
        item.bar.received = count
        item.bar.expected = whole ?? item.bar.expected
        item.bar.note = nil
        item.meter.add(count, at: Self.seconds)
        items[number] = item
    }

    /// Reads a running task, unless a request for it is in flight.
    private mutating func ask(about number: Int64) {
        guard items[number]?.phase == .running, queries[number] == nil else { return }
        let (client, session, happened) = (client, session, happened)
        let work = Task {
            do {
                _ = happened.yield(.look(try await Patience.insist { try await client.task(number, in: session) }))
            } catch {
                _ = happened.yield(.lost(error))
            }
        }
        queries[number] = Query(work: work)
    }

    /// Updates a task that is followed and has not ended.
    private mutating func look(at task: SessionTask) throws {
        let number = task.taskIdentifier
        guard var item = items[number], item.phase == .running else { return }
        item.task = task
        item.bar.name = Self.name(of: task)
        let isUpload = task.kind == .upload
        item.bar.received = isUpload ? task.countOfBytesSent : task.countOfBytesReceived
        item.bar.expected = isUpload ? task.countOfBytesExpectedToSend : task.countOfBytesExpectedToReceive
        item.bar.note = Words.waiting(task)
        items[number] = item
        if task.state == .completed { try complete(number) }
    }

    static func name(of task: SessionTask) -> String {
        if task.kind == .upload, let name = task.metadata["urlsession.file"] { return name }
        let url = task.originalRequest.address
        let hasName = task.response?.suggestedFilename != nil || SaveLocation.lastPart(of: url) != nil
        guard hasName else { return SaveLocation.host(of: url) ?? url }
        return SaveLocation.folder("/").path(for: task, besides: []).map { String($0.dropFirst()) } ?? url
    }

    // MARK: Ends

    private mutating func complete(_ number: Int64) throws {
        guard let task = items[number]?.task else { return }
        guard let file = SaveLocation.saved(task) else { return try keep(number) }
        guard let content = task.content else {
            // Nothing is left with which the file can be compared.
            return LocalFiles.exists(file) ? try finish(number, file, wasThere: true) : try keep(number)
        }
        items[number]?.phase = .comparing
        items[number]?.bar.note = "comparing with the existing file"
        workers.append(
            Task { [happened] in
                happened.yield(.compared(number, Client.file(file, stillHas: content) ? file : nil))
            })
    }

    /// Saves the content of a completed task, if it is wanted. A content that the service no longer has is a failure.
    private mutating func keep(_ number: Int64) throws {
        guard let task = items[number]?.task else { return }
        let isGood = task.outcome == .succeeded || task.outcome == .notModified
        let isStored = task.content != nil && (isGood || savesErrors && task.outcome == .httpError)
        guard task.kind == .download, isStored || task.hasLostContent else { return try finish(number, nil) }
        let place: SaveLocation
        do throws(Failure) {
            place = try self.place(of: task)
        } catch {
            return try finish(number, nil, failure: error.lines.joined(separator: "; "))
        }
        guard place != .nowhere else { return try finish(number, nil) }
        guard isStored else { return try finish(number, nil, failure: "the service no longer has the content") }
        items[number]?.file = place.path(for: task, besides: taken)
        if !replaces { items[number]?.others = place.files(for: task, besides: written) }
        if let file = items[number]?.file { taken.insert(file) }
        items[number]?.phase = .waitingToSave
        items[number]?.bar.note = "waiting to be saved"
        saveMore()
    }

    private func place(of task: SessionTask) throws(Failure) -> SaveLocation {
        if let place = places[task.taskIdentifier] ?? place { return place }
        return try SaveLocation(keptWith: task).belowCurrentFolder()
    }

    private mutating func saveMore() {
        while items.values.count(where: { $0.phase == .saving }) < Self.mostSaves,
            let number = items.filter({ $0.value.phase == .waitingToSave }).keys.min()
        {
            items[number]?.phase = .saving
            items[number]?.bar.note = nil
            items[number]?.meter = SpeedMeter()
            guard let item = items[number] else { return }
            let (client, session, happened, replaces) = (client, session, happened, replaces)
            workers.append(
                Task {
                    do {
                        let saved = try await Self.save(item, client, session, replacing: replaces) {
                            happened.yield(.saving(number, received: $0, length: $1))
                        }
                        happened.yield(.saved(number, .success(saved)))
                    } catch {
                        happened.yield(.saved(number, .failure(error)))
                    }
                })
        }
    }

    private static func save(
        _ item: Item, _ client: Client, _ session: String, replacing: Bool,
        progress: @Sendable (Int64, Int64) -> Void
    ) async throws -> Saved {
        let number = item.task.taskIdentifier
        guard let file = item.file else {
            try await client.content(ofTask: number, in: session) { try Terminal.write($0.bytes) }
            try Terminal.sync()
            return .file(nil)
        }
        func isSaved(in file: String) -> Bool { item.task.content.map { Client.file(file, has: $0) } ?? false }
        var there = item.others.first(where: isSaved)
        if there == nil {
            do {
                try await client.content(
                    ofTask: number, in: session, to: file, replacing: replacing, progress: progress)
            } catch  where mayBeSaved(after: error) && isSaved(in: file) {
                there = file
            }
        }
        // Only the file matters; a failure to record it is ignored.
        let change = SaveLocation.change(saying: there ?? file, savedContentOf: item.task)
        _ = try? await client.change(change, ofTask: number, in: session)
        return there.map { .wasThere($0) } ?? .file(file)
    }

    /// Whether another call of the same command may have saved the content meanwhile: the file exists, or that call has
    /// deleted the session.
    private static func mayBeSaved(after error: any Error) -> Bool {
        switch error {
        case ClientError.file(_, EEXIST): true
        case let problem as Problem: problem.code == .notFound
        default: false
        }
    }

    private mutating func end(_ number: Int64, _ result: Result<Saved, any Error>) throws {
        switch result {
        case .success(.file(let file)):
            if let file { written.insert(file) }
            try finish(number, file)
        case .success(.wasThere(let file)):
            try finish(number, file, wasThere: true)
        case .failure(let error):
            let failure = Failure(of: error, at: nil)
            var reason = failure.lines.joined(separator: "; ")
            if case ClientError.file(_, EEXIST)? = error as? ClientError {
                reason += "; --force replaces it, -o saves it elsewhere"
            }
            try finish(number, nil, failure: reason)
        }
        saveMore()
    }

    private mutating func finish(
        _ number: Int64, _ file: String?, wasThere: Bool = false, failure: String? = nil
    ) throws {
        guard let item = items.removeValue(forKey: number) else { return }
        let isGood = item.task.outcome == .succeeded || item.task.outcome == .notModified
        let reason = failure ?? (isGood ? nil : reason(for: item.task))
        let ending = Ending(task: item.task, file: file, wasThere: wasThere, failure: reason, pace: item.pace)
        endings.append(ending)
        done.count += 1
        done.bytes += item.bar.received
        try display.end(of: ending, name: item.bar.name)
        display.draw(items, done)
    }

    private func reason(for task: SessionTask) -> String {
        if let user, task.response?.statusCode == 401 { return "the server refused the password of \(user)" }
        let attempts = task.attempts.count > 1 ? ", after \(task.attempts.count) attempts" : ""
        return Words.failure(task) + attempts
    }

    // MARK: The clock

    private mutating func tick() {
        let now = Self.seconds
        for (number, item) in items {
            items[number]?.bar.speed = item.meter.speed(at: now)
        }
        // A silent task may be suspended, or waits for something without an event.
        if now - askedAt > 1 {
            askedAt = now
            let silent = items.filter { number, item in
                item.phase == .running && now - item.heardAt > 2 && queries[number] == nil
            }
            for number in silent.keys.sorted().prefix(max(0, Self.mostQueries - queries.count)) {
                items[number]?.heardAt = now
                ask(about: number)
            }
        }
        display.draw(items, done)
    }
}
