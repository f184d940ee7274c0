import Base
import Core
import Formats
import Store
import TransferEngine

/// The end of an exchange of the whole content, and the verdict on it.
extension Transfer {
    mutating func end(_ exchange: ExchangeID, _ result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        if case .file = result.received { hasPartialFile = true }
        if segmented?.connections[exchange] != nil { return end(segment: exchange, result, world) }
        guard exchange == self.exchange else { return [] }
        if let result = result.withWrongLength() { return end(exchange, result, world) }
        let effects = noteSilence(result)
        if writesObject { return effects + endWriting(exchange, result, world) }
        if mayTurn(after: result) {
            if let next = nextSource(world) { return effects + ask(source: next, after: result, world) }
            if let first = attempt.setback { return effects + judge(first, after: result, world) }
            if let end = pauseOfSources(world), !Judge(self, result, at: world.now, jitter: 0, canAsk: false).mayRetry {
                return effects
                    + judge(result, world) { judge in
                        judge.progress.record(judge.metrics())
                        return .retry(at: end)
                    }
            }
        }
        guard comesInParts, result.outcome == .complete else { return effects + judge(result, world) }
        guard case .file = result.received else {
            return effects + judge(result.digested(by: specification.digestsWanted), world)
        }
        stage = .verifying(result)
        return effects + [.finalize, .readWhole(length: result.length, checksPieces: accepts(result))]
    }

    /// Notes that an origin did not respond to the fields of the draft for resumable uploads.
    private func noteSilence(_ result: ExchangeResult) -> [Effect] {
        guard let upload = attempt.upload, upload.step == .create, upload.resource == nil,
            result.head != nil || result.bytesSent > 0
        else { return [] }
        return [.note(.isSilent(upload.version, origin: request.url.origin))]
    }

    /// Waits until the bucket has the content, if the response has any.
    private mutating func endWriting(
        _ exchange: ExchangeID, _ result: ExchangeResult, _ world: Surroundings
    ) -> [Effect] {
        let isComplete = result.outcome == .complete
        let hasContent = result.lastPart != nil || isComplete && result.judgement?.verdict == .alreadyComplete
        var isWriting = false
        if case .writing = stage { isWriting = true }
        guard isWriting || hasContent else { return judge(result, world) }
        if becomesContent, let small = result.asSmallContent(digestedBy: specification.digestsWanted) {
            return judge(small, world)
        }
        stage = .writing(Writing(exchange: exchange, result: result))
        return (isComplete ? [.finalize] : []) + [.endWriting(last: result.lastPart)]
    }

    /// Sends the request to the next source of a download, in the same attempt: the last source had sent no bytes.
    private mutating func ask(source: Int, after result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        let judge = count(result, world)
        if attempt.setback == nil, judge.mayRetry { attempt.setback = Attempt.Setback(result, of: request) }
        let effects = pause(after: result, world)
        guard let left = attempt.resuming else {
            progress.forgetBytes()
            stage = .ready
            turn(to: source)
            return effects + [.authorize]
        }
        return effects + leaveMirror(of: left.offset, for: source)
    }

    /// Delays all requests to an origin that asks for it, whatever becomes of the task.
    func pause(after result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        guard let head = result.head, OriginPauses.slowsDown(status: head.status),
            let wait = RetryAfter.parse(head.fields, now: world.now)
        else { return [] }
        return [.pause(request.url.origin, wait)]
    }

    /// Counts a request whose result is not judged.
    private mutating func count(_ result: ExchangeResult, _ world: Surroundings) -> Judge {
        let judge = Judge(self, result, at: world.now, jitter: 0, canAsk: false)
        progress = judge.progress
        progress.record(judge.metrics())
        return judge
    }

    /// Judges a source's failure that another attempt may mend, now that all sources have failed.
    private mutating func judge(
        _ first: Attempt.Setback, after last: ExchangeResult, _ world: Surroundings
    ) -> [Effect] {
        _ = count(last, world)
        let effects = pause(after: last, world)
        attempt.setback = nil
        request = first.request
        attempt.access = attempt.accesses[request.url.origin] ?? attempt.access
        return effects + judge(first.result.digested(by: specification.digestsWanted), world, isRecorded: true)
    }

    /// Handles the result of reading a content that one request has brought.
    mutating func take(_ reading: Reading, of result: ExchangeResult, _ world: Surroundings) -> [Effect] {
        var result = result
        switch reading.result {
        case .success(let piece):
            attempt.wrongPiece = piece
            result.digests = reading.digests
            if stop != nil { result.outcome = .stopped }
        case .failure(let error): result.outcome = .failed(.disk(errno: error.errno))
        }
        return judge(result, world)
    }

    // MARK: Judging

    /// Whether the status of a response is acceptable.
    func accepts(_ result: ExchangeResult) -> Bool {
        let isContinued = attempt.resuming != nil || segmented != nil
        guard let status = result.head?.effectiveStatus(result.judgement?.verdict, isContinued: isContinued) else {
            return false
        }
        return specification.accepts(status)
    }

    /// Judges the end of a request, and returns the effects.
    ///
    /// - Parameter isRecorded: Whether the progress counts the request already.
    mutating func judge(
        _ result: ExchangeResult, _ world: Surroundings, isRecorded: Bool = false,
        by judging: (inout Judge) -> Judgement = { $0.judge() }
    ) -> [Effect] {
        var judge = Judge(
            self, result, at: world.now, jitter: world.jitter, canAsk: world.canAsk,
            largestContent: world.largestContent, isRecorded: isRecorded)
        var (judgement, progress) = (judging(&judge), judge.progress)
        // The response to an outdated request neither delays nor questions the task's new one.
        if stop == .outdated, !judgement.isInterruption { (judgement, progress) = (.interrupted, self.progress) }
        // No request to an origin begins while it asks for none, unless the one that led to it must not be repeated.
        if case .send(.follow(let hop)) = judgement, isRepeatable,
            let end = world.pauses.until(hop.url.origin, app: task.app.rawValue, at: world.now)
        {
            judgement = .retry(at: end)
        }
        var settlement = Settlement(task: id, .interrupted(progress))
        settlement.credentialsKnown = credentialsKnown
        settlement.bytesReceived = segmented?.bytesReceived ?? result.bytesReceived
        settlement.bytesSent = result.bytesSent
        var effects = isRecorded || segmented != nil || stop == .outdated ? [] : pause(after: result, world)
        if case .failed(.egressDenied) = result.outcome {
            effects.append(.note(.egressDenied(host: request.url.host)))
        }
        switch judgement {
        case .send(let next):
            // A transfer that has to stop sends no further request.
            guard stop == nil else { break }
            self.progress = progress
            return effects + send(next, world)
        case .retry(let at, let waitsForConnectivity):
            effects.append(
                .tell(
                    .willRetry(
                        attempt: progress.attempts.attempts, error: progress.lastAttempt?.error, nextAt: at,
                        offset: progress.keptOffset)))
            if waitsForConnectivity { effects.append(.tell(.isWaitingForConnectivity)) }
            effects.append(.note(.willRetry(progress.lastAttempt, at: at)))
            settlement.verdict = .retry(at: at, waitsForConnectivity: waitsForConnectivity, progress)
        case .waitForDisk(let needed, let notBefore):
            effects.append(.note(.waitsForDisk(needed: needed)))
            settlement.verdict = .waitsForDisk(needed: needed, notBefore: notBefore, progress)
        case .interrupted: break
        case .ask(let question): return effects + [.ask(question, progress, settlement)]
        case .finish(let outcome, let taskResult, let source):
            var written: ObjectWriter.Finished?
            if case .writing(let writing) = stage { written = writing.finished }
            return effects
                + place(
                    Finish(
                        outcome: outcome, taskResult: taskResult, source: source, result: result, written: written,
                        bytesReceived: settlement.bytesReceived, sharing: sharing(taskResult, result, world)))
        case .leave(let content, let response, let verdict):
            var taskResult = TaskResult(progress: progress)
            taskResult.response = response
            return effects
                + place(
                    Finish(
                        outcome: .succeeded, taskResult: taskResult, source: content, result: result,
                        bytesReceived: settlement.bytesReceived, sharing: sharing(taskResult, result, world),
                        verdict: verdict))
        }
        return effects + [.settle(settlement)]
    }

    /// Whether the task's request may be sent again at any time: it has no effect on its origin.
    private var isRepeatable: Bool {
        task.body == nil && RetryableRequest.isIdempotent(specification.request.method)
            && configuration.retryPolicy.settings.maximumElapsedTime == nil
    }

    private mutating func place(_ finish: Finish) -> [Effect] {
        stage = .finishing
        return [.finalize, .place(finish)]
    }

    // MARK: The next request

    /// Sends the next request of an attempt.
    private mutating func send(_ next: Judgement.Next, _ world: Surroundings) -> [Effect] {
        // The fetched segments are kept, unless the content restarts.
        if segmented == nil { stage = .ready }
        switch next {
        case .follow(let hop): return follow(hop, world)
        case .upload(let upload): return send(upload, world)
        case .authenticate:
            // The cache key names the credential for the task's own URL.
            if request.hops == 0, request.source == 0 { attempt.reuse = nil }
            beginUpload(world)
            return [.authorize]
        case .unconditional:
            attempt.reuse?.stored = nil
            request.headers.remove("If-Modified-Since")
            return start(world)
        case .repeated:
            attempt.repeats += 1
            return start(world)
        case .again(let cause):
            stage = .ready
            attempt.resuming = nil
            attempt.restartCause = cause
            attempt.wrongPiece = nil
            guard comesInParts else {
                beginUpload(world)
                return start(world)
            }
            turn(to: 0)
            return [.authorize]
        }
    }

    private mutating func follow(_ hop: Judgement.Hop, _ world: Surroundings) -> [Effect] {
        request.hops += 1
        request.headers = Redirect.fields(
            request.headers, dropBody: hop.dropsBody, dropHeaders: hop.dropsSecrets,
            sensitive: specification.request.sensitiveHeaders)
        request.url = hop.url
        request.method = hop.method
        if hop.dropsBody { request.sendsBody = false }
        beginUpload(world)
        return refusalOfPlainHTTP() ?? [.authorize]
    }

    /// Restarts an upload, in the version of the draft that its origin supports.
    private mutating func beginUpload(_ world: Surroundings) {
        progress.uploadURL = nil
        progress.uploadOffset = nil
        prepareUpload(world.uploadVersions.version(for: request.url.origin))
    }

    /// Sends the next request of a resumable upload.
    private mutating func send(_ upload: ResumableUpload, _ world: Surroundings) -> [Effect] {
        take(upload)
        switch upload.step {
        case .append(let offset):
            return [.advance(resumption(of: upload, at: offset, cause: "interrupted"))] + start(world)
        case .create: return [.advance(resumption(of: upload, at: 0, cause: "uploadResourceGone"))] + start(world)
        case .ask, .abandon: return start(world)
        }
    }

    private func resumption(of upload: ResumableUpload, at offset: Int64, cause: String) -> Resumption {
        Resumption(fileOffset: offset, expectedTotalBytes: upload.length, cause: cause)
    }
}

extension ResponseHead {
    /// The status for which the content is accepted: the part that answers the service's own `Range` continues the
    /// content of a 200.
    ///
    /// - Parameter isContinued: Whether the service requested a part of the content.
    func effectiveStatus(_ verdict: ResumeVerdict?, isContinued: Bool) -> Int {
        guard isContinued, status == 206, case .append? = verdict else { return status }
        return 200
    }
}

extension ExchangeResult {
    /// The result with a fault, if a 206 without `Content-Length` has brought fewer or more bytes than its
    /// `Content-Range` says: libcurl cannot know it. Nil for any other result.
    fileprivate func withWrongLength() -> ExchangeResult? {
        guard outcome == .complete, isBodyKept, let head, let end = judgement?.verdict?.end(of: head), length != end
        else { return nil }
        var result = self
        result.lastPart = nil
        if length < end {
            result.outcome = .failed(.shortBody)
        } else {
            result.outcome = .stopped
            result.judgement?.verdict = .askAgainFromZero(.lengthMismatch)
        }
        return result
    }

    /// The result for a content that is small enough for the database: complete and in memory. Nil for a larger one.
    fileprivate func asSmallContent(digestedBy algorithms: Set<DigestAlgorithm>) -> ExchangeResult? {
        guard outcome == .complete, let part = lastPart, part.number == 1,
            part.bytes.count <= ServiceSettings.inlineLimit
        else {
            return nil
        }
        var small = self
        small.received = .memory(part.bytes)
        small.lastPart = nil
        return small.digested(by: algorithms)
    }

    /// The result with the digests of the body in memory.
    fileprivate func digested(by algorithms: Set<DigestAlgorithm>) -> ExchangeResult {
        guard isBodyKept, case .memory(let bytes) = received else { return self }
        var result = self
        for algorithm in algorithms { result.digests[algorithm] = Digest.of(bytes, algorithm) }
        return result
    }
}
