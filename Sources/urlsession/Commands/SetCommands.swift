import URLSessionClient
import Wire

enum SetCommands {
    static func list(_ call: Invocation) async throws {
        try await call.output.list(
            ["set", "version", "files", "bytes", "published"], { try await call.client.sets(cursor: $0, limit: 1000) },
            row)
    }

    private static func row(_ set: FileSet) -> [String] {
        guard let current = set.current else { return [set.name, "-", "-", "-", "-"] }
        return [set.name, current.version, String(current.files), String(current.bytes), current.publishedAt]
    }

    private static func row(_ version: SetVersion) -> [String] {
        [version.name, version.version, version.versionId, version.state.rawValue]
    }

    static func show(_ call: Invocation) async throws {
        let name = call.words.text("SET") ?? ""
        guard let version = call.words.text("VERSION") else {
            return try call.output.show(try await call.client.set(name), lines)
        }
        try call.output.show(try await call.client.version(version, ofSet: name), lines)
    }

    static func lines(_ set: FileSet) -> [String] {
        var lines = ["set \(set.name): " + (set.current.map { "version \($0.version)" } ?? "no version is published")]
        if let destination = set.destination {
            lines.append("published in \(place(destination)), layout \(set.layout)")
        }
        lines.append("keeps \(set.keep) further versions, each for \(Words.duration(Double(set.grace))) at least")
        return lines
            + set.versions.map { version in
                let state = version.versionId == set.current?.versionId ? "current" : "kept"
                let amount = "\(Int(version.files).counted("file")), \(Words.bytes(version.bytes))"
                return "\(state)\t\(version.version)\t\(version.versionId)\t\(amount)\t\(version.publishedAt)"
            }
    }

    static func place(_ destination: SetDestination) -> String {
        destination.bucket.map { "s3://\($0)/\(destination.prefix ?? "")" }
            ?? "\(destination.root ?? ""):\(destination.path ?? "")"
    }

    static func lines(_ version: SetVersion) -> [String] {
        let (files, bytes) = (version.files, version.bytes)
        var lines = ["version \(version.version) of \(version.name): \(version.state) (\(version.versionId))"]
        lines.append(
            "\(files.fetched) fetched and \(files.reused) reused of \(Int(files.total).counted("file")), "
                + Words.bytes(bytes.fetched + bytes.reused, of: bytes.total))
        if let commit = version.commit { lines.append("commit \(commit)") }
        lines.append("session \(version.sessionIdentifier), group \(version.versionId)")
        return lines + failures(version)
    }

    private static func failures(_ version: SetVersion) -> [String] {
        var lines = version.failures.map { failure in
            let task = failure.taskIdentifier.map { " (task \($0))" } ?? ""
            return "\(failure.path ?? version.version): \(Words.sentence(failure.detail))\(task)"
        }
        let more = Int(version.files.failed) - lines.count
        if more > 0 { lines.append("and \(more) more") }
        return lines
    }

    static func switchSet(_ call: Invocation) async throws {
        let (name, version) = (call.words.text("SET") ?? "", call.words.text("VERSION") ?? "")
        try call.output.row(try await call.client.switchSet(name, to: version), row)
    }

    static func retry(_ call: Invocation) async throws {
        let (name, version) = (call.words.text("SET") ?? "", call.words.text("VERSION") ?? "")
        try await end(call, try await call.client.retryVersion(version, ofSet: name))
    }

    static func cancel(_ call: Invocation) async throws {
        let (name, version) = (call.words.text("SET") ?? "", call.words.text("VERSION") ?? "")
        try call.output.row(try await call.client.cancelVersion(version, ofSet: name), row)
    }

    static func remove(_ call: Invocation) async throws {
        let name = call.words.text("SET") ?? ""
        try await call.client.deleteSet(name, keepingFiles: call.words.flag("keep-files"))
        try call.output.say("\(name) is deleted")
    }

    // MARK: publish

    static func publish(_ call: Invocation) async throws {
        let (words, name) = (call.words, call.words.text("SET") ?? "")
        let order = try VersionOrder(words)
        let put = try configuration(words)
        _ = try await call.client.putSet(name, put)
        let session = try await openSession(call, of: name)
        let version = try await order.create(
            SetVersionHead(session: session, version: words.text("version")), in: name, call.client)
        try await end(call, version)
    }

    /// The session for the files of a set; by default one for each set.
    static func openSession(_ call: Invocation, of set: String) async throws -> String {
        if let given = call.words.text("session") { return try await call.client.openSession(given).identifier }
        return try await call.client.openSession(
            String("set-\(set)".prefix(128)), configuration: SessionOptions(call.words).configuration,
            description: "urlsession"
        ).identifier
    }

    static func configuration(_ words: CallWords) throws(CallWords.Fault) -> FileSetPut {
        func pair(_ first: String, _ second: String) throws(CallWords.Fault) -> (String, String)? {
            switch (words.text(first), words.text(second)) {
            case (nil, nil): return nil
            case (let one?, let two?): return (one, two)
            default:
                throw CallWords.Fault(text: "--\(first) and --\(second) need one another", command: words.command.name)
            }
        }
        let (folder, bucket) = (try pair("root", "path"), try pair("bucket", "prefix"))
        guard folder == nil || bucket == nil else {
            throw CallWords.Fault(text: "--root and --bucket exclude each other", command: words.command.name)
        }
        return FileSetPut {
            if let (root, path) = folder { $0.destination = .set(SetDestination(root: root, path: path)) }
            if let (bucket, prefix) = bucket { $0.destination = .set(SetDestination(bucket: bucket, prefix: prefix)) }
            $0.layout = words.text("layout").map { SetLayout(rawValue: $0) }
            $0.keep = words.number("keep")
            $0.grace = words.seconds("grace").map { Int64($0.rounded(.up)) }
        }
    }

    /// Prints a version, at its end with `--wait`.
    private static func end(_ call: Invocation, _ version: SetVersion) async throws {
        guard call.words.flag("wait") else { return try call.output.row(version, row) }
        var ended = try await SetWatch(call).follow(version)
        if ended.state == .superseded, let commit = ended.commit,
            try await call.client.set(ended.name).current?.version == commit
        {
            // The revision has not moved since its commit was published.
            ended = try await call.client.version(commit, ofSet: ended.name)
        }
        try call.output.row(ended, row)
        try check(ended)
    }

    /// - Throws: ``Failure`` for a version that is not published, whose failures were printed.
    static func check(_ version: SetVersion) throws(Failure) {
        guard version.state != .published else { return }
        Output.complain("version \(version.version) of \(version.name) is \(version.state)")
        failures(version).forEach { Output.complain($0) }
        throw Failure.silent(1)
    }
}
