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

    /// Starts deletions while slots are free for them.
    func startDeletions() async {
        let room = room
        while agenda.withLock({ $0.takesDeletion(room) }), let task = uploads.untold.popFirst() { await delete(task) }
    }

    private func delete(_ id: TaskID) async {
        guard let task = try? await store.tasks.read(id), let progress = task.result?.progress,
            let length = task.specification.bodyLength, let session = try? await known(task.session)
        else { return }
        let body = BodyLocation(storage: .bytes([]), length: length, digest: "")
        let claimed = ClaimedTask(
            id: id, session: task.session, app: task.app, number: task.number, lane: 0,
            specification: task.specification, progress: progress, body: body, resourceDeadline: nil)
        let transfer = try? Transfer(claimed, in: session, version: settings.version, node: store.node, at: clock.now)
        guard var transfer else { return }
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
        let lane = FairShare.Lane(
            app: task.app.rawValue, session: task.session.rawValue, host: transfer.request.url.origin, priority: 0,
            ready: 0,
            running: 1, limit: 1)
        agenda.withLock { $0.began(deletion: request.id, lane) }
        engine.start(request)
    }
}
