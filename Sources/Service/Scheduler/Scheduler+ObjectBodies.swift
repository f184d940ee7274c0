import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

/// Bodies that are objects in buckets.
extension Scheduler {
    /// Fetches the object that a task sends, and makes it the task's body. Then the task goes back to the queue.
    ///
    /// A kill begins the fetch anew.
    func fetchBody(of id: TaskID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard let transfer = transfers[id], let object = transfer.specification.bodyObject else { return }
        let interrupted = Settlement(task: id, .interrupted(transfer.progress))
        guard transfer.stopReason == nil else { return settle(interrupted, transfer) }
        guard let client = settings.buckets[object.bucket] else {
            return settle(.source(.isGone(object.bucket)), transfer)
        }
        let exchange = client.nextID()
        transfers[id]?.fetching = (client, exchange)
        let (now, jitter) = (clock.now, Double.random(in: 0..<1))
        group.addTask { [self] in
            var settlement = interrupted
            do {
                try await fetch(object, for: transfer.task, client, exchange)
            } catch {
                let fault = (error as? BucketFault).map(LocalFault.source) ?? LocalFault(storing: error)
                if await transfers[id]?.stopReason == nil {
                    log.of(transfer.name).warning("the body could not be fetched", ("error", "\(error)"))
                    var result = TaskResult(progress: transfer.progress)
                    result.progress.attempts.attempts += 1
                    settlement.verdict = verdict(after: fault, result, of: transfer, jitter, at: now)
                }
            }
            inbox.tell(.settled(settlement))
        }
    }

    private nonisolated func fetch(
        _ object: ObjectReference, for task: ClaimedTask, _ client: BucketClient, _ exchange: ExchangeID
    ) async throws {
        let folder = folder.of(task.app.rawValue)
        let publicId = Identifier.make(prefix: "body_")
        let staged = folder.stage(folder.body(publicId))
        let room = engine.room
        let result = try await client.get(
            object, as: exchange, to: folder.absolute(staged.path), maximumLength: settings.maximumBodyLength,
            mayTake: { room.fits($0) })
        let digest = result.digests[.sha256]?.hexadecimal ?? ""
        switch result.received {
        case .memory(let bytes):
            _ = try await store.attach(.bytes(bytes, mediaType: nil, publicId: publicId), to: task.id, at: clock.now)
        case .file(_, let length):
            if let contents = settings.contents {
                let file = try await folder.open(staged.path)
                let object = try await contents.put(
                    file, as: contents.newKey(ofBody: publicId), store, folder.disk)
                let body = NewTask.Body.objects([object], digest: digest, mediaType: nil, publicId: publicId)
                _ = try await store.attach(body, to: task.id, at: clock.now)
                return
            }
            try await staged.syncFolder()
            let body = NewTask.Body.file(staged.path, length: length, digest: digest, publicId: publicId)
            if try await store.attach(body, to: task.id, at: clock.now) { staged.adopt() }
        case .none, .parts: throw BucketFault.unexpected("The store sent no object.")
        }
    }
}
