import Base
import Core
import Formats
import Store
import TransferEngine

/// The verdict after an exchange.
enum Judgement {
    /// Sends another request at once, in the same attempt.
    case send(Next)
    case retry(at: Timestamp, waitsForConnectivity: Bool = false)
    /// The whole content is received: it is checked, put in its place and reported.
    case finish(Outcome, TaskResult, ContentSource)
    case ask(Question)
    /// The content has another digest than this task expects, and is left for its followers.
    case leave(ContentSource, TaskResponse, Settlement.Verdict)
    /// The disk lacks `needed` bytes for the rest. No attempt is charged.
    case waitForDisk(needed: Int64, notBefore: Timestamp)
    /// Requeued, or left as it is if the store has decided already. No attempt is charged.
    case interrupted

    var isInterruption: Bool { if case .interrupted = self { true } else { false } }

    enum Next {
        /// The next hop of a redirect.
        case follow(Hop)
        /// The same request from the start of the content.
        case again(cause: String)
        /// The same request with the stored credential noted last.
        case authenticate
        /// The same request, uncharged.
        case repeated
        /// The same request without the conditions that would confirm a stored response.
        case unconditional
        /// The next request of a resumable upload.
        case upload(ResumableUpload)
    }

    struct Hop {
        var url: ParsedURL
        var method: String
        var dropsBody: Bool
        var dropsSecrets: Bool
    }

    /// The place of a finished task's bytes before they are put in their final place.
    enum ContentSource {
        case none
        case bytes([UInt8], digest: [UInt8])
        case partialFile(length: Int64, digest: [UInt8])
        /// Already complete when the origin was queried: the digest has to be computed.
        case existingFile(length: Int64)
        /// Passed to the bucket where it becomes an object.
        case object(length: Int64, digest: [UInt8])
        /// Stored for another task.
        case stored(StoredResponse)
    }
}

/// Judges the end of an exchange. It has no clock, randomness or I/O.
struct Judge {
    let transfer: Transfer
    let result: ExchangeResult
    let now: Timestamp
    /// A number in `0..<1`.
    let jitter: Double
    /// Whether the app can answer a question: a webhook is set, or a client is attached.
    let canAsk: Bool
    /// The longest content that the empty disk could hold.
    let largestContent: Int64
    /// Whether the progress counts the exchange already.
    private let isRecorded: Bool
    /// The task's progress after the exchange.
    var progress: TaskProgress

    init(
        _ transfer: Transfer, _ result: ExchangeResult, at now: Timestamp, jitter: Double, canAsk: Bool,
        largestContent: Int64 = .max, isRecorded: Bool = false
    ) {
        self.transfer = transfer
        self.result = result
        self.now = now
        self.jitter = jitter
        self.canAsk = canAsk
        self.largestContent = largestContent
        // Each connection of a content in segments was counted when it ended.
        self.isRecorded = isRecorded || transfer.segmented != nil
        progress = transfer.progress
        progress.currentURL = transfer.request.url.text
        if transfer.configuration.retryPolicy.settings.maximumElapsedTime != nil,
            progress.attempts.firstAttemptAt == nil
        {
            progress.attempts.firstAttemptAt = transfer.attempt.startedAt
        }
        if self.isRecorded { return }
        if transfer.attempt.upload == nil {
            progress.countOfBytesSent += result.bytesSent
        } else if result.bytesSent > 0 {
            progress.countOfBytesSent = transfer.uploadOffset + result.bytesSent
        }
        progress.countOfBytesReceived += result.bytesReceived
    }

    var specification: TaskSpecification { transfer.specification }
    var verdict: ResumeVerdict? { result.judgement?.verdict }
    var isDownload: Bool { specification.kind == .download }

    mutating func judge() -> Judgement {
        if !isRecorded { progress.record(metrics()) }
        switch result.outcome {
        case .stopped: return judgeStop()
        case .failed(let fault): return judgeFailure(fault)
        case .complete: return judgeAnswer()
        }
    }

    // MARK: Ends without an answer

    private mutating func judgeStop() -> Judgement {
        if transfer.stop == nil, case .askAgainFromZero(let reason)? = verdict {
            return restart(cause: reason.rawValue)
        }
        keepBytes()
        return .interrupted
    }

    private mutating func judgeFailure(_ fault: TransferFault) -> Judgement {
        let meaning = FaultMeaning.of(
            fault, curlCode: result.curlCode, message: result.curlMessage, explanation: result.explanation(of: fault),
            url: transfer.request.url.text)
        if transfer.stop != nil {
            keepBytes()
            return .interrupted
        }
        if fault == .tooLarge, let judgement = judgeLongPage() { return judgement }
        // An idempotent request may be repeated (RFC 9110 section 9.2.2).
        if isDownload, transfer.attempt.repeats < Self.maximumRepeats,
            RetryableRequest.isIdempotent(transfer.request.method), result.isClosedWhileIdle(fault)
        {
            return .send(.repeated)
        }
        if fault == .nameNotAsked {
            // The name resolution waits for a turn. Meanwhile the slot is free for others, and no attempt is charged.
            keepBytes()
            return .retry(at: now + .milliseconds(5000 + Int64(jitter * 5000)))
        }
        if case .restart = meaning.fault {
            return restart(cause: "partialFileMissing", error: meaning.error)
        }
        keepBytes()
        if meaning.waitsForDisk { return judgeFullDisk(meaning.error) }
        if meaning.waitsForOperator {
            return .retry(at: now + progress.pauseForContents(since: transfer.task.progress.keptOffset))
        }
        if let question = trustQuestion(fault, meaning.error) { return .ask(question) }
        switch decide(ending: meaning.fault, keptOffset: progress.keptOffset, meaning.error) {
        case .retry(let at):
            return .retry(at: at, waitsForConnectivity: meaning.waitsForConnectivity)
        case .giveUp:
            // A retry may resume from the bytes, unless it would end the same way.
            let isOfUse = meaning.fault != .terminal || transfer.attempt.reuse?.leads == true
            let keepsBytes = isOfUse && specification.destinationObject == nil
            return finish(.failed, error: meaning.error, keepsBytes: keepsBytes)
        }
    }

    /// How often one attempt repeats a request because a kept connection had been closed.
    static let maximumRepeats = 2

    /// Notes the durable offset, if the bytes can be resumed at all.
    private mutating func keepBytes() {
        if let segmented = transfer.segmented { return segmented.store(in: &progress) }
        if transfer.writesObject { return keepParts() }
        guard isDownload, case .file(_, let length) = result.received, var point = resumePoint() else {
            if let kept = transfer.attempt.resuming, result.head == nil, case .file = result.received {
                progress.kept = .file(kept, source: progress.kept.source)
            } else if transfer.attempt.resuming == nil || result.head != nil {
                var lost = lengthAtHand
                if case .notADownload? = verdict { lost = transfer.attempt.resuming?.offset ?? 0 }
                if lost > 0 { progress.restartCause = "notResumable" }
                progress.noteFetchedTwice(lost)
                progress.forgetBytes()
            }
            return
        }
        point.reach(length, digest: result.partialSHA256?.hexadecimal ?? (length == point.offset ? point.digest : nil))
        progress.kept = .file(point, source: progress.kept.source)
    }

    /// Whether bytes of the content came, rather than of an error page.
    private var hasContent: Bool {
        switch (verdict, result.received) {
        case (.append, .memory(let bytes)), (.restartWithThisBody, .memory(let bytes)): isDownload && !bytes.isEmpty
        case (.append, .file(_, let length)), (.restartWithThisBody, .file(_, let length)),
            (.append, .parts(let length)), (.restartWithThisBody, .parts(let length)):
            isDownload && length > 0
        default: false
        }
    }

    /// The length of the content that came or was already stored.
    var lengthAtHand: Int64 {
        guard hasContent else { return 0 }
        switch result.received {
        case .none: return 0
        case .memory(let bytes): return Int64(bytes.count)
        case .file(_, let length), .parts(let length): return length
        }
    }

    /// The point from which the stored bytes could be resumed.
    private func resumePoint() -> ResumePoint? {
        guard let head = result.head else { return transfer.attempt.resuming }
        switch verdict {
        case .append(let offset) where offset > 0 || head.status == 206: return transfer.attempt.resuming
        case .append, .restartWithThisBody:
            return transfer.resumePoint(from: head, at: now)
        // A page that is kept has replaced the bytes.
        case .notADownload: return result.judgement?.body == .keep(at: 0) ? nil : transfer.attempt.resuming
        case .askAgainFromZero, .alreadyComplete, nil: return nil
        }
    }

    mutating func restart(
        cause: String, fault: AttemptFault = .restart, error: TaskError = TaskError(.badServerResponse)
    ) -> Judgement {
        progress.forgetBytes()
        if transfer.comesInParts { progress.avoidsSegments = true }
        switch decide(ending: fault, error) {
        case .retry:
            if let segmented = transfer.segmented {
                progress.noteFetchedTwice(segmented.plan.record.count)
            } else if isDownload {
                progress.noteFetchedTwice(max(transfer.attempt.resuming?.offset ?? 0, lengthAtHand))
            }
            return .send(.again(cause: cause))
        case .giveUp: return finish(.failed, error: error)
        }
    }

    /// Records the fault and the error with which the attempt ends, and decides about another one.
    ///
    /// - Parameter keptOffset: The number of bytes from which another attempt continues.
    mutating func decide(ending fault: AttemptFault, keptOffset: Int64 = 0, _ error: TaskError) -> RetryDecision {
        progress.attempts.record(fault, keptOffset: keptOffset)
        note(error)
        return decide(after: fault)
    }

    /// - Parameter isRepeatable: Whether the next request does no harm, whatever the effect of the last one.
    func decide(after fault: AttemptFault, isRepeatable: Bool = false) -> RetryDecision {
        transfer.configuration.retryPolicy.decide(
            after: fault, ledger: progress.attempts,
            request: RetryableRequest(
                method: specification.request.method, isUpload: specification.kind == .upload,
                hasIdempotencyKey: isRepeatable || transfer.request.headers.contains("Idempotency-Key")),
            jitter: jitter, now: now, deadline: transfer.task.resourceDeadline)
    }

    // MARK: Answers

    mutating func judgeAnswer() -> Judgement {
        guard let head = result.head else { return judgeFailure(.emptyReply) }
        if ContentLength.parse(head.fields) == .invalid { return judgeFailure(.twoLengths) }
        if !result.isOfProxy, let judgement = judgeUpload(head) { return judgement }
        if let judgement = judgeRedirect(head) ?? judgeUnsentBody(head) { return judgement }
        if case .askAgainFromZero(let reason)? = verdict {
            return restart(cause: reason.rawValue)
        }
        if head.status == 304, let judgement = judgeConfirmation(head) { return judgement }
        if head.status == 304, specification.isConditional {
            return confirmsDate(head) ? finish(.notModified) : .send(.unconditional)
        }
        if verdict == .alreadyComplete, transfer.writesObject { return judgeContent(head) }
        if verdict == .alreadyComplete, let point = transfer.attempt.resuming {
            return finish(.succeeded, content: .existingFile(length: point.offset))
        }
        if let judgement = judgeChallenge(head) ?? judgeMissingCertificate(head) { return judgement }
        let isPart = transfer.segmented.map { !$0.plan.isComplete } ?? false
        if !isPart, transfer.accepts(result) { return judgeContent(head) }
        return judgeStatus(head)
    }

    /// Whether a 304 concerns the content with the date of the request. An origin that was rolled back has an older one,
    /// for which `If-Modified-Since` is false as well.
    private func confirmsDate(_ head: ResponseHead) -> Bool {
        guard let date = specification.ifModifiedSince, transfer.request.headers.contains("If-Modified-Since") else {
            return true
        }
        return !head.fields.contains("ETag")
            && head.fields.values("Last-Modified").allSatisfy { $0.utf8.elementsEqual(date.utf8) }
    }

    private mutating func judgeRedirect(_ head: ResponseHead) -> Judgement? {
        guard Redirect.isRedirect(head.status), !specification.accepts(head.status) else { return nil }
        let target = head.fields["Location"].flatMap { try? ParsedURL(location: $0, from: transfer.request.url) }
        let decision = Redirect.decide(
            head: head, method: transfer.request.method, hops: transfer.request.hops, task: transfer.taskURL,
            current: transfer.request.url,
            target: target)
        switch decision {
        case .notARedirect: return nil
        case .fail(let refusal):
            return fail(with: TaskError(refusal.code, failingURL: transfer.request.url.text))
        case .follow(let method, let dropsBody, let dropsSecrets):
            guard let target else { return nil }
            if transfer.segmented != nil, target.isSecure || !transfer.configuration.requiresSecureTransport {
                return judgeUnfollowed(head)
            }
            if dropsBody, let judgement = judgeUnsentBody(redirected: head) { return judgement }
            if progress.redirects.count < Redirect.limit {
                progress.redirects.append(RedirectRecord(statusCode: head.status, url: target.text))
            }
            return .send(
                .follow(
                    Judgement.Hop(url: target, method: method, dropsBody: dropsBody, dropsSecrets: dropsSecrets)))
        }
    }

    // MARK: Ends

    mutating func finish(
        _ outcome: Outcome, error: TaskError? = nil, content: Judgement.ContentSource = .none, isCounted: Bool = false,
        keepsBytes: Bool = false
    ) -> Judgement {
        if error == nil && !isCounted {
            progress.attempts.attempts += 1
            note(nil)
        }
        var result = TaskResult(progress: progress)
        result.error = error
        result.response = self.result.head.map { TaskResponse($0, url: transfer.request.url) }
        if let total = length(ofWhole: content) { result.response?.expectedContentLength = total }
        if !keepsBytes { result.progress.kept = .none }
        result.progress.uploadURL = nil
        return .finish(outcome, result, content)
    }

    /// Ends the task with an error that another attempt would not fix.
    mutating func fail(with error: TaskError, keptOffset: Int64 = 0) -> Judgement {
        progress.attempts.record(.terminal, keptOffset: keptOffset)
        note(error)
        return finish(.failed, error: error)
    }

    mutating func note(_ error: TaskError?) {
        progress.lastAttempt = AttemptRecord(
            number: max(1, progress.attempts.attempts), startedAt: transfer.attempt.startedAt, endedAt: now,
            offset: transfer.attempt.resuming?.offset ?? transfer.uploadOffset, statusCode: result.head?.status,
            error: error)
    }
}
