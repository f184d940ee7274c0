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
    enum Name: Sendable { case target, proxy }

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
    /// Where heads go as they come.
    let report: @Sendable (ExchangeReport) -> Void

    var stage = Stage.preparing
    var preparations: Preparations = []
    var body: BodySource?
    var easy: Easy?
    var pool: ConnectionPool?
    /// Judged addresses for libcurl, `host:port:address,…`.
    var pins: [String] = []

    // Times, monotonic ms.
    let started: Int64
    var lastActivity: Int64
    var lastSync: Int64

    // What the answer said.
    private var parser = HeadParser()
    /// A final head that libcurl may answer by itself (a digest challenge).
    private var provisionalHead: ResponseHead?
    private(set) var head: ResponseHead?
    private(set) var disposition: BodyDisposition?
    private(set) var side: [UInt8] = []
    private(set) var isSideTruncated = false
    private(set) var isLengthVerified = false
    private(set) var bytesReceived: Int64 = 0

    /// Why a callback ended the exchange; says more than libcurl's code.
    var fault: TransferFault?
    /// Enough was read: the code is no failure.
    private(set) var isEnough = false
    /// What the egress policy refused: for the operator's log, not for the app.
    var denied: (address: IPAddress, port: UInt16)?
    private(set) var isRequestSent = false
    /// libcurl waits for the partial file.
    private var waitsForFile = false
    /// When the limit of bytes a second lets libcurl go on.
    private var receivesAgain: Int64?
    private var sendsAgain: Int64?
    /// What callbacks told libcurl.
    private var isReceivingPaused = false
    private var isSendingPaused = false
    private var receiving: Throttle
    private var sending: Throttle
    /// The partial file is being opened.
    var isOpening = false
    var isSyncing = false
    private var needsAttention = false

    var metrics = ExchangeMetrics()
    /// When libcurl got the request (ms since 1970).
    var launched: Int64 = 0

    init(
        _ request: ExchangeRequest, _ url: ParsedURL, _ meter: ExchangeMeter, _ state: LoopState,
        report: @escaping @Sendable (ExchangeReport) -> Void
    ) {
        self.request = request
        self.url = url
        self.meter = meter
        self.state = state
        self.report = report
        sink = ContentSink(request.sink)
        receiving = Throttle(request.bandwidthLimit, at: state.now)
        sending = Throttle(request.bandwidthLimit, at: state.now)
        started = state.now
        lastActivity = state.now
        lastSync = state.now
        meter.length.store(sink.length, ordering: .relaxed)
    }

    var id: ExchangeID { request.id }

    var resumeOffset: Int64 {
        if case .content(_, let offset, _, _) = request.sink { offset } else { 0 }
    }

    /// Asks the loop to look here after libcurl's callbacks.
    private func callForAttention() {
        guard !needsAttention else { return }
        needsAttention = true
        state.needingAttention.append(self)
    }

    func attentionBegins() { needsAttention = false }

    // MARK: Time

    private static let syncInterval: Int64 = 2000
    private static let syncBytes: Int64 = 8 << 20

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
            return state.now >= started + request.connectTimeout.milliseconds ? .couldNotResolve : nil
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
            deadline = min(deadline, started.addingSaturated(request.connectTimeout.milliseconds))
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
    private var isPaused: Bool { waitsForFile || receivesAgain != nil || sendsAgain != nil }

    /// Asks the egress policy, and remembers what it refused.
    func mayReach(_ address: IPAddress, _ port: UInt16) -> Bool {
        guard !request.egress.permits(address, port: port) else { return true }
        denied = (address, port)
        return false
    }

    // MARK: What libcurl says

    /// The request is about to be written. False where the peer may not be reached.
    func beforeRequest(remote: String, port: UInt16) -> Bool {
        guard let address = IPAddress(remote), mayReach(address, port) else { return false }
        isRequestSent = true
        lastActivity = state.now
        meter.enter(.sending)
        callForAttention()
        return true
    }

    /// A socket is wanted. False where the address may not be reached.
    func mayConnect(to address: IPAddress, port: UInt16) -> Bool {
        guard mayReach(address, port) else { return false }
        if meter.phase.load(ordering: .relaxed) == ExchangeProgress.Phase.resolving.rawValue {
            meter.enter(.connecting)
        }
        return true
    }

    /// One header line. False ends the exchange.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        lastActivity = state.now
        do throws(HeadParser.Refused) {
            switch try parser.take(line) {
            case nil: return true
            case .informational(let head):
                report(.informational(id, head))
                return true
            case .final(let head):
                if isChallenge(head) {
                    provisionalHead = head
                    return true
                }
                return try settle(head)
            }
        } catch {
            fault = error.fault
            return false
        }
    }

    /// Whether libcurl may answer this head itself; it drops the body then, so the first byte of one settles it.
    private func isChallenge(_ head: ResponseHead) -> Bool {
        if case .digest = request.httpAuthentication, head.status == 401 { return true }
        if case .digest = request.proxy?.authentication, head.status == 407 { return true }
        return false
    }

    /// A final head without body that was held back is the answer after all.
    func settleAtEnd() {
        guard let head = provisionalHead, self.head == nil else { return }
        do throws(HeadParser.Refused) { _ = try settle(head) } catch { fault = error.fault }
    }

    /// Judges the final head. False ends the exchange.
    private func settle(_ head: ResponseHead) throws(HeadParser.Refused) -> Bool {
        provisionalHead = nil
        let announced = try head.contentLength()
        self.head = head
        meter.enter(.receiving)
        noteConnection()
        let isChunked = head.fields.contains("Transfer-Encoding")
        isLengthVerified =
            announced != nil || isChunked || head.httpVersion == "2" || request.method == "HEAD" || head.status == 204
            || head.status == 304
        // Two framings at once: what comes after this answer cannot be trusted.
        if announced != nil && isChunked { easy?.set(CURLOPT_FORBID_REUSE, 1) }
        let disposition = request.judge(head)
        self.disposition = disposition
        report(.head(id, head))
        switch disposition {
        case .keep(let offset): return keep(at: offset, announced: isChunked ? nil : announced)
        case .discard: return true
        case .stop: return false
        }
    }

    private func keep(at offset: Int64, announced: Int64?) -> Bool {
        guard (0...sink.length).contains(offset) else {
            fault = .prefixMissing
            return false
        }
        let length = announced.map { $0.addingSaturated(offset) }
        if request.method != "HEAD" {
            meter.expected.store(length ?? -1, ordering: .relaxed)
            if let length, let maximum = request.maximumBytes, length > maximum {
                fault = .tooLarge
                return false
            }
        }
        if offset != sink.length {
            wantedPrefix = offset
            sink.restart()
        } else if sink.file == nil, length.map(sink.isLarge) ?? false, request.method != "HEAD" {
            wantedPrefix = 0
        }
        if wantedPrefix != nil { callForAttention() }
        meter.length.store(offset, ordering: .relaxed)
        return true
    }

    /// The partial file is needed, holding this many bytes. Taken by the loop.
    var wantedPrefix: Int64?

    enum Taken { case all, pause, end }

    /// Bytes of the body.
    func take(_ bytes: UnsafeRawBufferPointer) -> Taken {
        lastActivity = state.now
        if let head = provisionalHead, self.head == nil {
            do throws(HeadParser.Refused) {
                guard try settle(head) else { return .end }
            } catch {
                fault = error.fault
                return .end
            }
        }
        switch disposition {
        case .keep: return keep(bytes)
        case .discard(let limit): return discard(bytes, limit)
        case .stop, nil: return .end
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) -> Taken {
        if let maximum = request.maximumBytes, sink.length + Int64(bytes.count) > maximum {
            fault = .tooLarge
            return .end
        }
        if isOpening || wantedPrefix != nil { return pauseForFile() }
        if let again = receiving.wait(at: state.now) {
            receivesAgain = again
            isReceivingPaused = true
            callForAttention()
            return .pause
        }
        let wasSynced = sink.unsynced == 0
        switch sink.write(bytes) {
        case .taken:
            count(bytes.count)
            if sink.unsynced > 0, wasSynced || wantsSync { callForAttention() }
            return .all
        case .needsFile:
            wantedPrefix = 0
            return pauseForFile()
        case .full:
            count(bytes.count)
            isEnough = true
            return .end
        case .failed(let error):
            fault = .disk(errno: error.errno)
            return .end
        }
    }

    private func pauseForFile() -> Taken {
        waitsForFile = true
        isReceivingPaused = true
        callForAttention()
        return .pause
    }

    private func discard(_ bytes: UnsafeRawBufferPointer, _ limit: Int) -> Taken {
        let room = limit - side.count
        side.append(contentsOf: bytes.prefix(room))
        count(bytes.count)
        guard bytes.count > room else { return .all }
        isSideTruncated = true
        isEnough = true
        return .end
    }

    private func count(_ count: Int) {
        receiving.took(count)
        bytesReceived += Int64(count)
        meter.received.store(bytesReceived, ordering: .relaxed)
        meter.length.store(sink.length, ordering: .relaxed)
    }

    enum Given { case bytes(Int), pause, failed }

    /// Bytes of our body for libcurl.
    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Given {
        lastActivity = state.now
        guard let body else { return .bytes(0) }
        if let again = sending.wait(at: state.now) {
            sendsAgain = again
            isSendingPaused = true
            callForAttention()
            return .pause
        }
        do throws(DiskError) {
            let count = try body.read(into: buffer)
            sending.took(count)
            meter.sent.store(body.position, ordering: .relaxed)
            return .bytes(count)
        } catch {
            fault = .bodySource(errno: error.errno)
            return .failed
        }
    }

    func setLimit(_ limit: Int64?) {
        receiving.set(limit, at: state.now)
        sending.set(limit, at: state.now)
        // Both ask again.
        if receivesAgain != nil { receivesAgain = state.now }
        if sendsAgain != nil { sendsAgain = state.now }
    }

    /// The partial file is there.
    func fileIsReady() { waitsForFile = false }

    /// Lets libcurl go on where nothing holds it back any more. A code other than `CURLE_OK` ended the exchange.
    func resumeIfDue() -> CURLcode {
        guard let easy, case .running = stage else { return CURLE_OK }
        if (receivesAgain ?? .max) <= state.now { receivesAgain = nil }
        if (sendsAgain ?? .max) <= state.now { sendsAgain = nil }
        let receivesNow = isReceivingPaused && !waitsForFile && receivesAgain == nil
        let sendsNow = isSendingPaused && sendsAgain == nil
        guard receivesNow || sendsNow else { return CURLE_OK }
        if receivesNow { isReceivingPaused = false }
        if sendsNow { isSendingPaused = false }
        lastActivity = state.now
        return curl_easy_pause(
            easy.raw, (isReceivingPaused ? CURLPAUSE_RECV : 0) | (isSendingPaused ? CURLPAUSE_SEND : 0))
    }

    /// Whether a limit of bytes a second lets libcurl go on now.
    var mayGoOn: Bool {
        guard case .running = stage else { return false }
        return min(receivesAgain ?? .max, sendsAgain ?? .max) <= state.now
    }

    /// What can only be asked while the connection is in use.
    private func noteConnection() {
        guard url.isSecure, metrics.tlsVersion == nil, let session = easy?.tlsSession,
            let facts = Curl.tlsFacts(of: session)
        else { return }
        metrics.tlsVersion = facts.version
        metrics.tlsCipher = facts.cipher
    }

    // MARK: The end

    /// What libcurl's code means here.
    func ending(_ code: CURLcode) -> Ending {
        if code == CURLE_OK { settleAtEnd() }
        let message = code == CURLE_OK ? "" : (easy?.errorMessage ?? "")
        let text = message.isEmpty && code != CURLE_OK ? CurlError(code: code).description : message
        return Ending(outcome: outcome(code, text), code: code, message: text)
    }

    private func outcome(_ code: CURLcode, _ message: String) -> ExchangeOutcome {
        if let fault { return .failed(fault) }
        if disposition == .stop { return .stopped }
        if code == CURLE_OK || isEnough { return head == nil ? .failed(.emptyReply) : .complete }
        if denied != nil { return .failed(.egressDenied) }
        if wasAnsweredEarly(code) { return .complete }
        return .failed(TransferFault(code, facts(message)))
    }

    /// The server refused in the middle of our body and closed: its answer is what counts (RFC 9110 section 10.1.1).
    private func wasAnsweredEarly(_ code: CURLcode) -> Bool {
        guard let head, let body, body.position < body.length || code == CURLE_SEND_ERROR else { return false }
        return head.status >= 300 && (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR)
    }

    private func facts(_ message: String) -> TransferFault.Facts {
        TransferFault.Facts(
            message: message, errno: Int32(truncatingIfNeeded: easy?.number(CURLINFO_OS_ERRNO) ?? 0),
            verifyResult: easy?.number(CURLINFO_SSL_VERIFYRESULT) ?? 0, isRequestSent: isRequestSent,
            hasHead: head != nil, hasProxy: request.proxy != nil)
    }

    /// The result, when the disk is done too.
    func result(_ ending: Ending) -> ExchangeResult {
        let isComplete = ending.outcome == .complete
        let wasKept = if case .keep = disposition { true } else { false }
        return ExchangeResult(
            outcome: ending.outcome, head: head, received: sink.content(wasKept: wasKept),
            receivedTruncated: sink.isTruncated, side: side, sideTruncated: isSideTruncated, length: sink.length,
            lengthVerified: isLengthVerified, digests: isComplete && wasKept ? sink.finishDigests() : [:],
            bytesSent: metrics.requestBodyBytesSent, bytesReceived: bytesReceived, metrics: metrics,
            curlCode: ending.code.rawValue, curlMessage: ending.message, serverPublicKey: ending.serverPublicKey)
    }
}

@available(*, unavailable)
extension Exchange: Sendable {}
