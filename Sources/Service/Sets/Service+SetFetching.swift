import Base
import Core
import Files
import Formats
import Store
import Transfers

/// From the source of a version to its files.
extension Service {
    private static let tasksAtOnce = 500
    /// The maximum length of a list of files, and of a page of a hub's list, which is parsed as a whole.
    private static let (longestList, longestPage): (Int64, Int64) = (64 << 20, 16 << 20)
    /// The pause before tasks are created for which the app has no room yet.
    private static let pauseForRoom = Duration.seconds(5)

    // MARK: Lists

    /// Fetches the next document of a source, or adds the files of a fetched one.
    func expand(_ standing: SetVersionStanding) async throws {
        let version = standing.version
        guard let source = version.source else { return try await move(version.id, .listed) }
        var expansion = standing.expansion ?? SetExpansion(of: source)
        guard let number = standing.listTask else {
            if standing.expansion == nil, version.files.total > 0 { try await clear(version.id) }
            guard let url = expansion.next else { return try await fail(version.id, "The source has no list.") }
            return try await fetchList(url, standing)
        }
        let task = try await store.tasks.read(number)
        guard task.state == .completed else {
            return try await store.sets.waitForTasks(of: version.id)
        }
        guard task.outcome == .succeeded, let response = task.result?.response else {
            let status = task.result?.response.map { "The origin answered \($0.statusCode)." }
            let detail = task.result?.error?.localizedDescription ?? status ?? "The task was cancelled."
            return try await fail(version.id, "The list of files could not be fetched: \(detail)")
        }
        do {
            let document = try await listBytes(of: task)
            let files = try expansion.take(
                document, response.headers, from: response.url, for: source)
            try await add(files, expansion, standing)
        } catch let error as SetExpansionError {
            try await fail(version.id, error.detail)
        } catch let error as SetPathCollision {
            try await fail(version.id, "The list has \(error.path) and \(error.other).")
        } catch DomainError.contentExpired {
            try await fail(version.id, "The list was removed before it was read.")
        }
    }

    private func add(_ files: [SetFile], _ expansion: SetExpansion, _ standing: SetVersionStanding) async throws {
        let id = standing.version.id
        if expansion.isComplete, files.isEmpty, standing.version.files.total == 0 {
            return try await fail(id, "The source lists no files.")
        }
        // A long document is added in parts.
        var rest = files.dropFirst(standing.position)
        while rest.count > 1000 {
            try await store.sets.addPart(Array(rest.prefix(1000)), to: id)
            rest = rest.dropFirst(1000)
        }
        let aftermath = try await store.sets.add(Array(rest), expansion, to: id, at: clock.now)
        outlet.handle(aftermath)
    }

    /// Removes the files of a list that is fetched again.
    private func clear(_ version: SetVersionID) async throws {
        try await repeatStep { try await store.sets.clear(version, limit: Self.tasksAtOnce, at: clock.now) }
    }

    private func listBytes(of task: TaskRecord) async throws -> [UInt8] {
        let content = try await store.files.content(of: task.id)
        guard let storage = content.storage else { throw DomainError.contentExpired }
        let list = PublishedFile(
            path: "list", length: content.record.length, digest: content.record.digest, blobName: "", storage: storage)
        return try await publishedSources.read(list, 0..<content.record.length)
    }

    private func fetchList(_ url: String, _ standing: SetVersionStanding) async throws {
        var specification = TaskSpecification(kind: .download, request: TransferRequest(url: url, method: "GET"))
        specification.request.cachePolicy = .reloadIgnoringLocalCacheData
        specification.group = standing.version.publicId
        specification.taskDescription = "List of files of the set \(standing.set.name)"
        specification.priority = 1
        let isPage = standing.version.source?.kind == .huggingface
        specification.maximumContentLength = isPage ? Self.longestPage : Self.longestList
        try await create([(nil, specification)], standing)
    }

    // MARK: Files

    /// Creates the tasks of files that are not stored yet; with the last file, ends the fetching.
    func fetch(_ standing: SetVersionStanding) async throws {
        let version = standing.version
        guard standing.openFiles > 0 else {
            return version.failedFiles > 0 ? try await fail(version.id, nil) : try await move(version.id, .fetched)
        }
        let policy = standing.set.configuration.cachePolicy
        let revalidates = policy == .reloadRevalidatingCacheData || policy == .useProtocolCachePolicy
        while true {
            let (wanted, reused, aftermath) = try await store.sets.takeListed(
                version.id, revalidates: revalidates, limit: Self.tasksAtOnce, at: clock.now)
            outlet.handle(aftermath)
            if wanted.isEmpty {
                if reused > 0 { continue }
                break
            }
            guard try await create(wanted.map { ($0.file.path, specification(of: $0, standing)) }, standing) else {
                return
            }
        }
        try await store.sets.waitForTasks(of: version.id, until: try await placeFetched(standing))
    }

    private func specification(of wanted: WantedSetFile, _ standing: SetVersionStanding) -> TaskSpecification {
        let file = wanted.file
        var specification = TaskSpecification(kind: .download, request: file.request)
        if specification.request.cachePolicy == nil {
            specification.request.cachePolicy = standing.set.configuration.cachePolicy
        }
        specification.group = standing.version.publicId
        specification.taskDescription = file.path
        specification.expectedDigest = file.expectedDigest.flatMap { digest in
            DigestAlgorithm(rawValue: digest.algorithm.rawValue).map {
                ContentDigest(algorithm: $0, value: digest.value)
            }
        }
        specification.maximumContentLength = file.length.map { max(1, $0) }
        specification.countOfBytesClientExpectsToReceive = file.length
        specification.ifNoneMatch = wanted.validator?.entityTag
        specification.ifModifiedSince = wanted.validator?.lastModified
        return specification
    }

    /// Creates tasks of a version, as many as the app has room for.
    ///
    /// - Returns: False if the step ends here: the version has ended, or the rest is created later.
    @discardableResult
    private func create(
        _ tasks: [(path: String?, specification: TaskSpecification)], _ standing: SetVersionStanding
    ) async throws -> Bool {
        let version = standing.version
        let session: SessionRecord
        do {
            session = try await store.sessions.read(version.session)
        } catch DomainError.notFound {
            try await move(version.id, .cancel)
            return false
        }
        var new: [(path: String?, task: NewTask)] = []
        for (path, specification) in tasks {
            let order = TaskOrder(specification: specification, isSuspended: false)
            do {
                new.append((path, try await newTask(of: order, index: new.count, in: session)))
            } catch let error as ServiceError {
                let place = path.map { "\($0): " } ?? ""
                try await fail(version.id, "\(place)\(error)")
                return false
            }
        }
        let app = try await store.apps.read(session.app)
        func create(_ some: [(path: String?, task: NewTask)]) async throws {
            let (created, aftermath) = try await store.sets.createTasks(
                some, of: version.id, in: session.id, limit: app.limits.maximumUnfinishedTasks,
                storedLimit: app.limits.maximumStoredBytes, at: clock.now)
            outlet.handle(aftermath)
            tell(of: created, in: session, of: app)
        }
        do {
            try await create(new)
            return true
        } catch DomainError.tooManyTasks(_, let index) {
            if index > 0 { try await create(Array(new.prefix(index))) }
            try await store.sets.postpone(version, until: clock.now + Self.pauseForRoom)
        } catch DomainError.storedBytesExceeded {
            try await fail(version.id, "The app has no room for more stored bytes.")
        } catch DomainError.sessionInvalidated {
            try await fail(version.id, "The session was invalidated.")
        }
        return false
    }

    // MARK: Verification

    private static let pieceLength: Int64 = 1 << 20

    /// Verifies what no task has verified: digests of Git, and files that have other digests than the listed ones.
    func verify(_ standing: SetVersionStanding) async throws {
        let id = standing.version.id
        if standing.isOvertaken { return try await move(id, .overtaken) }
        var after = ""
        // A verification that was interrupted may have refused files already.
        var hasFailed = standing.version.failedFiles > 0
        while true {
            let files = try await store.sets.keptFiles(
                of: id, after: after, limit: Self.tasksAtOnce, isUnverified: true)
            guard let last = files.last else { break }
            after = last.file.path
            var failures: [(path: String, detail: String)] = []
            for file in files {
                guard let detail = try await mismatch(of: file) else { continue }
                failures.append((file.file.path, detail))
            }
            guard !failures.isEmpty else { continue }
            hasFailed = true
            outlet.handle(try await store.sets.fail(failures, of: id, at: clock.now))
        }
        if hasFailed { try await fail(id, nil) } else { try await move(id, .verified) }
    }

    /// Why a file is not the listed one; nil if it is.
    private func mismatch(of file: KeptSetFile) async throws -> String? {
        guard let expected = file.file.expectedDigest else { return nil }
        if expected.algorithm.rawValue == file.file.digest.algorithm.rawValue {
            return expected.value == file.file.digest.value ? nil : "The file does not have the listed digest."
        }
        var digest = RunningSetDigest(expected.algorithm, length: file.file.length)
        let (published, length) = (PublishedFile(file), file.file.length)
        for offset in stride(from: 0, to: length, by: Int(Self.pieceLength)) {
            digest.update(
                try await publishedSources.read(published, offset..<min(length, offset + Self.pieceLength)))
        }
        return digest.finish() == expected.value ? nil : "The file does not have the listed digest."
    }
}

/// The digest of a file that is read piece by piece.
private enum RunningSetDigest {
    case known(Digest)
    case git(GitBlobDigest)

    init(_ algorithm: SetDigestAlgorithm, length: Int64) {
        // Tasks do not know Git's digest.
        self =
            DigestAlgorithm(rawValue: algorithm.rawValue).map { .known(Digest($0)) }
            ?? .git(GitBlobDigest(length: length))
    }

    mutating func update(_ bytes: [UInt8]) {
        switch self {
        case .known(let digest): digest.update(bytes)
        case .git(var digest):
            digest.update(bytes)
            self = .git(digest)
        }
    }

    /// In lower-case hexadecimal.
    func finish() -> String {
        switch self {
        case .known(let digest): digest.finish().hexadecimal
        case .git(let digest): digest.finish().hexadecimal
        }
    }
}
