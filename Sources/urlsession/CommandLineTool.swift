import FoundationEssentials
import Glibc
import URLSessionClient
import Wire

/// `urlsession`: the service from a shell.
enum CommandLineTool {
    private static let usage = """
        usage: urlsession COMMAND …

          open SESSION                      create or reconnect a session
          sessions                          list the app's sessions
          download SESSION URL [FILE]       hand over a download; with FILE, wait and save it
          upload SESSION FILE URL           store a file and hand over its upload
          tasks SESSION                     list tasks
          suspend|resume|cancel SESSION N   tell a task what to do
          events SESSION [--follow]         print events; --follow waits for more and acknowledges them
          stream SESSION                    print events as they happen, progress included
          ack SESSION SEQ                   acknowledge events
          questions                         list what tasks ask
          answer QUESTION DISPOSITION       answer one
          answer QUESTION useCredential [USER]
                                            answer with the password (without USER: the token) on standard input
          launches                          list launches
          complete LAUNCH [RESULT]          complete a launch; a fetch with newData, noData or failed
          refresh [never|minimum|SECONDS]   show background refresh, or say how often to fetch
          fetch                             fetch now

        URLSESSION_URL (http://127.0.0.1:8080) names the service, URLSESSION_KEY (dev) the app's key.
        """

    /// Runs one command and answers with the process's exit status: 0, 1 when refused, 64 for a wrong call.
    static func run(_ arguments: [String]) async -> Int32 {
        guard let client = client() else {
            complain("URLSESSION_URL is not a URL")
            return 64
        }
        do {
            guard try await perform(arguments, client) else {
                complain(usage)
                return 64
            }
            return 0
        } catch let problem as Problem {
            complain("\(problem.title): \(problem.detail)")
            for entry in problem.errors { complain("  \(entry.pointer): \(entry.detail)") }
        } catch {
            complain("\(error)")
        }
        return 1
    }

    private static func client() -> Client? {
        let url = environment("URLSESSION_URL") ?? "http://127.0.0.1:8080"
        return URL(string: url).map { Client(url: $0, key: environment("URLSESSION_KEY") ?? "dev") }
    }

    /// - Returns: Whether there is such a command with these arguments.
    private static func perform(_ arguments: [String], _ client: Client) async throws -> Bool {
        let words = arguments.dropFirst()
        switch (arguments.first, words.count) {
        case ("open", 1): show(try await client.openSession(words[1]))
        case ("sessions", 0): try await list({ try await client.sessions(cursor: $0, limit: 1000) }, show)
        case ("download", 2...3): try await download(words[1], words[2], file: words.count > 2 ? words[3] : nil, client)
        case ("upload", 3): try await upload(words[1], file: words[2], to: words[3], client)
        case ("tasks", 1):
            try await list({ try await client.tasks(in: words[1], cursor: $0, limit: 1000) }, show)
        case ("suspend", 2), ("resume", 2), ("cancel", 2):
            guard let command = Client.Command(rawValue: arguments[0]), let number = Int64(words[2]) else {
                return false
            }
            show(try await client.command(command, task: number, in: words[1]))
        case ("events", 1): try await listEvents(words[1], client)
        case ("events", 2) where words[2] == "--follow": try await follow(words[1], client)
        case ("ack", 2):
            guard let seq = Int64(words[2]) else { return false }
            try await client.acknowledge(through: seq, in: words[1])
        case ("stream", 1): for try await event in client.stream(of: words[1]) { show(event) }
        case ("questions", 0):
            try await list({ try await client.questions(cursor: $0, limit: 1000) }, show)
        case ("answer", 2...3):
            guard let answer = answer(Array(words.dropFirst())) else { return false }
            show(try await client.answer(answer, to: words[1]))
        case ("launches", 0): try await list({ try await client.launches(cursor: $0, limit: 1000) }, show)
        case ("complete", 1): show(try await client.completeLaunch(words[1]))
        case ("complete", 2):
            show(try await client.completeFetch(words[1], result: .init(rawValue: words[2])))
        case ("refresh", 0): show(try await client.backgroundRefresh())
        case ("refresh", 1):
            guard let interval = interval(words[1]) else { return false }
            show(try await client.setMinimumBackgroundFetchInterval(interval))
        case ("fetch", 0): show(try await client.simulateFetch())
        default: return false
        }
        return true
    }

    private static func download(_ session: String, _ url: String, file: String?, _ client: Client) async throws {
        var task = try await client.createTask(.download(TransferRequest(url: url)), in: session)
        guard let file else { return show(task) }
        while task.state != .completed {
            task = try await client.task(task.taskIdentifier, in: session, waiting: 30)
        }
        show(task)
        guard task.outcome == .succeeded, task.content != nil else { throw NotDownloaded(task: task) }
        try await client.content(ofTask: task.taskIdentifier, in: session, to: file, replacing: true)
    }

    /// There is no file to save.
    private struct NotDownloaded: Error, CustomStringConvertible {
        let task: SessionTask

        var description: String {
            let status = task.response.map { "status \($0.statusCode)" }
            let reason = task.error?.localizedDescription ?? status ?? "no content"
            return "\(task.originalRequest.url): \(task.outcome.map { "\($0)" } ?? "unfinished"), \(reason)"
        }
    }

    private static func upload(_ session: String, file: String, to url: String, _ client: Client) async throws {
        let body = try await client.storeBody(fileAt: file)
        show(try await client.createTask(.upload(TransferRequest(url: url), body: .id(body.id)), in: session))
    }

    /// Shows what all pages have, from the first cursor to the last.
    private static func list<Item>(
        _ page: (_ cursor: String?) async throws -> Page<Item>, _ show: (Item) -> Void
    ) async throws {
        var cursor: String?
        repeat {
            let page = try await page(cursor)
            page.items.forEach(show)
            cursor = page.nextCursor
        } while cursor != nil
    }

    private static func listEvents(_ session: String, _ client: Client) async throws {
        var (last, isAtEnd): (Int64?, Bool) = (nil, false)
        while !isAtEnd {
            let page = try await client.eventPage(of: session, after: last, limit: 1000)
            for event in page.items { show(event) }
            last = page.items.last?.seq ?? page.lastSeq
            isAtEnd = last ?? 0 >= page.lastSeq
        }
    }

    private static func follow(_ session: String, _ client: Client) async throws {
        for try await event in client.events(of: session) {
            show(event)
            if let seq = event.seq { try await acknowledge(through: seq, in: session, client) }
        }
    }

    /// Acknowledges once the service is there.
    private static func acknowledge(through seq: Int64, in session: String, _ client: Client) async throws {
        var patience = Patience()
        while true {
            do {
                return try await client.acknowledge(through: seq, in: session)
            } catch {
                try await patience.wait(after: error)
            }
        }
    }

    /// The answer that words make; nil where they make none.
    private static func answer(_ words: [String]) -> Answer? {
        let disposition = Disposition(rawValue: words[0])
        switch (disposition, words.count) {
        case (.useCredential, _):
            // Not an argument: those can be seen by everybody on the machine.
            guard let secret = readLine() else { return nil }
            return .useCredential(
                Credential(words.count > 1 ? .password(user: words[1], password: secret) : .token(secret)))
        case (.useNewRequest, _): return nil
        default: return words.count == 1 ? Answer(disposition) : nil
        }
    }

    private static func interval(_ word: String) -> FetchInterval? {
        switch word {
        case "never": .never
        case "minimum": .minimum
        default: Double(word).map { .seconds($0) }
        }
    }

    // MARK: Words

    private static func show(_ refresh: BackgroundRefresh) {
        let interval =
            switch refresh.minimumBackgroundFetchInterval {
            case .never: "never"
            case .minimum: "minimum"
            case .seconds(let seconds): "\(seconds) s"
            }
        say("\(interval)\t\(refresh.backgroundRefreshStatus)\tnext \(refresh.nextFetchAt ?? "-")\t\(refresh.why)")
        for fetch in refresh.history {
            say("\(fetch.launchId)\t\(fetch.at)\t\(fetch.result.map { "\($0)" } ?? "open")")
        }
    }

    private static func show(_ question: Question) {
        let subject = question.protectionSpace.map { "\($0.host):\($0.port)" } ?? question.request?.url ?? "-"
        say(
            "\(question.questionId)\t\(question.type)\t\(question.state)\t"
                + "\(question.sessionIdentifier)/\(question.taskIdentifier)\t\(subject)")
    }

    private static func show(_ session: Session) {
        let counts = session.taskCounts
        say("\(session.identifier)\t\(session.state)\trunning \(counts.running)\tcompleted \(counts.completed)")
    }

    private static func show(_ task: SessionTask) {
        let state = task.outcome.map { "\($0)" } ?? task.phase.map { "\($0)" } ?? "\(task.state)"
        say("\(task.taskIdentifier)\t\(state)\t\(task.countOfBytesReceived)\t\(task.originalRequest.url)")
    }

    private static func show(_ event: Event) {
        say("\(event.seq.map { String($0) } ?? "-")\t\(event.type)\t\(event.taskIdentifier.map { String($0) } ?? "-")")
    }

    private static func show(_ launch: Launch) {
        say("\(launch.launchId)\t\(launch.kind)\t\(launch.state)\tattempts \(launch.attempts.count)")
    }

    private static func say(_ line: String) { write(line, to: STDOUT_FILENO) }

    private static func complain(_ line: String) { write(line, to: STDERR_FILENO) }

    private static func write(_ line: String, to descriptor: Int32) {
        let bytes = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }

    private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
