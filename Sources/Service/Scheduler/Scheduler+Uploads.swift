import Base
import Core
import Store
import TransferEngine

/// Resumable uploads under way.
extension Scheduler {
    /// Takes a 104: from here on the upload survives an interruption, once that is stored.
    func noteInformational(_ exchange: ExchangeID, _ head: ResponseHead) {
        guard head.status == 104, let id = tasksOfExchanges[exchange], var transfer = transfers[id],
            var upload = transfer.upload
        else { return }
        let origin = transfer.requestURL.origin
        if let version = ResumableUpload.version(of: head.fields).flatMap(ResumableUpload.Version.init(rawValue:)) {
            uploadVersions.note(version, of: origin)
        }
        let resource = head.fields["Location"].flatMap { transfer.uploadResource(at: $0) }
        let isNew = upload.handle(informational: head, resource: resource)
        transfer.take(upload)
        transfers[id] = transfer
        if isNew { settlements.append(Settlement(task: id, .advanced(transfer.progress))) }
    }

    /// Remembers that an origin did not answer the draft's fields.
    func noteSilence(of transfer: Transfer, _ result: ExchangeResult) {
        guard let upload = transfer.upload, upload.step == .create, upload.resource == nil,
            result.head != nil || result.bytesSent > 0
        else { return }
        uploadVersions.noteSilence(to: upload.version, of: transfer.url.origin)
    }

    /// Has an upload begin anew, with what its origin is spoken to in now.
    func prepareUpload(of transfer: inout Transfer) {
        transfer.progress.uploadURL = nil
        transfer.progress.uploadOffset = nil
        transfer.prepareUpload(uploadVersions.version(for: transfer.url.origin))
    }

    /// Sends the next request of an upload, in the same attempt.
    func goOn(_ transfer: Transfer, _ upload: ResumableUpload) {
        var transfer = transfer
        let before = transfer.upload
        transfer.take(upload)
        switch upload.step {
        case .append(let offset): tellUpload(transfer, from: offset, cause: "interrupted")
        case .create: tellUpload(transfer, from: 0, cause: "uploadResourceGone")
        case .ask: if before?.resource != upload.resource { transfer.uploadMoves += 1 }
        case .abandon: break
        }
        start(transfer)
    }

    private func tellUpload(_ transfer: Transfer, from offset: Int64, cause: String) {
        settlements.append(
            Settlement(
                task: transfer.task.id, .advanced(transfer.progress),
                resumption: Resumption(
                    fileOffset: offset, expectedTotalBytes: transfer.upload?.length, cause: cause)))
    }

    /// Tells the server of a cancelled upload that it may forget its part: once, without waiting for the response.
    func abandonUpload(_ id: TaskID) {
        if transfers[id] != nil { abandonedUploads.insert(id) } else { untold.append(id) }
    }

    /// Starts deletions while there is room for them.
    func startDeletions() async {
        let room = room
        while agenda.withLock({ $0.takesDeletion(room) }), let task = untold.popFirst() { await delete(task) }
    }

    private func delete(_ id: TaskID) async {
        guard let task = try? await store.task(id), let progress = task.result?.progress,
            let length = task.specification.bodyLength, let session = try? await known(task.session)
        else { return }
        let body = BodyLocation(place: .bytes([]), length: length, digest: "")
        let claimed = ClaimedTask(
            id: id, session: task.session, app: task.app, number: task.number, lane: 0,
            specification: task.specification, progress: progress, body: body, resourceDeadline: nil)
        let transfer = try? Transfer(claimed, in: session, version: settings.version, node: store.node, at: clock.now)
        guard var transfer else { return }
        transfer.exchange = nextExchangeID()
        transfer.prepareUpload(.eight)
        // Never to the task's own URL.
        guard transfer.upload?.resource != nil else { return }
        transfer.upload?.abandon()
        try? await authorize(&transfer)
        var request = transfer.request(folder: folder, settings: settings, bandwidthLimit: nil)
        request.sink = .memory(limit: 4096)
        request.totalTimeout = .seconds(60)
        let lane = FairShare.Lane(
            app: task.app.rawValue, session: task.session.rawValue, host: transfer.url.origin, priority: 0, ready: 0,
            running: 1, limit: 1)
        agenda.withLock { $0.began(deletion: request.id, lane) }
        engine.start(request)
    }
}
