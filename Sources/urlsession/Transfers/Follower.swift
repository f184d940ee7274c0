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

    private static let mostSaves = 4

    private var items: [Int64: Item] = [:]
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
            display.end()
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
        let (client, session, happened) = (client, session, happened)
        workers.append(
            Task {
                do {
                    for try await event in client.stream(of: session, after: seq) { happened.yield(.event(event)) }
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
        case .look(let task): try look(at: task)
        case .compared(let number, let file?): try finish(number, file, wasThere: true)
        case .compared(let number, nil): try keep(number)
        case .saving(let number, let received, let length):
            items[number]?.bar.received = received
            items[number]?.bar.expected = length
            items[number]?.meter.add(received, at: Self.seconds)
        case .saved(let number, let result): try end(number, result)
        case .lost(let error): throw error
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
        case .taskDidComplete: ask(about: number)
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

    private func ask(about number: Int64) {
        let (client, session, happened) = (client, session, happened)
        Task {
            do {
                happened.yield(.look(try await Patience.insist { try await client.task(number, in: session) }))
            } catch {
                happened.yield(.lost(error))
            }
        }
    }

    private mutating func look(at task: SessionTask) throws {
        let number = task.taskIdentifier
        var item = items[number] ?? Item(task: task, bar: Bar(name: Self.name(of: task)), heardAt: Self.seconds)
        guard item.phase == .running else { return }
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
        guard let file = SaveLocation.saved(task), let content = task.content else { return try keep(number) }
        items[number]?.phase = .comparing
        items[number]?.bar.note = "comparing with the existing file"
        workers.append(
            Task { [happened] in
                happened.yield(.compared(number, Client.file(file, stillHas: content) ? file : nil))
            })
    }

    /// Saves the content of a completed task, if it has one and it is wanted.
    private mutating func keep(_ number: Int64) throws {
        guard let task = items[number]?.task else { return }
        let isGood = task.outcome == .succeeded || task.outcome == .notModified
        let isWanted =
            task.kind == .download && task.content != nil && (isGood || savesErrors && task.outcome == .httpError)
        guard isWanted else { return try finish(number, nil) }
        let place: SaveLocation
        do throws(Failure) {
            place = try self.place(of: task)
        } catch {
            return try finish(number, nil, failure: error.lines.joined(separator: "; "))
        }
        guard place != .nowhere else { return try finish(number, nil) }
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
        if let content = item.task.content, let there = item.others.first(where: { Client.file($0, has: content) }) {
            let change = SaveLocation.change(saying: there, savedContentOf: item.task)
            _ = try? await client.change(change, ofTask: number, in: session)
            return .wasThere(there)
        }
        try await client.content(ofTask: number, in: session, to: file, replacing: replacing, progress: progress)
        // Only the file matters; a failure to record it is ignored.
        let change = SaveLocation.change(saying: file, savedContentOf: item.task)
        _ = try? await client.change(change, ofTask: number, in: session)
        return .file(file)
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
            let silent = items.filter { $0.value.phase == .running && now - $0.value.heardAt > 2 }
            for number in silent.keys.sorted().prefix(8) {
                items[number]?.heardAt = now
                ask(about: number)
            }
        }
        display.draw(items, done)
    }
}
