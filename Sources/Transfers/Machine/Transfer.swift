import Base
import Core
import Formats
import Store
import TransferEngine

/// One claimed task in flight, as a state machine: the current request, the progress, and the effects of each event.
///
///     ready ──▶ asking ──▶ verifying ──────▶ finishing     a download whose bytes are read once more
///       │        │  └────▶ segmented ──────────▲  ▲        …over several connections
///       │        └───────▶ writing ────────────┘  │        …into a bucket
///       └────▶ fetchingBody                 the rest       an upload of an object
///
/// It has no clock, I/O or randomness: ``handle(_:in:)`` gets the time and returns the effects. A request that is
/// followed by another one leads from any stage to `ready`, and from there to `asking`. A crash loses everything except
/// ``progress`` as stored last, from which the next claim begins.
struct Transfer: Sendable {
    enum Stage: Sendable {
        /// No exchange is in flight, and each one that has ended is judged.
        case ready
        /// The store decides whether the cache or another task's transfer serves the task.
        case consulting
        /// The body is fetched from its bucket.
        case fetchingBody
        case asking(ExchangeID)
        indirect case segmented(SegmentedTransfer)
        /// All of the content came in one request, and is read once more.
        indirect case verifying(ExchangeResult)
        /// The content goes into a bucket.
        indirect case writing(Writing)
        /// A disk thread or a bucket completes the transfer.
        case finishing
    }

    /// A content that is being written into a bucket.
    struct Writing: Sendable {
        let exchange: ExchangeID
        /// The result of the request, once it has ended.
        var result: ExchangeResult?
        /// The outcome of the writing, once all is written.
        var finished: ObjectWriter.Finished?
    }

    /// The reason why the transfer has to stop.
    enum Stop: Sendable {
        /// Suspended, cancelled or timed out: already stored.
        case decided
        /// The service shuts down, or the task is requeued.
        case interrupted
        /// The task has another request by now, so that the response to this one does not count.
        case outdated
    }

    let task: ClaimedTask
    let session: KnownSession
    let name: TaskName
    /// The task's own URL.
    let taskURL: ParsedURL
    /// The header fields of requests to the task's own URL.
    let ownHeaders: HTTPFields
    /// Whether the content becomes an object in the bucket of contents while it arrives.
    let becomesContent: Bool
    var attempt: Attempt
    var stage = Stage.ready
    var stop: Stop?
    var progress: TaskProgress
    /// Whether a partial file may exist, of this exchange or an earlier one.
    var hasPartialFile: Bool

    var id: TaskID { task.id }
    var specification: TaskSpecification { task.specification }
    var configuration: SessionConfiguration { session.configuration }

    /// The request of the current hop.
    var request: Attempt.Request {
        get { attempt.request }
        set { attempt.request = newValue }
    }

    /// The state of a download in segments; nil in any other stage.
    var segmented: SegmentedTransfer? { if case .segmented(let segmented) = stage { segmented } else { nil } }

    /// The exchange of the whole content, while it is in flight or its content is written into a bucket.
    // Not inlined: the optimizer of Swift 6.3.1 fails on a copy of it ("Found ownership error").
    @inline(never)
    var exchange: ExchangeID? {
        switch stage {
        case .asking(let exchange): exchange
        case .writing(let writing): writing.exchange
        default: nil
        }
    }

    /// The exchanges in flight.
    var exchanges: [ExchangeID] {
        switch stage {
        case .asking(let exchange): [exchange]
        case .writing(let writing): writing.result == nil ? [writing.exchange] : []
        case .segmented(let segmented): Array(segmented.connections.keys)
        default: []
        }
    }

    /// Whether the fetched or sent bytes remain usable after an interruption.
    var canGoOnLater: Bool { progress.kept.point != nil || attempt.upload?.resource != nil }

    /// The progress with a content that is complete in the partial file and could not be put in its place.
    func progressOfWhole(_ source: Judgement.ContentSource) -> TaskProgress {
        var progress = progress
        guard case .partialFile(let length, let digest) = source, let point = progress.kept.point else {
            return progress
        }
        progress.kept = .file(point, source: progress.kept.source)
        progress.kept.reach(length, digest: digest.hexadecimal)
        return progress
    }
}

/// One try to complete a task: its current request and the state that belongs to it.
struct Attempt: Sendable {
    /// A request of the current hop.
    struct Request: Sendable {
        var url: ParsedURL
        var method: String
        var headers: HTTPFields
        var sendsBody: Bool
        var hops = 0
        /// The source of the request: 0 is the task's own URL, then its mirrors.
        var source = 0
    }

    /// The failure of a source, which another attempt may mend.
    struct Setback: Sendable {
        let request: Request
        let result: ExchangeResult

        init(_ result: ExchangeResult, of request: Request) {
            self.request = request
            var result = result
            // The next source overwrites the page in the partial file.
            if case .file = result.received { result.received = .none }
            self.result = result
        }
    }

    var startedAt: Timestamp
    var request: Request
    /// What the current request may present.
    var access = Access()
    /// What was read for each origin that the attempt has requested.
    var accesses: [String: Access] = [:]
    /// The resume point that the current request's `Range` is made from.
    var resuming: ResumePoint?
    /// The version of the bytes, should the current request begin at offset 0.
    var version: Int64 = 0
    /// The synced bytes of a content that cannot be resumed, whose offsets are not stored.
    var arriving: ArrivingContent?
    /// The cause of a restart at offset 0 although bytes existed.
    var restartCause: String?
    /// How often a request was repeated because a kept connection had been closed.
    var repeats = 0
    /// The state of an upload that may survive interruptions.
    var upload: ResumableUpload?
    var askedSources: Set<Int> = []
    /// The first of the sources' failures that another attempt may mend.
    var setback: Setback?
    /// The response whose body is the content.
    var response: TaskResponse?
    /// The media type of the object that the content becomes, as the origin reported it.
    var mediaType: String?
    /// A piece of the content whose digest is not the expected one.
    var wrongPiece: Range<Int64>?
    /// Set once the attempt has consulted the cache.
    var reuse: Reuse?
}

extension Transfer {
    /// Prepares the first request of a claimed task.
    ///
    /// - Parameters:
    ///   - url: The URL of the object that the task requests.
    ///   - node: The name of this node, if there are several.
    ///   - hasContentsBucket: Whether contents are kept in a bucket.
    /// - Throws: `BadURL`.
    init(
        _ task: ClaimedTask, to url: ParsedURL? = nil, in session: KnownSession, version: String, node: String?,
        hasContentsBucket: Bool = false, at now: Timestamp
    ) throws(BadURL) {
        let specification = task.specification
        self.task = task
        self.session = session
        name = TaskName(
            app: session.app, session: session.identifier, number: task.number,
            clientTaskId: specification.clientTaskId)
        if let url { taskURL = url } else { taskURL = try ParsedURL(specification.request.url) }
        ownHeaders = Self.headers(specification, session.configuration, body: task.body, version: version)
        // A content that may arrive out of order is first collected in a file.
        becomesContent = hasContentsBucket && specification.bringsContent && !specification.mayComeInSegments
        let writesObject = becomesContent || specification.destinationObject != nil
        var progress = task.progress
        progress.loseMemory()
        progress.redirects = []
        hasPartialFile = progress.kept.point != nil && progress.kept.parts == nil
        // Bytes that were written to another place are useless.
        let isInBucket = progress.kept.parts?.canBeGoneOnWith(specification, progress.kept.point) ?? false
        if writesObject ? !isInBucket : progress.kept.parts != nil { progress.forgetBytes() }
        if !writesObject, let node {
            if let other = progress.node, other != node, progress.kept.point != nil {
                progress.restartCause = "partialFileMissing"
                progress.forgetBytes()
                progress.adoptedFile = nil
            }
            progress.node = node
        }
        self.progress = progress
        attempt = Attempt(
            startedAt: now,
            request: Attempt.Request(
                url: taskURL, method: specification.request.method, headers: ownHeaders, sendsBody: task.body != nil))
        attempt.resuming =
            specification.kind == .download ? progress.kept.point.flatMap { $0.offset > 0 ? $0 : nil } : nil
        attempt.restartCause = attempt.resuming == nil ? progress.restartCause : nil
        if progress.kept.source > 0 { turn(to: progress.kept.source) }
    }

    /// The header fields of the first request: the task's own override the session's, and both override the defaults.
    private static func headers(
        _ specification: TaskSpecification, _ configuration: SessionConfiguration, body: BodyLocation?,
        version: String
    ) -> HTTPFields {
        var headers = specification.request.headers
        for field in configuration.httpAdditionalHeaders.fields where !headers.contains(field.name) {
            headers.append(field.name, field.value)
        }
        if !headers.contains("User-Agent") { headers.append("User-Agent", "urlsessiond/\(version)") }
        if !headers.contains("Accept") { headers.append("Accept", "*/*") }
        if !headers.contains("Accept-Encoding") { headers.append("Accept-Encoding", "identity") }
        if let tag = specification.ifNoneMatch, !headers.contains("If-None-Match") {
            headers.append("If-None-Match", tag)
        }
        if let date = specification.ifModifiedSince, !headers.contains("If-Modified-Since") {
            headers.append("If-Modified-Since", date)
        }
        if let mediaType = body?.mediaType, !headers.contains("Content-Type") {
            headers.append("Content-Type", mediaType)
        }
        return headers
    }
}

extension Settlement {
    /// The settlement of a task that failed here, through no fault of its origin.
    static func failed(
        _ task: TaskID, _ error: TaskError, _ progress: TaskProgress = TaskProgress(),
        of request: TransferRequest? = nil
    ) -> Settlement {
        let result = TaskResult(progress: progress).failing(with: error)
        return Settlement(task: task, .completed(.failed, result, nil), of: request, leavesPartialFile: true)
    }
}
