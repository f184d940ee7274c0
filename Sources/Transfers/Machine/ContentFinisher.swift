import Base
import Core
import Files
import Formats
import Glibc
import Store
import TransferEngine

/// Puts the bytes of a finished task in their place: the database, the contents folder, or the task's destination.
///
/// Files are synced and renamed, and their folder is synced, before the commit that refers to them.
struct ContentFinisher: Sendable {
    let store: Store
    let folder: DataFolder
    let settings: ServiceSettings
    let log: Log

    /// Finishes a task whose content needs no disk; nil if it needs one.
    func verdictWithoutDisk(
        _ specification: TaskSpecification, _ outcome: Outcome, _ result: TaskResult, _ source: Judgement.ContentSource
    ) -> Settlement.Verdict? {
        switch source {
        case .none: return .completed(outcome, result, nil)
        case .bytes(let bytes, let digest) where !moves(specification, outcome):
            let content = NewContent(
                storage: .bytes(bytes), length: Int64(bytes.count),
                digest: ContentDigest(algorithm: .sha256, value: digest.hexadecimal))
            return .completed(outcome, result, content)
        case .bytes, .partialFile, .existingFile, .object, .stored: return nil
        }
    }

    private func moves(_ specification: TaskSpecification, _ outcome: Outcome) -> Bool {
        specification.destination != nil && outcome == .succeeded
    }

    /// Finishes a task whose content is on disk or goes there.
    ///
    /// - Throws: ``SystemError`` if a disk is full or broken: the bytes stay, and the task is retried a limited number
    ///   of times. ``DigestMismatch`` if the content is not the expected one.
    func finish(
        _ task: ClaimedTask, _ outcome: Outcome, _ result: TaskResult, _ source: Judgement.ContentSource
    ) async throws -> Settlement.Verdict {
        let partial = folder.partial(task.id.rawValue)
        var digest: [UInt8]
        let length: Int64
        switch source {
        case .none: return .completed(outcome, result, nil)
        case .bytes(let bytes, let value):
            try await folder.write(bytes, to: partial)
            (length, digest) = (Int64(bytes.count), value)
        case .partialFile(let count, let value): (length, digest) = (count, value)
        case .existingFile(let count):
            length = count
            digest = []
        // An object is already in its bucket; ``ObjectFinisher`` finishes it.
        case .object: return .interrupted(task.progress)
        case .stored(let stored):
            return try await finish(task, outcome, result, stored)
        }
        if digest.isEmpty { digest = try await checkedDigest(of: partial, length, task.specification) }
        let record = ContentDigest(algorithm: .sha256, value: digest.hexadecimal)
        if moves(task.specification, outcome), let destination = task.specification.destination {
            return try await move(partial, to: destination, task, result, length: length, digest: record)
        }
        if let contents = settings.contents {
            let storage = try await putObject(partialOf: task, into: contents)
            return .completed(outcome, result, NewContent(storage: storage, length: length, digest: record))
        }
        let path = folder.content(task.id.rawValue)
        try await folder.move(partial, to: path)
        let content = NewContent(
            storage: .file(path), length: length, digest: record,
            replacing: try await lostFile(of: record, length, task, but: path))
        return .completed(outcome, result, content)
    }

    /// The file in which the app's rows have the same bytes, if it is gone: a restored database names files that no
    /// backup has.
    private func lostFile(
        of digest: ContentDigest, _ length: Int64, _ task: ClaimedTask, but own: String
    ) async throws -> String? {
        let known: String?
        do {
            known = try await store.files.file(of: digest.value, for: task.id)
        } catch {
            // A failed read costs no transfer: a later task finds the file lost.
            log.warning("it is not known whether a file is lost", ("error", "\(error)"))
            return nil
        }
        guard let known, known != own else { return nil }
        return try await folder.size(known) == length ? nil : known
    }

    /// Finishes a task with bytes that are stored for another one. A destination gets a copy of them.
    private func finish(
        _ task: ClaimedTask, _ outcome: Outcome, _ result: TaskResult, _ stored: StoredResponse
    ) async throws -> Settlement.Verdict {
        let digest = ContentDigest(algorithm: .sha256, value: stored.digest)
        if case .file(let path) = stored.storage, try await folder.size(path) != stored.length {
            return .interrupted(task.progress.avoidingCache)
        }
        if outcome == .succeeded, let expected = task.specification.expectedDigest {
            let found = try await self.digest(of: stored, expected.algorithm)
            guard found == expected.value else {
                throw DigestMismatch(message: "expected \(expected.value), found \(found)")
            }
        }
        guard moves(task.specification, outcome), let destination = task.specification.destination else {
            return .completed(
                outcome, result, NewContent(storage: .cached(stored.row), length: stored.length, digest: digest))
        }
        let partial = folder.partial(task.id.rawValue)
        switch stored.storage {
        case .bytes(let bytes): try await folder.write(bytes, to: partial)
        case .file(let path): try await folder.copy(path, to: partial)
        // The machine serves no such task with an object.
        case .objects: return .interrupted(task.progress.avoidingCache)
        }
        return try await move(partial, to: destination, task, result, length: stored.length, digest: digest)
    }

    private func digest(of stored: StoredResponse, _ algorithm: DigestAlgorithm) async throws -> String {
        switch stored.storage {
        case _ where algorithm == .sha256: stored.digest
        case .bytes(let bytes): Digest.of(bytes, algorithm).hexadecimal
        case .file(let path): try await folder.digest(path, [algorithm])[algorithm]?.hexadecimal ?? ""
        case .objects: ""
        }
    }

    /// A content for other tasks than the one that received it: a copy if the content is moved to a destination.
    ///
    /// - Returns: Nil if the task's own content serves the others.
    func contentForOthers(
        _ task: ClaimedTask, _ outcome: Outcome, _ source: Judgement.ContentSource, isOnlyForOthers: Bool
    ) async throws -> NewContent? {
        guard isOnlyForOthers || moves(task.specification, outcome) else { return nil }
        switch source {
        case .bytes(let bytes, let digest):
            return NewContent(
                storage: .bytes(bytes), length: Int64(bytes.count),
                digest: ContentDigest(algorithm: .sha256, value: digest.hexadecimal))
        case .partialFile(let length, let digest) where !digest.isEmpty:
            return NewContent(
                storage: try await store(partialOf: task, isOnlyForOthers: isOnlyForOthers), length: length,
                digest: ContentDigest(algorithm: .sha256, value: digest.hexadecimal))
        case .stored(let stored):
            return NewContent(
                storage: .cached(stored.row), length: stored.length,
                digest: ContentDigest(algorithm: .sha256, value: stored.digest))
        case .none, .existingFile, .partialFile, .object: return nil
        }
    }

    /// Stores the bytes of a partial file where the service keeps its contents.
    private func store(partialOf task: ClaimedTask, isOnlyForOthers: Bool) async throws -> NewContent.Storage {
        let partial = folder.partial(task.id.rawValue)
        guard let contents = settings.contents else {
            let shared = folder.sharedContent(task.id.rawValue)
            if isOnlyForOthers {
                try await folder.move(partial, to: shared)
            } else {
                try await folder.copy(partial, to: shared)
            }
            return .file(shared)
        }
        let storage = try await putObject(partialOf: task, into: contents)
        if isOnlyForOthers { try await folder.remove(partial) }
        return storage
    }

    private func putObject(
        partialOf task: ClaimedTask, into contents: ContentsBucket
    ) async throws -> NewContent.Storage {
        let object = try await contents.put(
            folder.open(folder.partial(task.id.rawValue)), as: contents.newKey(of: task.id), for: task.app,
            of: task.id, store, folder.disk)
        return .object(object.key)
    }

    /// Removes a content that no commit will refer to, because its task has failed.
    func discard(contentForOthers content: NewContent) async throws {
        // An object has a row, with which it is removed.
        if case .file(let path) = content.storage { try await folder.remove(path) }
    }

    /// The SHA-256 of a file that was complete before the response came.
    ///
    /// - Throws: ``DigestMismatch`` if the app expects another digest, by any algorithm.
    private func checkedDigest(
        of path: String, _ length: Int64, _ specification: TaskSpecification
    ) async throws -> [UInt8] {
        let expected = specification.expectedDigest
        let reader = ContentReader(
            folder.absolute(path), folder.disk, total: length, specification.digestsWanted, specification.pieces)
        if let piece = try await reader.read(to: length) {
            throw DigestMismatch(message: "the piece at \(piece.lowerBound) has another digest")
        }
        let digests = reader.finish()
        if let expected, let found = digests[expected.algorithm]?.hexadecimal, found != expected.value {
            throw DigestMismatch(message: "expected \(expected.value), found \(found)")
        }
        return digests[.sha256] ?? []
    }

    /// Commits the planned move before it moves the content: a start after a crash recognises its own file.
    private func move(
        _ partial: String, to destination: Destination, _ task: ClaimedTask, _ result: TaskResult, length: Int64,
        digest: ContentDigest
    ) async throws -> Settlement.Verdict {
        guard let root = settings.filesRoots[destination.root] else {
            return .completed(.failed, result.failing(with: TaskError(.cannotCreateFile)), nil)
        }
        let inode = try await folder.open(partial).inode()
        let plan = PlannedMove {
            $0.destination = destination
            $0.temporaryPath = Self.temporaryPath(beside: destination.path)
            $0.length = length
            $0.digest = digest
            $0.inode = inode
            $0.result = result
        }
        do {
            // The task was cancelled meanwhile: nothing of this attempt is stored.
            guard try await move(partial, by: plan, below: root, of: task) else {
                return .interrupted(task.progress)
            }
            return .completed(.succeeded, result, plan.content)
        } catch {
            await removeCopy(of: plan, below: root)
            guard let error = error as? SystemError, !error.isFull, !error.isOfMachine else { throw error }
            let failure = TaskError(
                .cannotCreateFile,
                underlying: TaskError.Underlying(
                    domain: "urlsessiond", code: "destination", message: error.description))
            return .completed(.failed, result.failing(with: failure), nil)
        }
    }

    /// Moves a file by a plan, as a copy if the root is on another filesystem.
    ///
    /// Once a plan is stored, a cancel waits for the outcome of the move, unless the content is still being copied: a
    /// cancelled task replaces no file.
    ///
    /// - Returns: False if the task ended before the move: the destination is unchanged.
    private func move(
        _ partial: String, by plan: PlannedMove, below root: String, of task: ClaimedTask
    ) async throws -> Bool {
        var plan = plan
        let (source, destination, disk) = (folder.absolute(partial), plan.destination, folder.disk)
        guard try await store.files.plan(plan, of: task.id, for: task.specification.request) else { return false }
        let isMoved = try await disk.moveBeneath(
            source: source, root: root, path: destination.path, replace: destination.replace)
        if isMoved {
            await syncName(of: destination, below: root)
            return true
        }
        plan.isCopying = true
        guard try await store.files.plan(plan, of: task.id, for: task.specification.request) else { return false }
        let copy = plan.temporaryPath
        plan.inode = try await disk.copyBeneath(source: source, root: root, path: copy)
        plan.isCopying = false
        guard try await store.files.plan(plan, of: task.id, for: task.specification.request) else {
            try await disk.removeBeneath(root: root, path: copy)
            return false
        }
        try await disk.renameBeneath(root: root, from: copy, to: destination.path, replace: destination.replace)
        await syncName(of: destination, below: root)
        // If this fails, the next start removes the file.
        try? await folder.remove(partial)
        return true
    }

    /// Makes the name of a published file durable. If this fails, the task still succeeds: the move is made, and
    /// may have replaced a file. A repeated sync has no value, because the kernel reports a failure once (fsync(2)).
    private func syncName(of destination: Destination, below root: String) async {
        do throws(SystemError) {
            try await folder.disk.syncBeneath(root: root, path: destination.path)
        } catch {
            log.error(
                "a file is at its destination, and its folder could not be synced: a power cut may undo the move",
                ("root", destination.root), ("error", error))
        }
    }

    /// Removes the unfinished copy of a move, if it exists.
    private func removeCopy(of plan: PlannedMove, below root: String) async {
        do throws(SystemError) {
            try await folder.disk.removeBeneath(root: root, path: plan.temporaryPath)
        } catch {
            log.warning(
                "a temporary file may be left beside its destination", ("root", plan.destination.root),
                ("error", error))
        }
    }

    private static func temporaryPath(beside path: String) -> String {
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[...$0] } ?? ""
        return "\(folder).urlsessiond-\(RandomBytes.make(8).hexadecimal)"
    }

    // MARK: After a crash

    /// Ends the tasks whose content is already at its destination although no commit refers to it, and removes
    /// unfinished copies. Runs before any task is claimed.
    func finishInterruptedMoves(at now: Timestamp) async throws -> Aftermath {
        var settlements: [Settlement] = []
        for (task, move) in try await store.files.plannedMoves() {
            guard let root = settings.filesRoots[move.destination.root] else { continue }
            if !move.isOutdated, await isMade(move, root: root) {
                settlements.append(
                    Settlement(
                        task: task, .completed(.succeeded, move.result, move.content), leavesPartialFile: true))
            }
            await removeCopy(of: move, below: root)
        }
        let aftermath = settlements.isEmpty ? Aftermath() : try await store.tasks.settle(settlements, at: now)
        try await store.files.forgetPlannedMoves()
        return aftermath
    }

    /// The maximum number of reads of a file at a destination, if the machine is at fault.
    private static let mostReads = 3

    /// Whether the file at a destination is the planned one, byte for byte. An unreadable file is not: its task
    /// restarts, and may find its own file at the destination.
    private func isMade(_ move: PlannedMove, root: String) async -> Bool {
        for _ in 0..<Self.mostReads {
            do throws(SystemError) {
                let file = try await folder.disk.openBeneath(root: root, path: move.destination.path)
                guard try file.inode() == move.inode, try file.size() == move.length else { return false }
                return try await folder.disk.digest(file).digests[.sha256]?.hexadecimal == move.digest.value
            } catch {
                guard error.isOfMachine else { return false }
                log.error(
                    "a file at its destination cannot be read after a crash", ("root", move.destination.root),
                    ("error", error))
            }
        }
        return false
    }
}

extension PlannedMove {
    fileprivate var content: NewContent { NewContent(storage: .moved, length: length, digest: digest) }
}

/// The digest of the content is not the expected one.
struct DigestMismatch: Error, Hashable {
    /// Both digests.
    let message: String

    func error(at url: String) -> TaskError {
        TaskError(
            .badServerResponse, "The content does not have the expected digest.", failingURL: url,
            underlying: TaskError.Underlying(domain: "urlsessiond", code: "digest-mismatch", message: message))
    }
}

extension TaskResult {
    func failing(with error: TaskError) -> TaskResult {
        var result = self
        result.error = error
        return result
    }
}
