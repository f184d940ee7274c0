import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

/// Contents that become objects in buckets while they arrive, and contents that come from there.
extension Scheduler {
    /// Looks whether the operator still has the buckets that a task names.
    func checkBuckets(of specification: TaskSpecification) throws(BucketFault) {
        let names = [
            specification.request.object?.bucket, specification.bodyObject?.bucket,
            specification.destinationObject?.bucket,
        ]
        for case let name? in names where settings.buckets[name] == nil { throw .isGone(name) }
    }

    // MARK: From a bucket

    /// Where the object is that a task asks for; nil for one that names a URL.
    func target(of task: ClaimedTask) -> ParsedURL? {
        task.specification.request.object.flatMap { settings.target(of: $0)?.url }
    }

    /// Signs a request for an object.
    func signForBucket(_ transfer: inout Transfer) async throws(BucketFault) {
        guard transfer.isAtBucket, let object = transfer.specification.request.object else { return }
        guard let client = settings.buckets[object.bucket], let target = settings.target(of: object) else {
            throw .isGone(object.bucket)
        }
        transfer.bucketAccess = (try await client.fields(toGet: target), client.egress)
    }

    // MARK: Into a bucket

    func write(_ part: ContentPart, of exchange: ExchangeID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard let id = tasksOfExchanges[exchange], var transfer = transfers[id] else { return }
        writer(of: &transfer, &group)?.write(part)
        transfer.progress.bytesInMemory = part.end - (transfer.progress.multipart?.length ?? 0)
        transfers[id] = transfer
        guard transfer.progress.resume != nil else { return }
        // After a kill it is known what that cost.
        settlements.append(Settlement(task: id, .advanced(transfer.progress)))
    }

    /// What writes the current request's content, begun with its first part.
    private func writer(
        of transfer: inout Transfer, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) -> ObjectWriter? {
        if let writing = transfer.writing { return writing.writer }
        guard let destination = transfer.newDestination(settings.contents),
            let client = settings.client(of: destination.bucket)
        else { return nil }
        let (id, exchange, inbox) = (transfer.task.id, transfer.exchange, inbox)
        let writer = ObjectWriter(
            of: id, to: destination, client, mediaType: transfer.mediaType, store: store,
            disk: engine.disk.of(transfer.task.app.rawValue), clock: clock
        ) { inbox.tell(.wrote(id, exchange, $0)) }
        let (upload, algorithms) = (transfer.progress.multipart, transfer.specification.digestsWanted)
        group.addTask { await writer.run(goingOnWith: upload, algorithms) }
        transfer.writing = (writer, nil)
        return writer
    }

    /// Waits for the end of what is written, where the request's content is.
    func endWriting(
        _ transfer: Transfer, _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        var transfer = transfer
        let isComplete = result.outcome == .complete
        let hasContent = result.lastPart != nil || isComplete && result.judgement?.verdict == .alreadyComplete
        guard transfer.writing != nil || hasContent else { return await judge(transfer, result, &group) }
        if transfer.becomesContent, let small = result.asSmallContent(digestedBy: transfer.specification.digestsWanted)
        {
            return await judge(transfer, small, &group)
        }
        guard let writer = writer(of: &transfer, &group) else { return settle(.bucket(.isGone(transfer)), transfer) }
        transfer.writing?.result = result
        transfers[transfer.task.id] = transfer
        if isComplete { live.finalizing(transfer.task.id) }
        writer.finish(last: result.lastPart)
    }

    func wrote(
        _ id: TaskID, _ exchange: ExchangeID, _ news: ObjectWriter.News,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard var transfer = transfers[id], transfer.exchange == exchange else { return }
        switch news {
        case .stored(let upload): noteStored(upload, of: &transfer)
        case .failed(let fault):
            log.of(transfer.name).warning(
                "the content could not be written into its bucket", ("code", fault.code), ("message", fault.message))
            engine.stop(exchange)
        case .finished(let finished):
            guard let writer = transfer.writing?.writer, var result = transfer.writing?.result else { return }
            if result.outcome == .complete { result.digests = finished.digests }
            guard let fault = finished.fault else {
                transfer.written = finished
                transfers[id] = transfer
                return await judge(transfer, result, &group)
            }
            // What had come of the request counts, whatever ended it.
            var judge = Judge(transfer, result, at: clock.now, jitter: 0, canAsk: false)
            judge.keepParts()
            judge.progress.record(judge.metrics())
            transfer.progress = judge.progress
            guard transfer.stopReason == nil else {
                return settle(Settlement(task: id, .interrupted(transfer.progress)), transfer)
            }
            transfer.progress.attempts.attempts += 1
            settle(LocalFault(storing: fault, in: writer.destination), transfer)
        }
    }

    /// Has stored how much of the content is in the bucket, and the request told once that is done.
    private func noteStored(_ upload: MultipartUpload, of transfer: inout Transfer) {
        let (id, exchange, offset) = (transfer.task.id, transfer.exchange, upload.length)
        transfer.progress.multipart = upload
        guard transfer.progress.resume != nil else {
            transfers[id] = transfer
            return engine.recorded(exchange, upTo: offset)
        }
        transfer.progress.resume?.reach(offset, digest: nil)
        transfer.progress.durableOffset = offset
        transfer.progress.bytesInMemory = 0
        transfers[id] = transfer
        unrecorded[exchange] = offset
        settlements.append(Settlement(task: id, .advanced(transfer.progress)))
    }

    // MARK: The object

    /// Makes what is in the bucket the object.
    func finishObject(
        _ transfer: Transfer, _ length: Int64, _ digest: [UInt8], _ outcome: Outcome, _ taskResult: TaskResult,
        _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) {
        let digest = ContentDigest(algorithm: .sha256, value: digest.hexadecimal)
        var whole = MultipartUpload.Whole()
        (whole.length, whole.digest, whole.response, whole.outcome) = (length, digest, taskResult.response, outcome)
        if let single = transfer.written?.single {
            return finishObject(transfer, taskResult, result, &group) { finisher in
                .completed(outcome, taskResult, try await finisher.write(single, digest: digest))
            }
        }
        var transfer = transfer
        transfer.progress.multipart = transfer.written?.upload
        transfer.progress.multipart?.whole = whole
        transfer.progress.bytesInMemory = 0
        let progress = transfer.progress
        finishObject(transfer, taskResult, result, &group) { [whole] finisher in
            guard let upload = progress.multipart else {
                throw BucketFault.unexpected("No part of the content was written.")
            }
            // Kept before, so that a start after a crash does not fetch everything once more.
            guard try await finisher.store.keep(progress, of: finisher.task.id) else { return .interrupted(progress) }
            return .completed(outcome, taskResult, try await finisher.complete(upload, whole, mayBeDone: false))
        }
    }

    /// Makes the parts the object that an attempt before has left.
    func completeObject(_ id: TaskID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard let transfer = transfers[id], let upload = transfer.progress.multipart, let whole = upload.whole else {
            return
        }
        guard transfer.stopReason == nil else {
            return settle(Settlement(task: id, .interrupted(transfer.progress)), transfer)
        }
        var result = TaskResult(progress: transfer.progress)
        result.progress.forgetBytes()
        result.response = whole.response
        finishObject(transfer, result, nil, &group) { [result] finisher in
            .completed(whole.outcome, result, try await finisher.complete(upload, whole, mayBeDone: true))
        }
    }

    private func finishObject(
        _ transfer: Transfer, _ taskResult: TaskResult, _ result: ExchangeResult?,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>,
        _ body: @escaping @Sendable (ObjectFinisher) async throws -> Settlement.Verdict
    ) {
        let (id, decided) = (transfer.task.id, transfer.decided)
        guard let destination = transfer.destinationObject, let client = settings.client(of: destination.bucket) else {
            return settle(.bucket(.isGone(transfer)), transfer)
        }
        let finisher = ObjectFinisher(
            client: client, store: store, task: transfer.task, destination: destination,
            mediaType: transfer.mediaType, clock: clock)
        var unfinished = taskResult
        unfinished.progress = transfer.progress
        unfinished.progress.attempts = taskResult.progress.attempts
        let (now, jitter) = (clock.now, Double.random(in: 0..<1))
        group.addTask { [self, unfinished] in
            var verdict: Settlement.Verdict
            do {
                let made = try await finisher.unlessCompleted(decided) { try await body(finisher) }
                verdict = made ?? .interrupted(unfinished.progress)
            } catch {
                log.of(transfer.name).warning("the object could not be made", ("error", "\(error)"))
                let fault = LocalFault(storing: error, in: destination)
                verdict = self.verdict(after: fault, unfinished, of: transfer, jitter, at: now)
            }
            var settlement = Settlement(task: id, verdict)
            settlement.bytesReceived = result?.bytesReceived ?? 0
            settlement.bytesSent = result?.bytesSent ?? 0
            inbox.tell(.settled(settlement))
        }
    }
}

extension ExchangeResult {
    /// The same of a content that the database keeps: all of it came, and is in memory. Nil where there is more.
    fileprivate func asSmallContent(digestedBy algorithms: Set<DigestAlgorithm>) -> ExchangeResult? {
        guard outcome == .complete, let part = lastPart, part.number == 1, part.bytes.count <= Service.inlineLimit
        else {
            return nil
        }
        var small = self
        small.received = .memory(part.bytes)
        small.lastPart = nil
        return small.digested(by: algorithms)
    }
}

extension BucketFault {
    fileprivate static func isGone(_ transfer: Transfer) -> BucketFault {
        .isGone(transfer.destinationObject?.bucket ?? Store.contentsBucket)
    }

    /// The operator took a bucket out of the settings.
    static func isGone(_ name: String) -> BucketFault {
        .refused(
            S3Error(status: 404, code: "NoSuchBucket", message: "The service has no bucket named \(name) any more."))
    }
}
