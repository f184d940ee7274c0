import Base
import Buckets
import Core
import Files
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

/// The machine of a transfer, without an engine, a disk or a store.
struct TransferTests {
    static let now = Timestamp(milliseconds: 1_800_000_000_000)
    static let url = "https://a.example/x"

    static func transfer(
        kind: TaskKind = .download, _ progress: TaskProgress = TaskProgress(), body: BodyLocation? = nil,
        hasContentsBucket: Bool = false, _ specify: (inout TaskSpecification) -> Void = { _ in }
    ) throws -> Transfer {
        var specification = TaskSpecification(
            kind: kind, request: TransferRequest(url: url, method: kind == .upload ? "PUT" : "GET"))
        specify(&specification)
        let task = ClaimedTask(
            id: TaskID(1), session: SessionID(1), app: AppID(1), number: 1, lane: 1, specification: specification,
            progress: progress, body: body, resourceDeadline: nil)
        let session = KnownSession(configuration: SessionConfiguration(), app: "app", identifier: "session")
        return try Transfer(
            task, in: session, version: "1", node: nil, hasContentsBucket: hasContentsBucket, at: now)
    }

    static func world(_ exchange: UInt64 = 9, at now: Timestamp = now, canAsk: Bool = false) -> Transfer.Surroundings {
        Transfer.Surroundings(
            now: now, jitter: 0.5, exchange: ExchangeID(rawValue: exchange), canAsk: canAsk, largestContent: .max,
            uploadVersions: UploadVersions())
    }

    static func head(_ status: Int, _ fields: [(String, String)] = []) -> ResponseHead {
        ResponseHead(status: status, fields: HTTPFields(fields.map { HTTPField(name: $0.0, value: $0.1) }))
    }

    /// The head of a content that may come in segments.
    static func content(_ length: Int64) -> ResponseHead {
        head(200, [("ETag", "\"v\""), ("Content-Length", "\(length)"), ("Accept-Ranges", "bytes")])
    }

    static func result(
        _ outcome: ExchangeOutcome, _ head: ResponseHead? = nil, _ verdict: ResumeVerdict? = nil,
        _ received: ReceivedContent = .none, length: Int64 = 0
    ) -> ExchangeResult {
        var result = ExchangeResult(
            outcome: outcome, head: head, received: received, length: length, lengthVerified: true,
            digests: [.sha256: [0xAA]], metrics: TransactionMetrics(url: url, fetchStartDate: now), cookies: [])
        result.judgement = head.map { _ in HeadJudgement(.keep(at: 0), verdict) }
        return result
    }

    private static func feed(_ transfer: inout Transfer, _ events: Transfer.Event...) -> String {
        var effects: [Transfer.Effect] = []
        for event in events { effects = transfer.handle(event, in: world()) }
        return ([transfer.stage.word] + effects.map(\.word)).joined(separator: " ")
    }

    // MARK: Paths through the machine

    @Test func `A download reads its access, exchanges a request, and moves its content`() throws {
        var transfer = try Self.transfer()
        #expect(Self.feed(&transfer, .begin) == "ready note authorize")
        #expect(Self.feed(&transfer, .authorized(Access.Found())) == "asking start")
        let exchange = ExchangeID(rawValue: 9)
        let (head, verdict) = (Self.head(200), ResumeVerdict.append(at: 0))
        #expect(Self.feed(&transfer, .head(exchange, head, HeadJudgement(.keep(at: 0), verdict))) == "asking arrived")
        let end = Self.result(.complete, head, verdict, .memory([1]), length: 1)
        #expect(Self.feed(&transfer, .ended(exchange, end)) == "finishing finalize place")
    }

    @Test func `Events of an ended exchange have no effect`() throws {
        var transfer = try Self.transfer()
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let old = ExchangeID(rawValue: 3)
        let end = Self.result(.complete, Self.head(200), .append(at: 0), .memory([1]))
        #expect(Self.feed(&transfer, .ended(old, end)) == "asking")
        #expect(Self.feed(&transfer, .head(old, Self.content(8), HeadJudgement(.keep(at: 0)))) == "asking")
        #expect(Self.feed(&transfer, .informational(old, Self.head(104))) == "asking")
        #expect(transfer.progress.kept.point == nil)
    }

    @Test func `A task with a cache policy consults the store first, once`() throws {
        var transfer = try Self.transfer { $0.request.cachePolicy = .useProtocolCachePolicy }
        #expect(Self.feed(&transfer, .begin) == "ready note authorize")
        #expect(Self.feed(&transfer, .authorized(Access.Found())) == "consulting consult")
        transfer.attempt.reuse = Reuse(key: CacheKey())
        for (answer, effects) in [
            (CacheAnswer.load(confirming: nil, leads: true), "asking start"), (.follow, "ready settle"),
            (.fail, "ready settle"), (.gone, "ready settle"),
        ] {
            var next = transfer
            #expect(Self.feed(&next, .consulted(answer)) == effects)
            guard case .load = answer else { continue }
            #expect(Self.feed(&next, .authorized(Access.Found())) == "asking")
        }
        var stopped = transfer
        #expect(Self.feed(&stopped, .stop(.decided)) == "consulting")
        #expect(Self.feed(&stopped, .consulted(.load(confirming: nil, leads: true))) == "ready settle")
    }

    @Test func `A stored object is confirmed only for a task that can use it`() throws {
        let stored = StoredResponse(
            row: 1, cached: CachedResponse(), length: 100_000, digest: "ab",
            storage: .objects([StoredObject(key: "k", length: 100_000)]))
        for hasDestination in [false, true] {
            var transfer = try Self.transfer {
                $0.request.cachePolicy = .reloadRevalidatingCacheData
                if hasDestination { $0.destination = Destination(root: "r", path: "p", replace: false) }
            }
            _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
            transfer.attempt.reuse = Reuse(key: CacheKey())
            #expect(Self.feed(&transfer, .consulted(.load(confirming: stored, leads: true))) == "asking start")
            #expect((transfer.attempt.reuse?.stored == nil) == hasDestination)
        }
    }

    @Test func `Interrupted segments resume after the store was consulted`() throws {
        var progress = TaskProgress()
        let record = SegmentRecord {
            $0.total = 40 << 20
            $0.held = [HeldRange(0, 1 << 20)]
        }
        let point = ResumePoint {
            $0.url = Self.url
            $0.entityTag = "\"v\""
            $0.totalLength = 40 << 20
        }
        progress.kept = .segments(record, point, source: 0)
        var transfer = try Self.transfer(progress) {
            $0.segments = .count(4)
            $0.request.cachePolicy = .useProtocolCachePolicy
        }
        #expect(Self.feed(&transfer, .begin) == "ready note authorize")
        #expect(Self.feed(&transfer, .authorized(Access.Found())) == "consulting consult")
        transfer.attempt.reuse = Reuse(key: CacheKey())
        #expect(Self.feed(&transfer, .consulted(.load(confirming: nil, leads: true))) == "ready find")
        #expect(Self.feed(&transfer, .found(size: 40 << 20)) == "segmented keep note authorize")
        #expect(
            Self.feed(&transfer, .authorized(Access.Found())) == "segmented resumeSegments show widenLater widen")
    }

    @Test func `Requests with their own conditions or ranges, uploads and objects do not consult the cache`() throws {
        let changes: [(inout TaskSpecification) -> Void] = [
            { $0.request.headers.append("Range", "bytes=0-1") }, { $0.ifNoneMatch = "\"a\"" },
            { $0.ifModifiedSince = "x" },
            { $0.request.method = "POST" }, { $0.mirrors = ["https://b.example/x"] },
            { $0.request.headers.append("if-modified-since", "x") }, { $0.destinationObject = ObjectDestination() },
        ]
        for change in changes {
            let transfer = try Self.transfer {
                $0.request.cachePolicy = .useProtocolCachePolicy
                change(&$0)
            }
            #expect(!transfer.consultsCache)
        }
    }

    @Test func `A task with a begin question asks it before its first request`() throws {
        var transfer = try Self.transfer { $0.confirmBeforeStart = true }
        #expect(Self.feed(&transfer, .begin) == "ready ask")
    }

    @Test func `A challenge that a question follows ends its exchange, and any other has a page`() throws {
        let challenge = Self.head(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
        let judgement = HeadJudgement(.keep(at: 0), .notADownload(status: 401))
        for canAsk in [true, false] {
            var transfer = try Self.transfer()
            _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
            let effects = transfer.handle(
                .head(ExchangeID(rawValue: 9), challenge, judgement), in: Self.world(canAsk: canAsk))
            #expect(effects.map(\.word) == (canAsk ? ["arrived", "shorten"] : ["arrived"]))
        }
    }

    @Test func `A stop ends the exchange in flight, and a transfer without a connection at once`() throws {
        var transfer = try Self.transfer()
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        #expect(Self.feed(&transfer, .stop(.decided)) == "asking stop")
        let end = Self.result(.stopped)
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 9), end)) == "asking settle")

        var progress = TaskProgress()
        let point = ResumePoint {
            $0.url = Self.url
            $0.entityTag = "\"v\""
            $0.totalLength = 40 << 20
        }
        let record = SegmentRecord {
            $0.total = 40 << 20
            $0.held = [HeldRange(0, 1 << 20)]
        }
        progress.kept = .segments(record, point, source: 0)
        var segmented = try Self.transfer(progress) { $0.segments = .count(4) }
        #expect(Self.feed(&segmented, .begin) == "ready find")
        #expect(Self.feed(&segmented, .found(size: 40 << 20)) == "segmented keep note authorize")
        #expect(
            Self.feed(&segmented, .authorized(Access.Found()))
                == "segmented resumeSegments show widenLater widen")
        #expect(Self.feed(&segmented, .stop(.interrupted)) == "segmented settle")
    }

    @Test func `The completion of an outdated request does not count`() throws {
        var transfer = try Self.transfer()
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()), .stop(.outdated))
        #expect(Self.feed(&transfer, .stop(.interrupted)) == "asking stop")
        #expect(transfer.stop == .outdated)
        let end = Self.result(.complete, Self.head(200), .append(at: 0), .memory([1]))
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 9), end)) == "asking settle")
    }

    @Test func `No response to an outdated request delays or questions the new one`() throws {
        let exchange = ExchangeID(rawValue: 9)
        let ends = [
            Self.result(.complete, Self.head(503, [("Retry-After", "600")]), .notADownload(status: 503)),
            Self.result(.complete, Self.head(401, [("WWW-Authenticate", "Basic")]), .notADownload(status: 401)),
            Self.result(.failed(.disk(errno: 28))), Self.result(.failed(.reset)),
            Self.result(.failed(.certificateUntrusted)), Self.result(.complete, Self.head(404)),
        ]
        for end in ends {
            var transfer = try Self.transfer()
            _ = Self.feed(&transfer, .begin, .authorized(Access.Found()), .stop(.outdated))
            let effects = transfer.handle(.ended(exchange, end), in: Self.world(canAsk: true))
            #expect(effects.map(\.word) == ["settle"])
            guard case .settle(let settlement)? = effects.last, case .interrupted(let progress) = settlement.verdict
            else { throw Unexpected() }
            #expect(progress.attempts == AttemptLedger() && progress.lastAttempt == nil)
        }
    }

    @Test func `A failed fetch of a body is an attempt, unless it was stopped`() throws {
        for isStopped in [false, true] {
            var transfer = try Self.transfer(kind: .upload) { $0.bodyObject = ObjectReference() }
            #expect(Self.feed(&transfer, .begin) == "fetchingBody fetchBody")
            if isStopped { #expect(Self.feed(&transfer, .stop(.decided)) == "fetchingBody") }
            let after = Self.feed(&transfer, .failed(.source(.unexpected("away"))))
            #expect(after == (isStopped ? "fetchingBody settle" : "fetchingBody note note settle"))
        }
    }

    // MARK: Readable bytes

    /// The ranges that the last of some events publishes to readers.
    private static func shown(_ transfer: inout Transfer, _ events: Transfer.Event...) -> [ArrivingContent?] {
        var effects: [Transfer.Effect] = []
        for event in events { effects = transfer.handle(event, in: world()) }
        return effects.compactMap { if case .arrived(let content, _) = $0 { .some(content) } else { .none } }
    }

    @Test func `Every start at offset 0 is a new version, and a resumption is not`() throws {
        var transfer = try Self.transfer()
        let exchange = ExchangeID(rawValue: 9)
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let fresh = HeadJudgement(.keep(at: 0), .append(at: 0))
        let first = Self.shown(&transfer, .head(exchange, Self.content(1_000_000), fresh))
        let version = Self.now.milliseconds
        #expect(first == [ArrivingContent(version: version, total: 1_000_000)])
        #expect(Self.shown(&transfer, .durable(exchange, 400_000, nil)) == [], "shown once it is stored")
        #expect(
            ArrivingContent(transfer.progress) == ArrivingContent(version: version, total: 1_000_000, [0..<400_000]))

        var resumed = try Self.transfer(transfer.progress)
        _ = Self.feed(&resumed, .begin, .authorized(Access.Found()))
        let part = Self.head(206, [("ETag", "\"v\""), ("Content-Range", "bytes 400000-999999/1000000")])
        let rest = HeadJudgement(.keep(at: 400_000), .append(at: 400_000))
        #expect(
            Self.shown(&resumed, .head(exchange, part, rest))
                == [ArrivingContent(version: version, total: 1_000_000, [0..<400_000])])

        var restarted = try Self.transfer(transfer.progress)
        _ = Self.feed(&restarted, .begin, .authorized(Access.Found()))
        let again = HeadJudgement(.keep(at: 0), .restartWithThisBody)
        #expect(
            Self.shown(&restarted, .head(exchange, Self.content(1_000_000), again))
                == [ArrivingContent(version: version + 1, total: 1_000_000)], "though it is the same millisecond")
    }

    @Test func `A content for the bucket of contents is exposed to readers, and an error page is not`() throws {
        let exchange = ExchangeID(rawValue: 9)
        for (status, verdict) in [(200, ResumeVerdict.append(at: 0)), (404, .notADownload(status: 404))] {
            var transfer = try Self.transfer(hasContentsBucket: true)
            _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
            #expect(Self.feed(&transfer, .wanted(0, positions: [:])) == "asking")
            _ = Self.feed(&transfer, .head(exchange, Self.head(status), HeadJudgement(.keep(at: 0), verdict)))
            let isContent = status == 200
            #expect(Self.feed(&transfer, .wanted(nil, positions: [:])) == (isContent ? "asking expose" : "asking"))
            #expect(Self.feed(&transfer, .stop(.decided)) == "asking stop")
            #expect(Self.feed(&transfer, .wanted(0, positions: [:])) == "asking")
        }
    }

    @Test func `Parts of a content that cannot be resumed are stored for its readers`() throws {
        let exchange = ExchangeID(rawValue: 9)
        var transfer = try Self.transfer(hasContentsBucket: true)
        let fresh = HeadJudgement(.keep(at: 0), .append(at: 0))
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()), .head(exchange, Self.head(200), fresh))
        let part = ContentPart(number: 1, offset: 0, bytes: [1], plan: PartPlan(expected: nil))
        #expect(Self.feed(&transfer, .part(exchange, part)) == "writing write")
        var upload = MultipartUpload()
        (upload.key, upload.parts) = ("k", ["a"])
        #expect(Self.feed(&transfer, .wrote(exchange, .stored(upload))) == "writing record")
        upload.readable = MultipartUpload.Readable()
        #expect(Self.feed(&transfer, .wrote(exchange, .stored(upload))) == "writing record arrived advance")
    }

    @Test func `A small content is published when it is complete`() throws {
        var transfer = try Self.transfer()
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let head = Self.content(Int64(ServiceSettings.inlineLimit))
        let fresh = HeadJudgement(.keep(at: 0), .append(at: 0))
        #expect(Self.shown(&transfer, .head(ExchangeID(rawValue: 9), head, fresh)) == [nil])
    }

    @Test func `Bytes that cannot be resumed are published when synced, except error pages and objects`() throws {
        let exchange = ExchangeID(rawValue: 9)
        let fresh = HeadJudgement(.keep(at: 0), .append(at: 0))
        var transfer = try Self.transfer()
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let version = Self.now.milliseconds
        let head = Self.head(200, [("Transfer-Encoding", "chunked")])
        #expect(
            Self.shown(&transfer, .head(exchange, head, fresh)) == [ArrivingContent(version: version, total: nil)])
        #expect(
            Self.shown(&transfer, .durable(exchange, 400_000, nil))
                == [ArrivingContent(version: version, total: nil, [0..<400_000])])

        var page = try Self.transfer()
        _ = Self.feed(&page, .begin, .authorized(Access.Found()))
        let judgement = HeadJudgement(.keep(at: 0), .notADownload(status: 404))
        #expect(Self.shown(&page, .head(exchange, Self.head(404), judgement)) == [nil])
        #expect(Self.shown(&page, .durable(exchange, 400_000, nil)) == [])

        var object = try Self.transfer(hasContentsBucket: true)
        _ = Self.feed(&object, .begin, .authorized(Access.Found()))
        #expect(Self.shown(&object, .head(exchange, Self.content(1_000_000), fresh)) == [nil])
        var upload = try Self.transfer(kind: .upload)
        _ = Self.feed(&upload, .begin, .authorized(Access.Found()))
        #expect(Self.shown(&upload, .head(exchange, Self.content(1_000_000), HeadJudgement(.keep(at: 0)))) == [])
    }

    @Test func `An error page in place of the rest leaves no resumable bytes`() throws {
        var progress = TaskProgress()
        let point = ResumePoint { ($0.url, $0.entityTag, $0.offset) = (Self.url, "\"v\"", 400) }
        progress.kept = .file(point, source: 0)
        var transfer = try Self.transfer(progress)
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let exchange = ExchangeID(rawValue: 9)
        let judgement = HeadJudgement(.keep(at: 0), .notADownload(status: 404))
        _ = Self.feed(&transfer, .head(exchange, Self.head(404), judgement), .durable(exchange, 100_000, [1]))
        #expect(transfer.progress.kept == .none)
    }

    @Test func `A waiting reader shortens a connection`() throws {
        var (_, transfer) = try Self.stages()[4]
        for connection in 10...12 as ClosedRange<UInt64> {
            _ = transfer.handle(.connect(source: 0, isOwn: false, positions: [:]), in: Self.world(connection))
        }
        let wanted = Transfer.Event.wanted(TransferWalk.total - 1, positions: [:])
        #expect(Self.feed(&transfer, wanted) == "segmented shorten show widenLater")
        #expect(Self.feed(&transfer, wanted) == "segmented widenLater")
        #expect(Self.feed(&transfer, .stop(.interrupted), wanted) == "segmented")
    }

    // MARK: Segments and mirrors

    /// A download with a mirror that resumes in segments, before its first connection.
    private static func resumedSegments(
        of url: String = Self.url, source: Int = 0, isProven: Bool = true
    ) throws -> Transfer {
        let total = TransferWalk.total
        let record = SegmentRecord {
            $0.total = total
            $0.held = [HeldRange(0, 1 << 20)]
        }
        let point = ResumePoint {
            $0.url = url
            $0.entityTag = "\"v\""
            $0.totalLength = total
        }
        var progress = TaskProgress()
        progress.kept = .segments(record, point, source: source)
        var transfer = try Self.transfer(progress) {
            $0.request.url = url
            $0.segments = .count(4)
            $0.mirrors = ["https://b.example/x"]
            if isProven { $0.expectedDigest = ContentDigest(algorithm: .sha256, value: "aa") }
        }
        _ = feed(&transfer, .begin, .found(size: total), .authorized(Access.Found()))
        return transfer
    }

    private static func connect(_ transfer: inout Transfer, to source: Int, _ exchange: UInt64) {
        _ = transfer.handle(.connect(source: source, isOwn: false, positions: [:]), in: world(exchange))
    }

    @Test func `A source rests once its kept connections were closed too often in a row`() throws {
        var transfer = try Self.resumedSegments()
        var closed = Self.result(.failed(.http2Stream))
        closed.metrics.isReusedConnection = true
        let again = "segmented show advance widenLater replace"
        Self.connect(&transfer, to: 0, 20)
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 20), closed)) == again)
        // Bytes on disk end the row.
        Self.connect(&transfer, to: 0, 21)
        let exchange = ExchangeID(rawValue: 21)
        let start = try #require(transfer.segmented?.connections[exchange]?.bytes.lowerBound)
        _ = Self.feed(&transfer, .durable(exchange, start + 1000, nil))
        #expect(Self.feed(&transfer, .ended(exchange, closed)) == again)
        for number in 22...23 as ClosedRange<UInt64> {
            Self.connect(&transfer, to: 0, number)
            let after = Self.feed(&transfer, .ended(ExchangeID(rawValue: number), closed))
            #expect(after == (number == 22 ? again : "segmented hold show advance widenLater widen"))
        }
    }

    @Test func `A mirror may redirect to http if the task's own URL is of http`() throws {
        let location = [("Location", "http://c.example/y")]
        let led = Self.result(.complete, Self.head(307, location), .notADownload(status: 307))
        for (url, isFollowed) in [("http://a.example/x", true), (Self.url, false)] {
            var transfer = try Self.resumedSegments(of: url)
            Self.connect(&transfer, to: 1, 20)
            let after = Self.feed(&transfer, .ended(ExchangeID(rawValue: 20), led))
            #expect(
                after
                    == (isFollowed
                        ? "segmented show advance widenLater replace" : "segmented hold show advance widenLater widen"))
            #expect(transfer.segmented?.routes[1]?.url.text == (isFollowed ? "http://c.example/y" : nil))
        }
    }

    @Test func `A redirect that no segment has followed costs an attempt`() throws {
        var transfer = try Self.resumedSegments()
        let busy = Self.result(.complete, Self.head(503), .notADownload(status: 503))
        let location = [("Location", "https://c.example/y")]
        let led = Self.result(.complete, Self.head(307, location), .notADownload(status: 307))
        for (source, exchange) in [(0, 20), (1, 21), (1, 22)] as [(Int, UInt64)] {
            Self.connect(&transfer, to: source, exchange)
        }
        // The failure of a mirror's connection forgets its route, so that the other cannot follow.
        for (exchange, end) in [(20, busy), (21, busy), (22, led)] as [(UInt64, ExchangeResult)] {
            _ = Self.feed(&transfer, .ended(ExchangeID(rawValue: exchange), end))
        }
        let effects = transfer.handle(.widened, in: Self.world())
        #expect(effects.map(\.word) == ["tell", "note", "settle"])
        guard case .settle(let settlement)? = effects.last, case .retry(_, _, let progress) = settlement.verdict
        else { throw Unexpected() }
        #expect(progress.attempts.attempts == 1 && progress.keptOffset == 1 << 20)
    }

    @Test func `A server that has served the content and refuses ranges gets one request for the whole`() throws {
        var (_, transfer) = try Self.stages()[4]
        let refused = Self.result(.complete, Self.head(403), .notADownload(status: 403))
        Self.connect(&transfer, to: 0, 10)
        _ = Self.feed(&transfer, .ended(ExchangeID(rawValue: 10), refused))
        let end = try #require(transfer.segmented?.plan.segments[5]?.end)
        let first = Self.result(
            .complete, Self.content(TransferWalk.total), .append(at: 0), .file(path: "", length: end), length: end)
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 5), first), .widened) == "ready authorize")
        #expect(transfer.progress.avoidsSegments && transfer.progress.kept == .none)
        #expect(transfer.progress.attempts == AttemptLedger() && transfer.progress.bytesFetchedTwice == end)
        #expect(Self.feed(&transfer, .authorized(Access.Found())) == "asking start")
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 9), refused)) == "finishing finalize place")
    }

    @Test func `The segments of a mirror that is gone are left for the task's own URL`() throws {
        var transfer = try Self.resumedSegments(source: 1, isProven: false)
        Self.connect(&transfer, to: 1, 20)
        let gone = Self.result(.complete, Self.head(404), .notADownload(status: 404))
        let after = Self.feed(&transfer, .ended(ExchangeID(rawValue: 20), gone), .widened)
        #expect(after == "ready advance authorize")
        #expect(transfer.request.url == transfer.taskURL && transfer.request.source == 0)
        #expect(transfer.progress.kept == .none && transfer.progress.bytesFetchedTwice == 1 << 20)
    }

    @Test func `An origin that asks for a pause gets one, though a mirror is tried at once`() throws {
        var transfer = try Self.transfer { $0.mirrors = ["https://b.example/x"] }
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let busy = Self.result(
            .complete, Self.head(503, [("Retry-After", "20")]), .notADownload(status: 503), .memory([1]))
        let exchange = ExchangeID(rawValue: 9)
        let effects = transfer.handle(.ended(exchange, busy), in: Self.world())
        #expect(effects.map(\.word) == ["pause", "authorize"])
        guard case .pause(let origin, let wait)? = effects.first else { throw Unexpected() }
        #expect(origin == transfer.taskURL.origin && wait == .seconds(20))
        #expect(transfer.request.url.text == "https://b.example/x")

        // The mirror has nothing: the first failure counts, once.
        _ = Self.feed(&transfer, .authorized(Access.Found()))
        let gone = Self.result(.complete, Self.head(404), .notADownload(status: 404), .memory([1]))
        let last = transfer.handle(.ended(exchange, gone), in: Self.world())
        #expect(last.map(\.word) == ["tell", "note", "settle"], "the pause has begun")
        guard case .settle(let settlement)? = last.last, case .retry(_, _, let progress) = settlement.verdict
        else { throw Unexpected() }
        #expect(progress.attempts.attempts == 1 && progress.lastAttempt?.statusCode == 503)
        #expect(progress.transactions.map(\.statusCode) == [503, 404])
    }

    // MARK: Every stage, every event

    /// The result of each event in each stage. Events of exchanges are for the exchange in flight.
    @Test func `An origin that asks for a pause gets one from the last attempt, too`() throws {
        var transfer = try Self.transfer { $0.failOnHTTPError = true }
        transfer.progress.attempts.statusAttempts = 4
        transfer.progress.attempts.attempts = 4
        _ = Self.feed(&transfer, .begin, .authorized(Access.Found()))
        let busy = Self.result(
            .complete, Self.head(503, [("Retry-After", "20")]), .notADownload(status: 503), .memory([1]))
        #expect(Self.feed(&transfer, .ended(ExchangeID(rawValue: 9), busy)) == "finishing pause finalize place")
    }

    @Test func `A file that a task has adopted is removed, even if it has none of the bytes`() throws {
        var progress = TaskProgress()
        progress.adoptedFile = "partial/9"
        var transfer = try Self.transfer(progress, hasContentsBucket: true)
        _ = Self.feed(&transfer, .begin)
        #expect(transfer.hasPartialFile && transfer.progress.adoptedFile == nil)
    }

    @Test func `No request begins at an origin that has asked for a pause`() throws {
        var world = Self.world()
        world.pauses.note(OriginPause("https://b.example:443", app: 1, retryAfter: .seconds(50), at: Self.now))
        var redirected = try Self.transfer()
        _ = Self.feed(&redirected, .begin, .authorized(Access.Found()))
        let moved = Self.result(.complete, Self.head(302, [("Location", "https://b.example/x")]))
        let effects = redirected.handle(.ended(ExchangeID(rawValue: 9), moved), in: world)
        guard case .settle(let settlement)? = effects.last,
            case .retry(let at, false, let progress) = settlement.verdict
        else { throw Unexpected() }
        #expect(at == Self.now + .seconds(50) && progress.attempts.attempts == 0)

        var posted = try Self.transfer(kind: .upload, body: BodyLocation(storage: .bytes([1]), length: 1, digest: "")) {
            $0.request.method = "POST"
        }
        _ = Self.feed(&posted, .begin, .authorized(Access.Found()))
        posted.attempt.upload = nil
        var seen = Self.result(.complete, Self.head(303, [("Location", "https://b.example/x")]))
        seen.metrics.countOfRequestBodyBytesSent = 1
        let followed = posted.handle(.ended(ExchangeID(rawValue: 9), seen), in: world)
        #expect(followed.map(\.word) == ["authorize"], "the upload is not repeated")

        var waiting = try Self.transfer { $0.mirrors = ["https://b.example/x"] }
        _ = Self.feed(&waiting, .begin, .authorized(Access.Found()))
        let gone = Self.result(.complete, Self.head(404), .notADownload(status: 404), .memory([1]))
        guard case .settle(let wait)? = waiting.handle(.ended(ExchangeID(rawValue: 9), gone), in: world).last,
            case .retry(Self.now + .seconds(50), false, _) = wait.verdict
        else { throw Unexpected() }

        var mirrored = try Self.transfer { $0.mirrors = ["https://b.example/x", "https://c.example/x"] }
        _ = Self.feed(&mirrored, .begin, .authorized(Access.Found()))
        let failure = Self.result(.failed(.connectFailed))
        #expect(mirrored.handle(.ended(ExchangeID(rawValue: 9), failure), in: world).map(\.word) == ["authorize"])
        #expect(mirrored.request.url.text == "https://c.example/x")
    }

    @Test func `The field of the request precedes a credential that no challenge has led to`() throws {
        let stored = KnownCredential(
            credentialId: "c",
            space: ProtectionSpace(
                host: "a.example", port: 443, scheme: "https", realm: "r", authenticationMethod: .basic),
            credential: Credential(user: "u", password: "p"), createdAt: Self.now)
        func credential(own: Bool, tried: Bool) throws -> Credential? {
            var transfer = try Self.transfer {
                if own { $0.request.headers.append("Authorization", "Bearer mine") }
            }
            if tried { transfer.progress.credentialsTried = ["c"] }
            _ = Self.feed(&transfer, .begin, .authorized(Access.Found(stored: [stored])))
            return transfer.attempt.access.credential
        }
        #expect(try credential(own: false, tried: false)?.user == "u")
        #expect(try credential(own: true, tried: false) == nil)
        #expect(try credential(own: true, tried: true)?.user == "u")
    }

    @Test func `Every event is handled in every stage`() throws {
        var table: [String] = []
        for (stage, transfer) in try Self.stages() {
            for event in Self.events(transfer.exchange ?? transfer.exchanges.first ?? ExchangeID(rawValue: 1)) {
                var next = transfer
                let effects = next.handle(event, in: Self.world(77)).map(\.word)
                table.append("\(stage) \(event.word): " + ([next.stage.word] + effects).joined(separator: " "))
            }
        }
        let missing = Self.table.filter { !table.contains($0) }
        #expect(table == Self.table, "not so any more: \(missing.joined(separator: "\n"))")
    }

    /// A transfer in each stage.
    private static func stages() throws -> [(String, Transfer)] {
        func at(_ stage: Transfer.Stage, _ transfer: Transfer) -> (String, Transfer) {
            var transfer = transfer
            transfer.stage = stage
            return (stage.word, transfer)
        }
        let exchange = ExchangeID(rawValue: 5)
        let whole = result(.complete, content(8), .append(at: 0), .file(path: "", length: 8), length: 8)
        var inSegments = try transfer { $0.segments = .count(4) }
        inSegments.progress.kept = Kept(
            ResumePoint.make(from: content(TransferWalk.total), method: "GET", url: url, receivedAt: now), nil,
            source: 0)
        inSegments.stage = .asking(exchange)
        _ = inSegments.considerSegments(exchange, content(TransferWalk.total), .append(at: 0))
        let plain = try transfer()
        let object = try transfer(hasContentsBucket: true)
        return [
            at(.ready, plain), at(.consulting, plain), at(.fetchingBody, plain), at(.asking(exchange), plain),
            (inSegments.stage.word, inSegments),
            at(.verifying(whole), plain), at(.writing(Transfer.Writing(exchange: exchange, result: whole)), object),
            at(.finishing, plain),
        ]
    }

    /// One event of each kind.
    private static func events(_ exchange: ExchangeID) -> [Transfer.Event] {
        let part = ContentPart(number: 1, offset: 0, bytes: [1], plan: PartPlan(expected: 8))
        let finished = ObjectWriter.Finished(digests: [.sha256: [0xAA]])
        return [
            .found(size: 8), .authorized(Access.Found()), .consulted(.load(confirming: nil, leads: true)),
            .failed(.start(Unexpected())),
            .informational(exchange, head(104)),
            .head(exchange, content(8), HeadJudgement(.keep(at: 0), .append(at: 0))),
            .durable(exchange, 4, nil), .part(exchange, part), .wrote(exchange, .finished(finished)),
            .ended(exchange, result(.failed(.reset))), .connect(source: 0, isOwn: true, positions: [:]), .widened,
            .read(Transfer.Reading(result: .success(nil), position: 8, digests: [.sha256: [0xAA]])),
            .wanted(0, positions: [:]), .stop(.decided),
        ]
    }

    private static let table = """
        ready found: ready note authorize
        ready authorized: asking start
        ready consulted: ready
        ready failed: ready note settle
        ready informational: ready
        ready head: ready
        ready durable: ready record
        ready part: ready
        ready wrote: ready
        ready ended: ready
        ready connect: ready
        ready widened: ready
        ready read: ready
        ready wanted: ready
        ready stop: ready
        consulting found: consulting
        consulting authorized: consulting
        consulting consulted: asking start
        consulting failed: consulting note settle
        consulting informational: consulting
        consulting head: consulting
        consulting durable: consulting record
        consulting part: consulting
        consulting wrote: consulting
        consulting ended: consulting
        consulting connect: consulting
        consulting widened: consulting
        consulting read: consulting
        consulting wanted: consulting
        consulting stop: consulting
        fetchingBody found: fetchingBody
        fetchingBody authorized: fetchingBody
        fetchingBody consulted: fetchingBody
        fetchingBody failed: fetchingBody note note settle
        fetchingBody informational: fetchingBody
        fetchingBody head: fetchingBody
        fetchingBody durable: fetchingBody record
        fetchingBody part: fetchingBody
        fetchingBody wrote: fetchingBody
        fetchingBody ended: fetchingBody
        fetchingBody connect: fetchingBody
        fetchingBody widened: fetchingBody
        fetchingBody read: fetchingBody
        fetchingBody wanted: fetchingBody
        fetchingBody stop: fetchingBody
        asking found: asking
        asking authorized: asking
        asking consulted: asking
        asking failed: asking note settle
        asking informational: asking
        asking head: asking arrived
        asking durable: asking record
        asking part: writing write
        asking wrote: asking
        asking ended: asking tell note settle
        asking connect: asking
        asking widened: asking
        asking read: asking
        asking wanted: asking
        asking stop: asking stop
        segmented found: segmented
        segmented authorized: segmented resumeSegments show widenLater widen
        segmented consulted: segmented
        segmented failed: segmented note settle
        segmented informational: segmented
        segmented head: segmented widenLater
        segmented durable: segmented record show advance
        segmented part: segmented
        segmented wrote: segmented
        segmented ended: segmented hold show advance widenLater widen
        segmented connect: segmented start show
        segmented widened: segmented
        segmented read: segmented widenLater
        segmented wanted: segmented widenLater
        segmented stop: segmented stop
        verifying found: verifying
        verifying authorized: verifying
        verifying consulted: verifying
        verifying failed: verifying note settle
        verifying informational: verifying
        verifying head: verifying
        verifying durable: verifying record
        verifying part: verifying
        verifying wrote: verifying
        verifying ended: verifying
        verifying connect: verifying
        verifying widened: verifying
        verifying read: finishing finalize place
        verifying wanted: verifying
        verifying stop: verifying
        writing found: writing
        writing authorized: writing
        writing consulted: writing
        writing failed: writing note settle
        writing informational: writing
        writing head: writing arrived
        writing durable: writing record
        writing part: writing write
        writing wrote: finishing finalize place
        writing ended: writing endWriting
        writing connect: writing
        writing widened: writing
        writing read: writing
        writing wanted: writing
        writing stop: writing
        finishing found: finishing
        finishing authorized: finishing
        finishing consulted: finishing
        finishing failed: finishing note settle
        finishing informational: finishing
        finishing head: finishing
        finishing durable: finishing record
        finishing part: finishing
        finishing wrote: finishing
        finishing ended: finishing
        finishing connect: finishing
        finishing widened: finishing
        finishing read: finishing
        finishing wanted: finishing
        finishing stop: finishing
        """.split(separator: "\n").map { String($0) }

    // MARK: Walks

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `A random walk has one request at a time, settles each, and ends`(seed: UInt64) throws {
        var walk = try TransferWalk(seed: seed)
        try walk.run()
    }
}

extension Transfer.Stage {
    var word: String { String("\(self)".prefix { $0.isLetter }) }
}

extension Transfer.Effect {
    var word: String { String("\(self)".prefix { $0.isLetter }) }
}
