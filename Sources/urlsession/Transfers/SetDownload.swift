import Glibc
import Options
import Synchronization
import URLSessionClient
import Wire

/// `get --set` and `get --hf`: the files of a version of a set, saved in a folder.
struct SetDownload {
    private let call: Invocation
    private let folder: String

    /// The maximum number of files in flight.
    private static let width = 4

    /// Whether a call of `get` is for a set.
    static func isMeant(by words: CallWords) -> Bool { words.text("set") != nil || words.text("hf") != nil }

    private static let options = ["set", "set-version"] + Subcommand.hub.map(\.name)

    /// Refuses options that do not belong together.
    static func check(_ words: CallWords) throws(CallWords.Fault) {
        func fault(_ text: String) -> CallWords.Fault { CallWords.Fault(text: text, command: words.command.name) }
        func first(_ names: [String]) -> String? { names.first { words.flag($0) } }
        guard isMeant(by: words) else {
            if let name = first(options) { throw fault("--\(name) is for --set and --hf") }
            return
        }
        let own = options + ["output", "force"] + (words.text("hf") == nil ? [] : ["session"])
        if let name = first(words.command.options.map(\.name).filter({ !own.contains($0) })) {
            throw fault("--\(name) is for URLs, not for --set and --hf")
        }
        if words.text("hf") == nil, let name = first(Subcommand.hub.map(\.name)) {
            throw fault("--\(name) is for --hf")
        }
        if words.text("hf") != nil, words.text("set-version") != nil {
            throw fault("--set-version and --hf exclude each other")
        }
        let places = words.texts("URL") + words.texts("output")
        guard places.count <= 1 else { throw fault("the files go into one folder: \(places.joined(separator: ", "))") }
        guard places != ["-"] else { throw fault("the files go into a folder, not to standard output") }
    }

    static func get(_ call: Invocation) async throws {
        let words = call.words
        let subject = words.text("hf")?.split(separator: "/").last.map(String.init) ?? words.text("set") ?? ""
        var place = words.text("output") ?? words.texts("URL").first ?? subject
        while place.count > 1, place.hasSuffix("/") { place.removeLast() }
        let download = SetDownload(call: call, folder: LocalFiles.absolute(place))
        do {
            guard let repository = words.text("hf") else {
                return try await download.save(words.text("set") ?? "", words.text("set-version"))
            }
            try await download.save(VersionOrder.hub(repository, words))
        } catch let problem as Problem where problem.code == .notFound || problem.code == .contentNotReady {
            // Arguments of the call are no names of resources.
            throw Failure(Words.sentence(problem.detail))
        }
    }

    /// Publishes a source in a set, and saves the files. Without `--set` the set is one of the call's own, whose name
    /// is derived from the call, so that the same call finds it again. It is deleted when the files are saved.
    private func save(_ source: SetSource) async throws {
        let client = call.client
        let digest = SHA256.digest(source.jsonBytes).prefix(5)
        let own = "get-" + digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let (given, session) = (call.words.text("set"), call.words.text("session"))
        let set = given ?? own
        _ = try await client.putSet(set)
        let name: String
        if given != nil || session != nil {
            name = try await SetCommands.openSession(call, of: set)
        } else {
            name = try await client.openSession(
                own, configuration: SessionOptions(call.words).configuration, description: "urlsession"
            ).identifier
        }
        let head = SetVersionHead(session: name, version: given == nil ? own : nil)
        let version = try await VersionOrder.source(source).create(head, in: set, client)
        let ended = try await SetWatch(call).follow(version)
        try SetCommands.check(ended)
        try await save(set, ended.versionId)
        guard given == nil else { return }
        try await client.deleteSet(set)
        if session == nil { try await client.deleteSession(name) }
    }

    // MARK: Files

    private func save(_ set: String, _ version: String?) async throws {
        let manifest = try await call.client.manifest(ofSet: set, version: version)
        for file in manifest.files {
            // Nothing is written outside of the folder, whatever the service says.
            if let fault = TextRule.relativePath.violation(in: file.path) { throw Failure("\(file.path): \(fault)") }
        }
        if !LocalFiles.isFolder(folder) { try LocalFiles.makeFolder(folder) }
        let progress = SavingProgress(call.output, manifest)
        let ticker = Task {
            while (try? await Task.sleep(for: .milliseconds(200))) != nil { progress.draw() }
        }
        defer {
            ticker.cancel()
            progress.end()
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, file) in manifest.files.enumerated() {
                if index >= Self.width { try await group.next() }
                group.addTask { try await save(file, set, manifest.versionId, progress) }
            }
            for try await _ in group {}
        }
        call.output.note("\(progress.saved) of \(manifest.files.count) saved in \(LocalFiles.relative(folder))")
        if progress.saved < manifest.files.count { throw Failure.silent(1) }
    }

    /// - Throws: `CancellationError`, and errors of standard output. A file that cannot be saved is reported.
    private func save(
        _ file: SetManifestFile, _ set: String, _ version: String, _ progress: SavingProgress
    ) async throws {
        let path = folder + "/" + file.path
        let content = Content { ($0.length, $0.digest) = (file.length, file.digest) }
        var line = SavedFileLine { $0.path = file.path }
        var wasThere = false
        do {
            try LocalFiles.makeFolders(of: file.path, below: folder)
            wasThere = LocalFiles.exists(path) && Client.file(path, has: content)
            if !wasThere {
                try await call.client.file(
                    file, ofSet: set, version: version, to: path, replacing: call.words.flag("force")
                ) { progress.show(file.path, $0, $1) }
            }
            line.file = path
        } catch {
            try Task.checkCancellation()
            line.failure = Failure(of: error, at: call.settings.url).lines.joined(separator: "; ")
            if case ClientError.file(_, EEXIST)? = error as? ClientError { line.failure? += "; --force replaces it" }
        }
        try progress.end(line, wasThere: wasThere, bytes: file.length)
    }
}

/// The output of `--json` for each file of a set.
struct SavedFileLine: Shape {
    /// The path within the version.
    var path = ""
    /// The saved file.
    var file: String?
    var failure: String?

    init() {}

    mutating func visit(_ members: inout some MemberVisitor) {
        members.member("path", &path)
        members.nullable("file", &file)
        members.nullable("failure", &failure)
    }
}

/// The progress of the files of a set that are being saved.
private final class SavingProgress: Sendable {
    private struct State {
        var display: FilesDisplay
        var meter = SpeedMeter()
        /// The files in flight.
        var bars: [String: Bar] = [:]
        var done: Int64 = 0
        var bytes: Int64 = 0
        var saved = 0
    }

    private let output: Output
    private let files: Int64
    private let length: Int64
    private let state: Mutex<State>

    init(_ output: Output, _ manifest: SetManifest) {
        self.output = output
        (files, length) = (Int64(manifest.files.count), manifest.files.reduce(0) { $0 + $1.length })
        state = Mutex(State(display: FilesDisplay(output)))
    }

    var saved: Int { state.withLock { $0.saved } }

    func show(_ path: String, _ received: Int64, _ length: Int64) {
        state.withLock { $0.bars[path] = Bar(name: path, received: received, expected: length) }
    }

    func draw() {
        state.withLock { state in
            let now = Follower.seconds
            let bars = state.bars.sorted { $0.key < $1.key }.map(\.value)
            var whole = Bar(name: "", received: bars.reduce(state.bytes) { $0 + $1.received }, expected: length)
            state.meter.add(whole.received, at: now)
            whole.speed = state.meter.speed(at: now)
            state.display.draw(bars, done: state.done, of: files, in: whole)
        }
    }

    func end(_ line: SavedFileLine, wasThere: Bool, bytes: Int64) throws {
        try state.withLock { state in
            state.bars[line.path] = nil
            state.done += 1
            state.bytes += bytes
            if line.failure == nil { state.saved += 1 }
            if output.isJSON { return try output.json(line) }
            state.display.end()
            if let failure = line.failure { return Output.complain("\(line.path): \(failure)") }
            let name = LocalFiles.relative(line.file ?? line.path)
            try output.say("\(wasThere ? "is there:" : "saved") \(name) (\(Words.bytes(bytes)))")
        }
    }

    func end() { state.withLock { $0.display.end() } }
}
