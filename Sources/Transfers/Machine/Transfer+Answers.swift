import Base
import Buckets
import Core
import Store
import TransferEngine

/// Reports of an exchange of the whole content before it ends.
extension Transfer {
    /// Notes a 104 response: once it is stored, the upload survives an interruption.
    mutating func note(informational head: ResponseHead, of exchange: ExchangeID) -> [Effect] {
        guard head.status == 104, exchange == self.exchange, var upload = attempt.upload else { return [] }
        var effects: [Effect] = []
        if let version = ResumableUpload.version(of: head.fields).flatMap(ResumableUpload.Version.init(rawValue:)) {
            effects.append(.note(.speaks(version, origin: requestURL.origin)))
        }
        let resource = head.fields["Location"].flatMap { uploadResource(at: $0) }
        let isNew = upload.handle(informational: head, resource: resource)
        take(upload)
        return isNew ? effects + [.advance()] : effects
    }

    mutating func note(
        _ head: ResponseHead, _ judgement: HeadJudgement, of exchange: ExchangeID, _ world: Surroundings
    ) -> [Effect] {
        if segmented?.connections[exchange] != nil { return note(segmentHead: head, judgement.verdict, of: exchange) }
        guard exchange == self.exchange else { return [] }
        var effects: [Effect] = []
        (attempt.arriving, attempt.response) = (nil, nil)
        if judgement.body == .keep(at: 0) { progress.version = attempt.version }
        switch judgement.verdict {
        case .append(let offset) where attempt.resuming != nil:
            let (url, requested) = (request.url.text, sourceURL(request.source)?.text)
            progress.kept.move(to: url, requested: requested)
            attempt.resuming?.url = url
            attempt.resuming?.requestedURL = requested
            effects.append(resumption(at: offset, of: attempt.resuming?.totalLength, cause: "interrupted"))
        case .append, .restartWithThisBody:
            let isRestart = judgement.verdict == .restartWithThisBody
            let point = resumePoint(from: head, at: world.now)
            progress.kept = point.map { .file($0, source: request.source) } ?? .none
            if point == nil, !writesObject {
                attempt.arriving = ArrivingContent(version: progress.version, total: head.announcedLength)
            }
            if isRestart { progress.noteFetchedTwice(attempt.resuming?.offset ?? 0) }
            if let cause = attempt.restartCause ?? (isRestart ? "resourceChanged" : nil) {
                effects.append(resumption(at: 0, of: ContentLength.parse(head.fields).value, cause: cause))
            }
        case .notADownload where judgement.body == .keep(at: 0):
            // An error page replaces the content: none of its bytes may ever count as the content's.
            progress.forgetBytes()
        default: break
        }
        if attempt.reuse?.leads == true, (200..<300).contains(head.status), !mayBeReused(head) {
            effects.append(.forbidReuse)
        }
        attempt.restartCause = nil
        attempt.mediaType = head.fields["Content-Type"].flatMap { MediaType($0) == nil ? nil : $0 }
        if specification.kind == .download {
            let content = arriving
            if content != nil || becomesContent && judgement.verdict?.bringsContent == true {
                attempt.response = TaskResponse(head, url: request.url)
            }
            effects.append(.arrived(content, attempt.response))
        }
        // The rest of the page would only delay the next request.
        if isAnswered(challenge: head, world) { return effects + [.shorten(exchange, 0)] }
        return comesInParts ? effects + considerSegments(exchange, head, judgement.verdict) : effects
    }

    /// The point from which the bytes of a response can be resumed.
    func resumePoint(from head: ResponseHead, at now: Timestamp) -> ResumePoint? {
        var point = ResumePoint.make(from: head, method: request.method, url: request.url.text, receivedAt: now)
        point?.requestedURL = sourceURL(request.source)?.text
        return point
    }

    /// Whether a credential or a question follows the challenge of a response, so that its page is not the result.
    private func isAnswered(challenge head: ResponseHead, _ world: Surroundings) -> Bool {
        guard head.status == 401 || head.status == 407, stop == nil else { return false }
        let metrics = TransactionMetrics(url: request.url.text, fetchStartDate: world.now)
        var judge = Judge(
            self, ExchangeResult(head: head, metrics: metrics), at: world.now, jitter: 0, canAsk: world.canAsk)
        return judge.judgeUpload(head) == nil && judge.judgeChallenge(head) != nil
    }

    /// Whether readers can read the bytes before the task is completed: from a file, or from objects of the service.
    var isReadable: Bool { specification.kind == .download && specification.destinationObject == nil }

    /// The bytes that readers can read. A small content is in memory until its end, and a part until it is in the bucket.
    private var arriving: ArrivingContent? {
        guard isReadable, let content = attempt.arriving ?? ArrivingContent(progress),
            content.total ?? .max > ServiceSettings.inlineLimit, content.objects.isEmpty != becomesContent
        else { return nil }
        return content
    }

    /// Reports to the app the offset at which the content continues.
    mutating func resumption(at offset: Int64, of total: Int64?, cause: String) -> Effect {
        progress.restartCause = nil
        return .advance(Resumption(fileOffset: offset, expectedTotalBytes: total, cause: cause))
    }

    /// Has an offset stored, if the content can be resumed.
    mutating func note(durable offset: Int64, _ digest: [UInt8]?, of exchange: ExchangeID) -> [Effect] {
        if segmented?.connections[exchange] != nil { return note(segment: offset, of: exchange) }
        guard exchange == self.exchange, progress.kept.point != nil else {
            let record = Effect.record(exchange, offset, isStored: false)
            guard isReadable, exchange == self.exchange, let content = attempt.arriving else { return [record] }
            attempt.arriving = ArrivingContent(version: content.version, total: content.total, [0..<offset])
            return [record, .arrived(attempt.arriving)]
        }
        progress.kept.reach(offset, digest: digest?.hexadecimal)
        return [.record(exchange, offset, isStored: true), .advance()]
    }

    // MARK: Into a bucket

    mutating func note(_ part: ContentPart, of exchange: ExchangeID) -> [Effect] {
        guard exchange == self.exchange else { return [] }
        if case .asking = stage { stage = .writing(Writing(exchange: exchange)) }
        progress.bytesInMemory = part.end - (progress.kept.parts?.length ?? 0)
        // Stored, so that the lost bytes are known after a kill.
        return [.write(part)] + (progress.kept.point == nil ? [] : [.advance()])
    }

    mutating func note(_ news: ObjectWriter.News, of exchange: ExchangeID, _ world: Surroundings) -> [Effect] {
        guard case .writing(var writing) = stage, writing.exchange == exchange else { return [] }
        switch news {
        case .stored(let upload): return note(stored: upload, of: exchange)
        case .failed(let fault): return [.note(.bucketFault(fault)), .stop(exchange)]
        case .finished(let finished):
            guard var result = writing.result else { return [] }
            if let fault = finished.fault { return settle(fault, result, world) }
            if result.outcome == .complete { result.digests = finished.digests }
            writing.finished = finished
            stage = .writing(writing)
            return judge(result, world)
        }
    }

    /// Has the uploaded length of the content stored, and then reported to the exchange.
    private mutating func note(stored upload: MultipartUpload, of exchange: ExchangeID) -> [Effect] {
        let offset = upload.length
        progress.kept.keep(upload)
        guard progress.kept.point != nil else {
            let record = Effect.record(exchange, offset, isStored: false)
            // Stored for the readers at other nodes.
            return upload.readable == nil ? [record] : [record, .arrived(arriving), .advance()]
        }
        progress.bytesInMemory = 0
        return [.record(exchange, offset, isStored: true), .advance()]
    }

    /// Ends an attempt whose bucket refused the content. The received bytes count, whatever ended the request.
    private mutating func settle(_ fault: BucketFault, _ result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        var judge = Judge(self, result, at: world.now, jitter: 0, canAsk: false)
        judge.keepParts()
        judge.progress.record(judge.metrics())
        progress = judge.progress
        guard stop == nil else { return [.settle(Settlement(task: id, .interrupted(progress)))] }
        progress.attempts.attempts += 1
        return settle(isOfContents ? LocalFault.contents(fault) : .bucket(fault), world)
    }
}
