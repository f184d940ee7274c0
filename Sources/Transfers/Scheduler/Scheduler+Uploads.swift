import Base
import Core
import Files
import Store
import TransferEngine

/// Resumable uploads in flight.
extension Scheduler {
    /// Asks the server to delete a cancelled upload: once, without waiting for the response.
    func abandonUpload(_ id: TaskID) {
        if flights[id] != nil { uploads.abandoned.insert(id) } else { uploads.untold.append(id) }
    }

    /// The maximum number of deleted uploads in memory.
    private static let maximumDeleted = 1000

    /// Asks the servers to delete the uploads of deleted tasks. Uploads beyond the maximum are left to their servers,
    /// which discard them at the end of their own retention.
    func abandon(_ deleted: [AbandonedUpload]) {
        uploads.deleted += deleted.prefix(max(0, Self.maximumDeleted - uploads.deleted.count))
    }

    /// Starts deletions while slots are free for them.
    func startDeletions() async {
        let room = room
        while agenda.withLock({ $0.takesDeletion(room) }) {
            let deleted = uploads.untold.isEmpty ? nextDeleted() : nil
            guard let task = uploads.untold.popFirst() ?? deleted?.task.id else { return }
            do {
                if let deleted { try await delete(deleted) } else { try await delete(task) }
            } catch {
                log.info("an upload resource could not be deleted", ("row", task.rawValue), ("error", "\(error)"))
            }
        }
    }

    /// The next upload of a deleted task that has no exchange in flight.
    private func nextDeleted() -> AbandonedUpload? {
        uploads.deleted.firstIndex { flights[$0.task.id] == nil }.map { uploads.deleted.remove(at: $0) }
    }

    private func delete(_ upload: AbandonedUpload) async throws {
        let session = KnownSession(
            configuration: upload.configuration, app: upload.appIdentifier, identifier: upload.sessionIdentifier)
        try await delete(upload.task, in: session)
    }

    private func delete(_ id: TaskID) async throws {
        let task = try await store.tasks.read(id)
        guard let progress = task.result?.progress, let length = task.specification.bodyLength else { return }
        let body = BodyLocation(storage: .bytes([]), length: length, digest: "")
        let claimed = ClaimedTask(
            id: id, session: task.session, app: task.app, number: task.number, lane: 0,
            specification: task.specification, progress: progress, body: body, resourceDeadline: nil)
        try await delete(claimed, in: try await known(task.session))
    }

    private func delete(_ task: ClaimedTask, in session: KnownSession) async throws {
        var transfer = try Transfer(task, in: session, version: settings.version, node: store.node, at: clock.now)
        transfer.prepareUpload(.eight)
        // A deletion is never sent to the task's own URL.
        guard transfer.attempt.upload?.resource != nil else { return }
        transfer.attempt.upload?.abandon()
        if let found = try? await access(for: transfer) { transfer.adopt(found) }
        let resources = Transfer.Resources(
            folder: folder, settings: settings, sync: SharedSync(), arrival: Arrival(), cookies: nil,
            bandwidthLimit: nil)
        var request = transfer.exchangeRequest(exchanges.take(), resources)
        request.sink = .memory(limit: 4096)
        request.totalTimeout = .seconds(60)
        var lane = lane(of: transfer, at: transfer.request.url.origin)
        lane.limit = 1
        agenda.withLock { $0.began(deletion: request.id, lane) }
        engine.start(request)
    }
}
