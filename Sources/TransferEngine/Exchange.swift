import Base
import CCurl
import Core
import Glibc
import Synchronization

/// One exchange on its loop, from the request to the report that it ended.
///
/// ```
/// preparing ──▶ running ──▶ concluding ──▶ ended
///     │            └──▶ probing ──▲
///     └───────────────────────────┘
/// ```
/// `preparing` waits for names, the body's file and the digests of what is there already; `running` belongs to
/// libcurl; `probing` asks for the key of a server that was not trusted; `concluding` waits for the disk.
final class Exchange {
    enum Stage {
        case preparing
        case running
        case probing(Ending)
        case concluding(Ending)
    }

    /// What there is to wait for before libcurl gets the request.
    struct Preparations: OptionSet {
        let rawValue: Int
        static let target = Preparations(rawValue: 1)
        static let proxy = Preparations(rawValue: 2)
        static let body = Preparations(rawValue: 4)
        static let prefix = Preparations(rawValue: 8)
        static let names: Preparations = [.target, .proxy]
    }

    /// Whose name was looked up.
    enum Name: Sendable {
        case target, proxy

        var preparation: Preparations { self == .proxy ? .proxy : .target }
    }

    /// How it ended, as far as it is known before the disk is done.
    struct Ending {
        var outcome: ExchangeOutcome
        var code: CURLcode
        var message: String
        var serverPublicKey: String?
    }

    let request: ExchangeRequest
    let url: ParsedURL
    let meter: ExchangeMeter
    let sink: ContentSink
    let state: LoopState
    let room: DiskRoom
    /// Where heads go as they come.
    let report: @Sendable (ExchangeReport) -> Void

    var stage = Stage.preparing
    var preparations: Preparations = []
    /// Names whose look-up has not begun, since others come first.
    var waitsForTurn: Preparations = []
    /// When the last of its look-ups began, or the wait for a turn (monotonic ms).
    var namesSince: Int64
    var body: BodySource?
    var easy: Easy?
    var pool: ConnectionPool?
    /// Judged addresses for libcurl, `host:port:address,…`.
    var pins: [String] = []

    /// The partial file is needed, holding this many bytes. Taken by the loop.
    var wantedPrefix: Int64?

    // Times, monotonic ms.
    let started: Int64
    var lastActivity: Int64
    var lastSync: Int64

    // What the answer said.
    var parser = HeadParser()
    var tunnelParser = HeadParser()
    /// The proxy's last answer to the request for a tunnel.
    var tunnelHead: ResponseHead?
    /// `head` is that answer.
    var isOfProxy = false
    /// A final head that libcurl may answer by itself (a digest challenge).
    var provisionalHead: ResponseHead?
    var head: ResponseHead?
    var judgement: HeadJudgement?
    var side: [UInt8] = []
    var isSideTruncated = false
    var isLengthVerified = false
    /// The length of the body as its head says.
    var announcedLength: Int64?
    /// The answer named a length and came in chunks.
    var hasTwoFramings = false
    var bytesReceived: Int64 = 0

    /// Why a callback ended the exchange; says more than libcurl's code.
    var fault: TransferFault?
    /// Enough was read: the code is no failure.
    var isEnough = false
    /// What the egress policy refused: for the operator's log, not for the app.
    var denied: (address: IPAddress, port: UInt16)?
    var isRequestSent = false
    /// When the last byte of our body was given to libcurl.
    var bodySentAt: Int64?
    /// libcurl waits for the partial file.
    var waitsForFile = false
    /// libcurl waits until more of what is at hand is recorded.
    var waitsForRecord = false
    /// Bytes of content that need not be received again.
    private(set) var recorded: Int64
    /// The origin asked for calm by HTTP/2.
    var avoidsHTTP2 = false
    /// When the limit of bytes a second lets libcurl go on.
    var receivesAgain: Int64?
    var sendsAgain: Int64?
    /// What callbacks told libcurl.
    var isReceivingPaused = false
    var isSendingPaused = false
    var receiving: Throttle
    var sending: Throttle
    /// The partial file is being opened.
    var isOpening = false
    var isSyncing = false
    var needsAttention = false
    /// The socket of an address that could not be reached is gone.
    var lostSocket = false

    /// What the cookie engine holds, noted before the handle is given back.
    var cookies: [String]
    /// The given cookies have to be known to the engine before the answer's, though they were not sent.
    var lateCookies: [String] = []

    /// The server asked for a certificate, and would do without one at least so far as to answer.
    var asksForCertificate = false
    var metrics = ExchangeMetrics()
    /// When libcurl got the request (ms since 1970).
    var launched: Int64 = 0

    init(
        _ request: ExchangeRequest, _ url: ParsedURL, _ meter: ExchangeMeter, _ state: LoopState,
        _ room: DiskRoom, report: @escaping @Sendable (ExchangeReport) -> Void
    ) {
        self.request = request
        self.url = url
        self.meter = meter
        self.state = state
        self.room = room
        self.report = report
        sink = ContentSink(request.sink)
        recorded = sink.length
        cookies = request.cookies ?? []
        receiving = Throttle(request.bandwidthLimit, at: state.now)
        sending = Throttle(request.bandwidthLimit, at: state.now)
        started = state.now
        namesSince = state.now
        lastActivity = state.now
        lastSync = state.now
        meter.length.store(sink.length, ordering: .relaxed)
    }

    var id: ExchangeID { request.id }

    var resumeOffset: Int64 {
        if case .content(_, let offset, _, _, _) = request.sink { offset } else { 0 }
    }

    /// Asks the loop to look here after libcurl's callbacks.
    func callForAttention() {
        guard !needsAttention else { return }
        needsAttention = true
        state.needingAttention.append(self)
    }

    func attentionBegins() { needsAttention = false }

    // MARK: Time

    static let syncInterval: Int64 = 2000
    /// Half of what may be lost, so that bytes go on coming while these are synced and their offset is stored.
    static let syncBytes: Int64 = 4 << 20

    /// Whether the file should be synced now.
    var wantsSync: Bool {
        guard !isSyncing, sink.unsynced > 0 else { return false }
        return sink.unsynced >= Self.syncBytes || state.now >= lastSync + Self.syncInterval
    }

    /// The fault of a limit that has passed, if any.
    var overdue: TransferFault? {
        if let total = request.totalTimeout, state.now >= started + total.milliseconds { return .totalTimeout }
        switch stage {
        case .preparing where !preparations.isDisjoint(with: .names):
            guard state.now >= namesSince + request.connectTimeout.milliseconds else { return nil }
            return waitsForTurn.isEmpty ? .couldNotResolve : .nameNotAsked
        case .running where isRequestSent && !isPaused:
            return state.now >= lastActivity + request.idleTimeout.milliseconds ? .idleTimeout : nil
        default: return nil
        }
    }

    /// When to look at this exchange again at the latest.
    var deadline: Int64 {
        var deadline = Int64.max
        if let total = request.totalTimeout { deadline = started.addingSaturated(total.milliseconds) }
        switch stage {
        case .preparing where !preparations.isDisjoint(with: .names):
            deadline = min(deadline, namesSince.addingSaturated(request.connectTimeout.milliseconds))
        case .running:
            deadline = min(deadline, receivesAgain ?? .max, sendsAgain ?? .max)
            if isRequestSent && !isPaused {
                deadline = min(deadline, lastActivity.addingSaturated(request.idleTimeout.milliseconds))
            }
            if sink.unsynced > 0 && !isSyncing { deadline = min(deadline, lastSync + Self.syncInterval) }
        default: break
        }
        return deadline
    }

    /// We make libcurl wait: silence is not the peer's.
    var isPaused: Bool { waitsForFile || waitsForRecord || receivesAgain != nil || sendsAgain != nil }

    /// Asks the egress policy, and remembers what it refused.
    func mayReach(_ address: IPAddress, _ port: UInt16) -> Bool {
        guard !request.egress.permits(address, port: port) else { return true }
        denied = (address, port)
        return false
    }

    // MARK: What is recorded

    /// Whether so many bytes more would make more unrecorded ones than there may be.
    func exceedsRecord(by count: Int) -> Bool {
        guard let maximum = request.maximumUnrecorded else { return false }
        return sink.length + Int64(count) - recorded > maximum
    }

    /// Takes how far the content is recorded. True where libcurl waited for that.
    func note(recorded offset: Int64) -> Bool {
        recorded = max(recorded, min(offset, sink.length))
        defer { waitsForRecord = false }
        return waitsForRecord
    }

    /// The content goes on from another offset than was asked for.
    func forgetRecord(beyond offset: Int64) { recorded = min(recorded, offset) }

    // MARK: The end

    /// What libcurl's code means here.
    func ending(_ code: CURLcode) -> Ending {
        if code == CURLE_OK { settleAtEnd() }
        let message = code == CURLE_OK ? "" : (easy?.errorMessage ?? "")
        let text = message.isEmpty && code != CURLE_OK ? CurlError(code: code).description : message
        return Ending(outcome: outcome(code, text), code: code, message: text)
    }

    func outcome(_ code: CURLcode, _ message: String) -> ExchangeOutcome {
        if let fault { return .failed(fault) }
        if judgement?.body == .stop { return .stopped }
        if code == CURLE_OK || isEnough { return head == nil ? .failed(.emptyReply) : .complete }
        if denied != nil { return .failed(.egressDenied) }
        if wasAnsweredEarly(code) { return .complete }
        let fault = TransferFault(code, facts(message))
        if fault == .proxyAuthenticationRequired, let tunnelHead {
            (head, isOfProxy) = (tunnelHead, true)
            return .complete
        }
        return .failed(fault)
    }

    /// The server answered in the middle of our body and closed: its answer is what counts (RFC 9110 section 10.1.1).
    func wasAnsweredEarly(_ code: CURLcode) -> Bool {
        guard let head, let body, body.position < body.length || code == CURLE_SEND_ERROR else { return false }
        return (head.status >= 300 || hasWholeAnswer) && (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR)
    }

    /// The server answered in the middle of our body and takes no more of it.
    var isAnsweredEarly: Bool {
        guard let body, body.position < body.length else { return false }
        return hasWholeAnswer
    }

    private var hasWholeAnswer: Bool { head != nil && !hasTwoFramings && announcedLength == bytesReceived }

    func facts(_ message: String) -> TransferFault.Facts {
        TransferFault.Facts(
            message: message, errno: Int32(truncatingIfNeeded: easy?.number(CURLINFO_OS_ERRNO) ?? 0),
            verifyResult: easy?.number(CURLINFO_SSL_VERIFYRESULT) ?? 0, isRequestSent: isRequestSent,
            hasHead: head != nil, hasProxy: request.proxy != nil)
    }

    /// The result, when the disk is done too.
    func result(_ ending: Ending) -> ExchangeResult {
        let isComplete = ending.outcome == .complete
        let wasKept = if case .keep? = judgement?.body { true } else { false }
        var result = ExchangeResult(
            outcome: ending.outcome, head: head, received: sink.content(wasKept: wasKept),
            receivedTruncated: sink.isTruncated, side: side, sideTruncated: isSideTruncated, length: sink.length,
            lengthVerified: isLengthVerified, digests: isComplete && wasKept ? sink.finishDigests() : [:],
            partialSHA256: isComplete ? nil : sink.sha256,
            bytesSent: metrics.requestBodyBytesSent, bytesReceived: bytesReceived, metrics: metrics,
            curlCode: ending.code.rawValue, curlMessage: ending.message, serverPublicKey: ending.serverPublicKey,
            cookies: cookies)
        result.isOfProxy = isOfProxy
        result.judgement = judgement
        result.asksForCertificate = asksForCertificate
        return result
    }
}

@available(*, unavailable)
extension Exchange: Sendable {}
