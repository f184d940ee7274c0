import Base
import Core
import Store
import TransferEngine

/// Puts the bytes of a finished task where they belong: the database, the contents folder, or the task's destination.
///
/// Files are synced and renamed, and their folder synced, before the commit that tells of them.
struct ContentFinisher: Sendable {
    let disk: DiskQueue
    let folder: DataFolder
    let settings: ServiceSettings

    /// What a finished task leaves when no disk is needed; nil when one is.
    struct Ready {
        var value: NewContent?
    }

    func contentWithoutDisk(
        _ source: Judgement.ContentSource, _ specification: TaskSpecification, _ outcome: Outcome
    ) -> Ready? {
        switch source {
        case .none: return Ready(value: nil)
        case .bytes(let bytes, let digest) where !moves(specification, outcome):
            return Ready(
                value: NewContent(
                    place: .bytes(bytes), length: Int64(bytes.count),
                    digest: ContentDigest(algorithm: .sha256, value: digest.hexadecimal)))
        case .bytes, .partialFile, .existingFile: return nil
        }
    }

    private func moves(_ specification: TaskSpecification, _ outcome: Outcome) -> Bool {
        specification.destination != nil && outcome == .succeeded
    }

    /// Finishes with the help of the disk.
    ///
    /// - Throws: ``DiskError`` where the disk is full or broken: the bytes stay, and the task tries again.
    func finish(
        _ task: ClaimedTask, _ outcome: Outcome, _ result: TaskResult, _ source: Judgement.ContentSource
    ) async throws -> Settlement.Verdict {
        let partial = folder.absolute(folder.partial(task.id))
        var digest: [UInt8]
        let length: Int64
        switch source {
        case .none: return .completed(outcome, result, nil)
        case .bytes(let bytes, let value):
            try await disk.write(bytes, to: partial)
            (length, digest) = (Int64(bytes.count), value)
        case .partialFile(let count, let value): (length, digest) = (count, value)
        case .existingFile(let count):
            length = count
            digest = []
        }
        if digest.isEmpty {
            digest = try await disk.digest(partial).digests[.sha256] ?? []
            if let failure = mismatch(task.specification, digest) {
                return .completed(.failed, result.failing(with: failure), nil)
            }
        }
        let record = ContentDigest(algorithm: .sha256, value: digest.hexadecimal)
        if moves(task.specification, outcome), let destination = task.specification.destination {
            return try await move(partial, to: destination, task, result, length: length, digest: record)
        }
        let path = folder.content(task.id)
        try await disk.move(partial, to: folder.absolute(path), replace: true)
        return .completed(outcome, result, NewContent(place: .file(path), length: length, digest: record))
    }

    private func mismatch(_ specification: TaskSpecification, _ digest: [UInt8]) -> TaskError? {
        guard let expected = specification.expectedDigest, expected.algorithm == .sha256,
            expected.value != digest.hexadecimal
        else { return nil }
        return TaskError(
            .badServerResponse, "The content does not have the expected digest.",
            underlying: TaskError.Underlying(
                domain: "urlsessiond", code: "digest-mismatch",
                message: "expected \(expected.value), found \(digest.hexadecimal)"))
    }

    private func move(
        _ partial: String, to destination: Destination, _ task: ClaimedTask, _ result: TaskResult, length: Int64,
        digest: ContentDigest
    ) async throws -> Settlement.Verdict {
        guard let root = settings.filesRoots[destination.root] else {
            return .completed(.failed, result.failing(with: TaskError(.cannotCreateFile)), nil)
        }
        do {
            try await disk.moveBeneath(
                source: partial, root: root, path: destination.path, replace: destination.replace)
            return .completed(.succeeded, result, NewContent(place: .moved, length: length, digest: digest))
        } catch  where !error.isFull {
            let failure = TaskError(
                .cannotCreateFile,
                underlying: TaskError.Underlying(
                    domain: "urlsessiond", code: "destination", message: error.description))
            return .completed(.failed, result.failing(with: failure), nil)
        }
    }
}

extension TaskResult {
    func failing(with error: TaskError) -> TaskResult {
        var result = self
        result.error = error
        return result
    }
}
