import Base
package import Core
import Files
import Formats
import Store
import TransferEngine
import Transfers

/// The resume data of a cancelled task, or the reason why there is none.
package enum ResumeOutcome: Sendable {
    case data(String)
    case notResumable(reason: String)
}

/// The content of a resume data token. Sealed, so that clients can keep it but not make it.
private struct ResumeToken: Shape {
    var version = 1
    /// In base64url.
    var nonce = ""
    var request = TransferRequest()
    var point = ResumePoint()
    var segments: SegmentRecord?
    var source = 0

    mutating func visit(_ members: inout some MemberVisitor) {
        members.member("version", &version)
        members.member("nonce", &nonce)
        members.member("request", &request)
        members.member("point", &point)
        members.optional("segments", &segments)
        members.sparse("source", &source, unless: 0)
    }
}

extension Service {
    private static let tokenContext = "resume-data/1"

    /// Cancels a download and returns the data with which another task can resume it.
    ///
    /// - Parameter revision: The required revision of the task, or nil.
    /// - Throws: ``DomainError/taskCompleted``, ``DomainError/revisionMismatch``.
    package func cancelProducingResumeData(
        _ task: TaskRecord, ifRevision revision: Int64? = nil
    ) async throws -> ResumeOutcome {
        guard task.state != .completed else { throw DomainError.taskCompleted }
        guard task.specification.kind == .download else {
            _ = try await command(.cancel(reason: nil), task: task.id, ifRevision: revision)
            return .notResumable(reason: "Only downloads can be resumed.")
        }
        guard task.specification.destinationObject == nil else {
            _ = try await command(.cancel(reason: nil), task: task.id, ifRevision: revision)
            return .notResumable(reason: "The content in a bucket cannot be transferred to another task.")
        }
        outlet.handle(try await store.tasks.hold(task.id, ifRevision: revision, at: clock.now))
        do {
            return try await cancelHeld(task)
        } catch {
            let reason = error
            do {
                outlet.handle(try await store.tasks.letGoOn(task.id, at: clock.now))
            } catch {
                // The next start of this node, or the takeover of its claims, resumes the task.
                log.warning(
                    "a task that could not be cancelled stays suspended", ("session", task.sessionIdentifier),
                    ("task", task.number), ("error", "\(error)"))
            }
            throw reason
        }
    }

    /// Cancels a suspended task and keeps its bytes, in one commit: a kill before the commit leaves the task with its
    /// bytes, and the next start resumes it.
    private func cancelHeld(_ task: TaskRecord) async throws -> ResumeOutcome {
        try await waitUntilStopped(task.id)
        let stopped = try await store.tasks.read(task.id)
        // The file stays where it is.
        guard let progress = stopped.progress, let point = progress.kept.point, progress.keptOffset > 0,
            let kept = try await keptBytes(of: stopped)
        else {
            _ = try await command(.cancel(reason: nil), task: task.id)
            return .notResumable(
                reason: stopped.progress?.hasPassedBytes == true
                    ? "The bytes are those of another task now, which waited for the same response."
                    : "There is no resume point: the origin sent no strong validator, or no bytes.")
        }
        let nonce = RandomBytes.make(16)
        outlet.handle(
            try await store.tasks.cancel(
                task.id, keeping: kept, length: progress.keptOffset, nonce: nonce, at: clock.now))
        hub.tasks.signal(task.id)
        let token = ResumeToken {
            $0.nonce = nonce.base64URL
            $0.request = task.specification.request
            $0.point = point
            $0.segments = progress.kept.segments
            $0.source = progress.kept.source
        }
        return .data(sealer.seal(token.bytesAtRest, boundTo: Self.tokenContext + "/\(task.app.rawValue)").base64URL)
    }

    /// Waits until a suspended task's transfer is released and stored, on any node, for ten seconds at most.
    private func waitUntilStopped(_ task: TaskID) async throws {
        await scheduler.waitUntilStopped(task)
        let deadline = clock.monotonic() + 10_000
        while clock.monotonic() < deadline, try await store.tasks.isTaken(task) {
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// The place of a task's bytes: its upload, the file that it was created to resume and has not adopted yet, or its
    /// own partial file.
    private func keptBytes(of task: TaskRecord) async throws -> KeptBytes? {
        if let upload = task.progress?.kept.parts { return upload.parts.isEmpty ? nil : .upload(upload) }
        for file in [task.progress?.adoptedFile, folder.partial(task.id.rawValue)] {
            if let file, try await folder.size(file) != nil { return .file(file) }
        }
        return nil
    }

    /// Opens resume data: the request that it belongs to, and the bytes to resume from. The commit that creates the
    /// task spends the data.
    ///
    /// - Throws: ``ServiceError/resumeDataInvalid(index:)``.
    func redeem(
        _ text: String, app: AppID, index: Int
    ) async throws -> (request: TransferRequest, progress: TaskProgress, nonce: [UInt8]) {
        guard let sealed = [UInt8](base64URL: text),
            let plain = try? sealer.open(sealed, boundTo: Self.tokenContext + "/\(app.rawValue)"),
            let token = try? ResumeToken(atRest: plain), token.version == 1, let nonce = [UInt8](base64URL: token.nonce)
        else { throw ServiceError.resumeDataInvalid(index: index) }
        let kept = try await store.tasks.kept(for: nonce, app: app, at: clock.now)
        let progress = try await progress(continuing: kept, token.point, token.segments, source: token.source)
        return (token.request, progress, nonce)
    }

    /// The progress of a new task that resumes from kept bytes: none if the bytes no longer exist.
    private func progress(
        continuing kept: KeptBytes?, _ point: ResumePoint, _ segments: SegmentRecord?, source: Int
    ) async throws -> TaskProgress {
        var progress = TaskProgress()
        switch kept {
        case nil: break
        case .upload(let upload):
            progress.kept = .parts(upload, point)
        case .file(let file):
            guard let size = try await folder.size(file) else { break }
            if size >= segments?.end ?? point.offset {
                progress.kept = Kept(point, segments, source: source)
                progress.adoptedFile = file
                progress.node = store.node
            } else {
                // A file shorter than its record is useless.
                try await folder.remove(file)
            }
        }
        return progress
    }

    /// The bytes that a failed or cancelled download has kept for its retry; nil if there are none. The commit that
    /// creates the retry spends them.
    func keptForRetry(of task: TaskRecord) async throws -> (progress: TaskProgress, nonce: [UInt8])? {
        guard task.outcome == .failed || task.outcome == .cancelled, task.specification.kind == .download else {
            return nil
        }
        let nonce = Store.Tasks.nonceOfRetry(task.id)
        let isStopping = await scheduler.isTransferring(task.id)
        guard isStopping || task.result?.progress.kept.point != nil else { return nil }
        let isKept = try await store.tasks.kept(for: nonce, app: task.app, at: clock.now) != nil
        guard isStopping || isKept else { return nil }
        // A transfer that was cancelled a moment ago may still write. Its settlement keeps what it has written.
        await scheduler.waitUntilStopped(task.id)
        guard await !scheduler.isTransferring(task.id),
            let kept = try await store.tasks.kept(for: nonce, app: task.app, at: clock.now),
            let last = try await store.tasks.read(task.id).result?.progress, let point = last.kept.point
        else { return nil }
        return (try await progress(continuing: kept, point, last.kept.segments, source: last.kept.source), nonce)
    }
}
