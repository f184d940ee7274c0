import Glibc
import URLSessionClient
import Wire

enum Transfers {
    // MARK: get

    static func get(_ call: Invocation) async throws {
        let words = call.words
        try SetDownload.check(words)
        if SetDownload.isMeant(by: words) { return try await SetDownload.get(call) }
        try User.checkStandardInput(words)
        let place = try Self.place(words)
        let sources = try Self.sources(words)
        let headers = try Self.headers(words)
        var tasks = try sources.map { try download($0, place, headers, words) }
        try check(place, sources, words)
        // Without the password, which may change.
        let key = tasks.map { String(decoding: $0.jsonBytes, as: UTF8.self) }
        let user = try User.read(words)
        for index in tasks.indices { tasks[index].authorize(as: user) }
        let run = try await Run.open(call, prefix: "get", key: key, user: user)
        var (mine, seq) = try await run.handOver(tasks)
        mine = try await run.again(mine, as: tasks)
        let places = zip(mine, sources).map { ($0.taskIdentifier, $1.place(in: place)) }
        try await run.finish(mine, after: seq, places: Dictionary(places) { first, _ in first })
    }

    /// The place of contents: none if they go into a bucket.
    private static func place(_ words: CallWords) throws -> SaveLocation {
        guard words.text("into") != nil else { return SaveLocation(words.text("output")) }
        guard words.text("output") == nil else {
            throw CallWords.Fault(text: "--into a bucket and -o exclude each other", command: "get")
        }
        return .nowhere
    }

    /// The object that `--into BUCKET/KEY` names for a URL.
    private static func destination(_ into: String, of source: Source, _ words: CallWords) throws -> Destination {
        let parts = into.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw CallWords.Fault(text: "--into must be BUCKET/KEY: \(into)", command: "get")
        }
        var key = parts[1]
        if key.isEmpty || key.hasSuffix("/") {
            guard let name = source.name ?? SaveLocation.lastPart(of: source.url) else {
                throw source.failure("\(source.url) has no name: give --into a whole KEY")
            }
            key += name
        }
        return Destination(bucket: parts[0], key: key, replace: words.flag("force"))
    }

    /// The arguments, and the lines of `--input-file`; each pair of URL and name once.
    private static func sources(_ words: CallWords) throws -> [Source] {
        var sources = words.texts("URL").map { Source(url: $0) }
        if let file = words.text("input-file") {
            sources += try Source.parse(
                String(decoding: LocalFiles.read(file), as: UTF8.self), of: file == "-" ? "standard input" : file)
        }
        var (seen, names): (Set<[String?]>, Set<String>) = ([], [])
        sources = sources.filter { seen.insert([$0.url, $0.name]).inserted }
        guard !sources.isEmpty else { throw CallWords.Fault(text: "URL is missing", command: "get") }
        for source in sources {
            guard let name = source.name, !names.insert(name).inserted else { continue }
            throw source.failure("another line has the name \(name), too")
        }
        return sources
    }

    /// Refuses a call that could only fail later, before any task is created.
    private static func check(_ place: SaveLocation, _ urls: [Source], _ words: CallWords) throws {
        let hasNames = urls.contains { $0.name != nil }
        switch place {
        case .file(let path):
            guard urls.count == 1, !hasNames else {
                let subject = hasNames ? "URLs with names" : "several URLs"
                throw CallWords.Fault(text: "-o must be a folder for \(subject): \(path)", command: "get")
            }
            if LocalFiles.exists(path), !words.flag("force") { throw Failure("\(path) exists; --force replaces it") }
            let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            guard LocalFiles.isFolder(folder + "/") else { throw Failure("\(folder): there is no such folder") }
        case .folder(let path):
            if !LocalFiles.isFolder(path) { try LocalFiles.makeFolder(path) }
            for case let name? in urls.map(\.name) { try LocalFiles.makeFolders(of: name, below: path) }
        case .standardOutput:
            guard urls.count == 1, !hasNames else {
                throw CallWords.Fault(text: "only one URL, without a name, can go to standard output", command: "get")
            }
            if words.flag("json") {
                throw CallWords.Fault(text: "standard output is for the content or for JSON", command: "get")
            }
        case .nowhere:
            guard urls.count == 1 || words.text("into")?.hasSuffix("/") ?? true else {
                throw CallWords.Fault(text: "--into must end with / for several URLs", command: "get")
            }
        }
    }

    private static func download(
        _ source: Source, _ place: SaveLocation, _ headers: StringMap, _ words: CallWords
    ) throws -> TaskCreation {
        let request: TransferRequest
        do throws(Failure) {
            request = try self.request(source.url, headers, words)
        } catch {
            throw source.failure(error.lines.joined(separator: "; "))
        }
        var task = TaskCreation.download(request)
        task.metadata[SaveLocation.key] = source.place(in: place).text
        if let into = words.text("into") { task.destination = try destination(into, of: source, words) }
        if let segments = words.text("segments") {
            task.segments = segments == "auto" ? .auto : .count(Int(segments) ?? 1)
        }
        task.mirrors = words.texts("mirror")
        if let digest = words.text("digest") { task.expectedDigest = try self.digest(digest) }
        task.maximumContentLength = words.number("max-length")
        try apply(words, to: &task)
        return task
    }

    /// `sha-256:HEX`, or hex alone, whose length determines the algorithm.
    static func digest(_ text: String) throws -> ContentDigest {
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        let value = parts.last ?? ""
        let word =
            parts.count == 2 ? parts[0].lowercased() : [32: "md5", 64: "sha-256", 128: "sha-512"][value.count] ?? ""
        let algorithm = ContentDigest.Algorithm(rawValue: ["sha256": "sha-256", "sha512": "sha-512"][word] ?? word)
        guard algorithm.isKnown else {
            throw CallWords.Fault(text: "--digest must be sha-256:HEX, sha-512:HEX or md5:HEX: \(text)", command: "get")
        }
        return ContentDigest(algorithm: algorithm, value: value)
    }

    // MARK: put

    static func put(_ call: Invocation) async throws {
        let words = call.words
        guard let file = words.text("FILE"), let url = words.text("URL") else { return }
        try User.checkStandardInput(words)
        // The file is read again after a broken connection, and compared when the command is repeated.
        guard file != "-", !LocalFiles.isPipe(file) else {
            throw CallWords.Fault(text: "put sends files: save the output of a pipe to a file first", command: "put")
        }
        guard let version = LocalFiles.version(file) else {
            throw Failure("\(file): \(String(cString: strerror(errno)))")
        }
        let path = LocalFiles.absolute(file)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        var target = url
        // As in curl, a folder gets the file's name.
        if target.hasSuffix("/") { target += PercentCoding.encode(name, keeping: PercentCoding.isUnreserved) }
        var task = TaskCreation.upload(try request(target, try headers(words), words), body: .id(""))
        task.metadata["urlsession.file"] = name
        try apply(words, to: &task)
        let key = [path, version, String(decoding: task.jsonBytes, as: UTF8.self)]
        let user = try User.read(words)
        task.authorize(as: user)
        let run = try await Run.open(call, prefix: "put", key: key, user: user, opensSession: false)
        if let known = try await run.known(), let tasks = try await run.againIfPossible([known.task]) {
            return try await run.finish(tasks, after: known.seq)
        }
        let display = StoringDisplay(call.output, name)
        let body = try await call.client.storeBody(
            fileAt: path, mediaType: words.text("type") ?? "application/octet-stream"
        ) { stored, length in display.show(stored, length) }
        display.end()
        task.body = .id(body.id)
        try await run.openSession()
        var (tasks, seq) = try await run.handOver([task])
        if user != nil { tasks = try await run.again(tasks, as: [task]) }
        try await run.finish(tasks, after: seq)
    }

    // MARK: Common parts

    private static func request(
        _ url: String, _ headers: StringMap, _ words: CallWords
    ) throws(Failure) -> TransferRequest {
        var request: TransferRequest
        if let object = object(url) {
            request = object
            request.method = words.text("method")
        } else {
            try check(url)
            request = TransferRequest(url: url, method: words.text("method"))
        }
        request.headers = headers
        return request
    }

    private static func headers(_ words: CallWords) throws -> StringMap {
        var headers = StringMap()
        for text in words.texts("header") {
            var lines = [text]
            let isFile = text.hasPrefix("@")
            if isFile {
                let file = try LocalFiles.read(String(text.dropFirst()))
                lines = String(decoding: file, as: UTF8.self).lines.map(\.trimmed)
            }
            for (index, line) in lines.enumerated() where !isFile || !line.isEmpty {
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
                guard parts.count == 2, !parts[0].isEmpty else {
                    // The lines of a file are hidden, as they may be secrets.
                    let fault =
                        isFile
                        ? "\(text), line \(index + 1) is not NAME: TEXT"
                        : "--header must be NAME: TEXT, or @FILE: \(line)"
                    throw CallWords.Fault(text: fault, command: words.command.name)
                }
                headers[parts[0]] = parts[1]
            }
        }
        return headers
    }

    /// The request for `s3://BUCKET/KEY`.
    private static func object(_ url: String) -> TransferRequest? {
        guard url.lowercased().hasPrefix("s3://") else { return nil }
        let parts = url.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return .object(bucket: String(parts[0]), key: String(parts[1]))
    }

    /// Refuses a URL that the service cannot transfer, before a session is opened.
    private static func check(_ url: String) throws(Failure) {
        let scheme = ["http://", "https://"].first { url.lowercased().hasPrefix($0) }
        guard let scheme, let first = url.dropFirst(scheme.count).first, !"/?#:".contains(first) else {
            throw Failure("\(url) is no URL to transfer: it must begin with http:// or https:// and a host", status: 2)
        }
    }

    private static func apply(_ words: CallWords, to task: inout TaskCreation) throws {
        if let priority = words.text("priority").flatMap({ Double($0) }) { task.priority = priority }
        task.earliestBeginDate = words.text("not-before")
        task.group = words.text("group")
    }

    // MARK: attach

    static func attach(_ call: Invocation) async throws {
        let words = call.words
        guard let session = words.text("SESSION") else { return }
        let run = Run(call, session: session, isOwn: false)
        let seq = try await call.client.session(session).lastEventSeq
        var tasks: [SessionTask] = []
        try await Client.each({ try await call.client.tasks(in: session, cursor: $0, limit: 1000) }) {
            tasks.append($0)
        }
        let place = words.text("output").map { SaveLocation($0) }
        if words.command.name == "attach" {
            // Retried tasks are skipped, and saved ones need no check.
            let retried = Set(tasks.compactMap(\.retryOf))
            tasks = tasks.filter { task in
                !retried.contains(task.taskIdentifier)
                    && (task.state != .completed || task.metadata[SaveLocation.key] != nil
                        || task.metadata["urlsession.file"] != nil || place != nil)
            }
        } else {
            tasks = tasks.filter { $0.state != .completed }
        }
        guard !tasks.isEmpty else { return try call.output.say("no task is running in \(session)") }
        try await run.finish(tasks, after: seq, place: words.command.name == "watch" ? .nowhere : place)
    }
}

extension TaskCreation {
    fileprivate mutating func authorize(as user: User?) {
        if let user { request = request.map { user.authorizing($0) } }
    }
}
