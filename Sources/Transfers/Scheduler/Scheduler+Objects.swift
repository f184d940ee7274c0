import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

/// Contents that become objects in buckets while they arrive, and bodies that are objects.
extension Scheduler {
    /// Checks that the operator still configures the buckets that a task names.
    func checkBuckets(of specification: TaskSpecification) throws(BucketFault) {
        let names = [
            specification.request.object?.bucket, specification.bodyObject?.bucket,
            specification.destinationObject?.bucket,
        ]
        for case let name? in names where settings.buckets[name] == nil { throw .isGone(name) }
    }

    /// The URL of the object that a task requests; nil for a task with a URL.
    func target(of task: ClaimedTask) -> ParsedURL? {
        task.specification.request.object.flatMap { settings.target(of: $0)?.url }
    }

    // MARK: Into a bucket

    /// The writer of the current request's content, which begins with the first part.
    func writer(of transfer: Transfer) -> ObjectWriter? {
        let (id, inbox) = (transfer.id, inbox)
        if let writer = flights[id]?.writer { return writer }
        let isNew = transfer.becomesContent
        guard let exchange = transfer.exchange,
            let destination = transfer.knownDestination
                ?? (isNew ? settings.contents.map { ObjectDestination(content: $0.newKey(of: id)) } : nil),
            let client = settings.client(of: destination.bucket)
        else { return nil }
        let writer = ObjectWriter(
            of: id, to: destination, client, mediaType: transfer.attempt.mediaType, store: store,
            disk: engine.disk.of(transfer.task.app.rawValue), clock: clock, log: log.of(transfer.name)
        ) { inbox.tell(.event(id, Incident(.wrote(exchange, $0)))) }
        flights[id]?.writer = writer
        if flights[id]?.isExposed == true, let response = transfer.attempt.response { writer.expose(response) }
        let (upload, algorithms) = (transfer.progress.kept.parts, transfer.specification.digestsWanted)
        turn.errands.append { await writer.run(goingOnWith: upload, algorithms) }
        return writer
    }

    /// Completes the object from the content in the bucket.
    func makeObject(_ finish: Transfer.Finish, _ length: Int64, _ digest: [UInt8], _ transfer: Transfer) async {
        let digest = ContentDigest(algorithm: .sha256, value: digest.hexadecimal)
        let (outcome, taskResult) = (finish.outcome, finish.taskResult)
        let settlement = finish.settlement(of: transfer.id)
        if let single = finish.written?.single {
            return await finishObject(transfer, taskResult, settlement, finish.sharing) { finisher in
                .completed(outcome, taskResult, try await finisher.write(single, digest: digest))
            }
        }
        var whole = MultipartUpload.Whole()
        (whole.length, whole.digest, whole.response, whole.outcome) = (length, digest, taskResult.response, outcome)
        var transfer = transfer
        if var upload = finish.written?.upload {
            upload.whole = whole
            // An object with the first parts has the mark already.
            if upload.readable != nil { upload.mark = ObjectWriter.newMark() }
            transfer.progress.kept = .parts(upload, transfer.progress.kept.point)
        }
        transfer.progress.bytesInMemory = 0
        let progress = transfer.progress
        await finishObject(transfer, taskResult, settlement, finish.sharing) { [whole] finisher in
            guard let upload = progress.kept.parts, upload.whole != nil else {
                throw BucketFault.unexpected("No part of the content was written.")
            }
            // Stored before, so that a start after a crash does not fetch everything again.
            guard try await finisher.store.tasks.keep(progress, of: finisher.task.id) else {
                return .interrupted(progress)
            }
            return .completed(outcome, taskResult, try await finisher.complete(upload, whole, mayBeDone: false))
        }
    }

    /// Completes the object from the parts that an earlier attempt has uploaded.
    func completeObject(_ transfer: Transfer) async {
        guard let upload = transfer.progress.kept.parts, let whole = upload.whole else { return }
        var result = TaskResult(progress: transfer.progress)
        result.progress.forgetBytes()
        result.response = whole.response
        await finishObject(transfer, result, Settlement(task: transfer.id, .interrupted(transfer.progress))) {
            [result] finisher in
            .completed(whole.outcome, result, try await finisher.complete(upload, whole, mayBeDone: true))
        }
    }

    private func finishObject(
        _ transfer: Transfer, _ taskResult: TaskResult, _ settlement: Settlement, _ sharing: Sharing? = nil,
        _ body: @escaping @Sendable (ObjectFinisher) async throws -> Settlement.Verdict
    ) async {
        let flight = flights[transfer.id]
        guard
            let destination = transfer.specification.destinationObject ?? flight?.writer?.destination
                ?? transfer.knownDestination, let client = settings.client(of: destination.bucket),
            let decided = flight?.decided
        else { return await feed(.failed(.bucket(.isGone(transfer))), to: transfer.id) }
        let finisher = ObjectFinisher(
            client: client, store: store, task: transfer.task, destination: destination,
            mediaType: transfer.attempt.mediaType, clock: clock)
        var unfinished = taskResult
        unfinished.progress = transfer.progress
        unfinished.progress.attempts = taskResult.progress.attempts
        let (now, jitter) = (clock.now, Double.random(in: 0..<1))
        turn.errands.append { [self, unfinished] in
            var settlement = settlement
            do {
                let made = try await finisher.unlessCompleted(decided) { try await body(finisher) }
                settlement.verdict = made ?? .interrupted(unfinished.progress)
                settlement.landing = sharing?.landing(of: settlement.verdict)
            } catch {
                log.of(transfer.name).warning("the object could not be created", ("error", "\(error)"))
                let fault = LocalFault(storing: error, in: destination)
                // A store that is away is no fault of the task, whose parts wait for it uncharged.
                settlement.verdict =
                    Store.Obstacle(error) == nil || transfer.progress.kept.parts?.whole == nil
                    ? verdict(after: fault, unfinished, of: transfer, jitter, at: now)
                    : .retry(at: now + .seconds(5), waitsForConnectivity: false, transfer.progress)
            }
            inbox.tell(.settled(settlement))
        }
    }

    // MARK: Bodies

    /// Fetches the object that a task sends, and makes it the task's body. The task is then requeued.
    ///
    /// A kill restarts the fetch.
    func fetchBody(of transfer: Transfer) async {
        guard let object = transfer.specification.bodyObject else { return }
        guard let client = settings.buckets[object.bucket] else {
            return await feed(.failed(.source(.isGone(object.bucket))), to: transfer.id)
        }
        let exchange = client.nextID()
        flights[transfer.id]?.fetching = (client, exchange)
        turn.errands.append { [self] in
            do {
                try await fetch(object, for: transfer.task, client, exchange)
                inbox.tell(.settled(Settlement(task: transfer.id, .interrupted(transfer.progress))))
            } catch {
                let fault = (error as? BucketFault).map(LocalFault.source) ?? LocalFault(storing: error)
                inbox.tell(.event(transfer.id, Incident(.failed(fault))))
            }
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
            _ = try await store.files.attach(
                .bytes(bytes, mediaType: nil, publicId: publicId), to: task.id, at: clock.now)
        case .file(_, let length):
            if let contents = settings.contents {
                let file = try await folder.open(staged.path)
                let object = try await contents.put(
                    file, as: contents.newKey(ofBody: publicId), for: task.app, store, folder.disk)
                let body = NewTask.Body.objects([object], digest: digest, mediaType: nil, publicId: publicId)
                _ = try await store.files.attach(body, to: task.id, at: clock.now)
                return
            }
            try await staged.syncFolder()
            let body = NewTask.Body.file(staged.path, length: length, digest: digest, publicId: publicId)
            if try await store.files.attach(body, to: task.id, at: clock.now) { staged.adopt() }
        case .none, .parts: throw BucketFault.unexpected("The store sent no object.")
        }
    }
}

extension BucketFault {
    static func isGone(_ transfer: Transfer) -> BucketFault {
        .isGone(transfer.knownDestination?.bucket ?? Store.Files.contentsBucket)
    }

    /// The operator has removed a bucket from the settings.
    static func isGone(_ name: String) -> BucketFault {
        .refused(
            S3Error(status: 404, code: "NoSuchBucket", message: "The service no longer has a bucket named \(name)."))
    }
}
