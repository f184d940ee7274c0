import CTrust
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import URLSessionClient
import Wire

/// The environment of a command: its words, its output, and the service.
struct Invocation: Sendable {
    let words: CallWords
    let output: Output
    let settings: Settings
    let client: Client
}

enum Tool {
    /// Runs one command and returns the process's exit status.
    static func run(_ words: [String]) async -> Int32 {
        signal(SIGPIPE, SIG_DFL)
        do {
            if words.first == Completions.word {
                let lines = await Completions.lines(Array(words.dropFirst()), sessions: sessions)
                if !lines.isEmpty { try Output.text(lines.joined(separator: "\n")) }
                return 0
            }
            switch try CallWords.parse(words) {
            case .help(nil): try Output.text(Help.overview())
            case .help(let command?): try Output.text(Help.command(command))
            case .family(let word): try Output.text(Help.family(word))
            case .version: try Output.text("urlsession \(CommandTable.version)")
            case .run(let words): return await run(words)
            }
            return 0
        } catch {
            return complain(about: error)
        }
    }

    private static func run(_ words: CallWords) async -> Int32 {
        let call: Invocation
        do {
            call = try invocation(words)
        } catch {
            return complain(about: error)
        }
        let work = Task { () -> Int32 in
            do {
                try await words.command.run(call)
                return 0
            } catch {
                return complain(about: error, call)
            }
        }
        let sources = Interruption.watch { work.cancel() }
        defer { sources.forEach { $0.cancel() } }
        return await work.value
    }

    private static func invocation(_ words: CallWords) throws -> Invocation {
        let settings = words.command.isLocal ? Settings() : try Settings.found(for: words)
        guard let url = URL(string: settings.url), url.host() != nil, ["http", "https"].contains(url.scheme) else {
            throw Failure("\(settings.url) is not the URL of a service", status: 2)
        }
        if let file = settings.certificates { try trust(file) }
        return Invocation(
            words: words, output: Output(isJSON: words.flag("json"), isQuiet: words.flag("quiet")), settings: settings,
            client: Client(url: url, key: settings.key))
    }

    /// The names of the sessions of the service that a line names; empty if it does not respond.
    private static func sessions(_ line: [String]) async -> [String] {
        guard case .run(let words)? = try? CallWords.parse(Completions.connection(of: line) + ["sessions"]),
            let call = try? invocation(words)
        else { return [] }
        var names: [String] = []
        try? await Client.each({ try await call.client.sessions(cursor: $0, limit: 1000) }) {
            names.append($0.identifier)
        }
        return names
    }

    /// Verifies the service's certificate against those of a file.
    private static func trust(_ file: String) throws {
        guard try LocalFiles.read(file).firstRange(of: Array("-----BEGIN CERTIFICATE-----".utf8)) != nil else {
            throw Failure("\(file) has no certificate in PEM form")
        }
        trust_certificates(file)
    }

    private static func complain(about fault: CallWords.Fault) -> Int32 {
        Output.complain(fault.text)
        Output.complain("see urlsession \(fault.command.map { "\($0) " } ?? "")--help")
        return 2
    }

    private static func complain(about error: any Error, _ call: Invocation? = nil) -> Int32 {
        if let fault = error as? CallWords.Fault { return complain(about: fault) }
        let failure = Failure(of: error, at: call?.settings.url, call?.words)
        failure.lines.forEach { Output.complain($0) }
        return failure.status
    }
}

/// Ctrl-C and similar signals. The first one cancels the command, the second one kills it.
enum Interruption {
    static func watch(_ end: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM, SIGHUP].compactMap { number in
            let before = unsafeBitCast(signal(number, SIG_IGN), to: Int.self)
            // `nohup` requires this.
            guard number != SIGHUP || before != unsafeBitCast(SIG_IGN, to: Int.self) else { return nil }
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isSecond = interruptions.withLock { count in
                    count += 1
                    return count > 1
                }
                if isSecond || Terminal.stopPrompting() { _exit(2) }
                end()
            }
            source.resume()
            return source
        }
    }

    private static let interruptions = Mutex(0)
}
