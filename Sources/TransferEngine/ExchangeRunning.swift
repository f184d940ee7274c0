import CCurl
import Core
import Files

extension Exchange {
    /// An exchange that libcurl performs.
    ///
    /// libcurl's callbacks have its address: it lives as long as its handle is in the pool.
    final class Running {
        /// The reason for which a callback ends the exchange.
        enum Cut {
            case fault(TransferFault)
            /// Enough was read.
            case enough
            /// The judge stopped the exchange.
            case stopped
        }

        unowned let exchange: Exchange
        let handle: Handle
        /// When libcurl received the request (ms since 1970).
        let launched: Int64
        var lastActivity: Int64
        var lastSync: Int64
        var isRequestSent = false
        var receiving: Receiving
        var sending: Sending
        /// Parses the proxy's responses to the CONNECT request.
        var tunnelParser = HeadParser()
        /// The last head of the proxy.
        var tunnelHead: ResponseHead?
        /// A more specific reason than libcurl's code.
        var cut: Cut?
        /// Cookies that are not sent, but that the cookie engine must know before it parses the response's cookies.
        var lateCookies: [String] = []
        /// Whether the server requested a certificate, and answered without one.
        var asksForCertificate = false
        /// Whether the socket of an unreachable address was closed.
        var lostSocket = false
        var needsAttention = false

        init(_ exchange: Exchange, _ preparation: Preparation, _ handle: Handle, launched: Int64) {
            let now = exchange.state.now
            let throttle = Throttle(preparation.bandwidthLimit, at: now)
            self.exchange = exchange
            self.handle = handle
            self.launched = launched
            lastActivity = now
            lastSync = now
            receiving = Receiving(throttle: throttle, recorded: exchange.sink.length)
            sending = Sending(throttle: throttle, body: preparation.body)
        }
    }

    /// The receiving direction.
    struct Receiving {
        /// The reason for which receiving is paused.
        enum Pause: Equatable {
            /// The partial file.
            case file
            /// More content must be recorded first.
            case record
            /// A buffer for bytes of the file.
            case buffer
            /// This moment (monotonic ms).
            case until(Int64)
        }

        var throttle: Throttle
        var pause: Pause?
        var parser = HeadParser()
        /// A final head that libcurl may answer by itself (a digest challenge).
        var provisionalHead: ResponseHead?
        /// The number of challenges of each status that libcurl may have answered.
        var challenges: [Int: Int] = [:]
        var answer: Answer?
        /// Bytes of a body that is not kept.
        var side: [UInt8] = []
        var isSideTruncated = false
        /// When the head of a response arrived whose body is skipped (monotonic ms).
        var skipsSince: Int64?
        var count: Int64 = 0
        /// The length of the content that need not be received again.
        var recorded: Int64
    }

    /// The final head and its consequences.
    struct Answer {
        let head: ResponseHead
        let judgement: HeadJudgement
        /// The length of the body according to the head.
        let announcedLength: Int64?
        let isLengthVerified: Bool
        /// Whether the response has both a length and chunks.
        let hasTwoFramings: Bool
    }

    /// The sending direction.
    struct Sending {
        /// The reason for which sending is paused.
        enum Pause: Equatable {
            /// The next bytes of the body.
            case body
            /// This moment (monotonic ms).
            case until(Int64)
        }

        var throttle: Throttle
        let body: BodySource?
        var pause: Pause?
        /// When the last byte of the body was passed to libcurl.
        var endedAt: Int64?
    }
}

@available(*, unavailable)
extension Exchange.Running: Sendable {}

extension Exchange.Running {
    var state: LoopState { exchange.state }
    var meter: ExchangeMeter { exchange.meter }
    var sink: ContentSink { exchange.sink }
    var easy: Easy { handle.easy }

    /// Asks the loop to handle this exchange after libcurl's callbacks.
    func callForAttention() {
        guard !needsAttention else { return }
        needsAttention = true
        state.needingAttention.append(exchange)
    }

    // MARK: Time

    static let syncInterval: Int64 = 2000
    /// Half of the unrecorded limit, so that bytes arrive while earlier ones are synced and their offset is stored.
    private var syncBytes: Int64 { min(4 << 20, (exchange.maximumUnrecorded ?? .max) / 7 * 4) }

    /// Whether the file should be synced now.
    var wantsSync: Bool {
        guard exchange.fileWork == .none, sink.unsynced > 0 else { return false }
        return sink.unsynced >= syncBytes || receiving.pause == .record || isSyncDue
    }

    /// Whether collected bytes should be written now, even if they do not fill a piece.
    var wantsFlush: Bool {
        guard sink.gathered > 0, sink.isIdle else { return false }
        return isSyncDue || receiving.pause == .record && receiving.recorded >= sink.written
    }

    private var isSyncDue: Bool { state.now >= lastSync + Self.syncInterval }

    /// Whether this side is pausing libcurl, so that silence is not the peer's.
    private var isPaused: Bool { receiving.pause != nil || sending.pause != nil }

    /// When the peer's silence becomes a timeout.
    var silenceEnd: Int64 {
        guard isRequestSent, !isPaused else { return .max }
        return lastActivity.addingSaturated(exchange.request.idleTimeout.milliseconds)
    }

    /// The number of bytes of a skipped body that are read, so that the connection can be reused.
    static let longestSkip: Int64 = 64 * 1024
    /// The time in milliseconds for which the end of a skipped body is awaited.
    private static let skipTime: Int64 = 1000

    /// When a skipped body ends the exchange. An origin may send its body while it reads the request's.
    private var skipEnd: Int64 {
        guard let since = receiving.skipsSince, isBodySent else { return .max }
        return since.addingSaturated(Self.skipTime)
    }

    /// Whether the peer was silent for too long, or a skipped body does not end.
    var isOverdue: Bool { min(silenceEnd, skipEnd) <= state.now }

    /// When the bandwidth limit ends a pause.
    private var pauseEnd: Int64 {
        var end = Int64.max
        if case .until(let time)? = receiving.pause { end = time }
        if case .until(let time)? = sending.pause { end = min(end, time) }
        return end
    }

    /// Whether the bandwidth limit allows libcurl to continue now.
    var mayGoOn: Bool { pauseEnd <= state.now }

    var deadline: Int64 {
        let syncs = exchange.fileWork == .none && sink.isBehind
        let ahead = sending.body?.ahead?.deadline ?? .max
        return min(pauseEnd, silenceEnd, skipEnd, ahead, syncs ? lastSync + Self.syncInterval : .max)
    }

    // MARK: Pauses

    func setLimit(_ limit: Int64?) {
        let now = state.now
        receiving.throttle.set(limit, at: now)
        sending.throttle.set(limit, at: now)
        // Both directions check the throttle again.
        if case .until? = receiving.pause { receiving.pause = .until(now) }
        if case .until? = sending.pause { sending.pause = .until(now) }
    }

    /// Called when the partial file is open.
    func fileIsReady() {
        lastSync = state.now
        if receiving.pause == .file { receiving.pause = .until(state.now) }
    }

    /// Called when a buffer is free. True if libcurl waited for it.
    func bufferIsFree() -> Bool {
        guard receiving.pause == .buffer else { return false }
        receiving.pause = .until(state.now)
        return true
    }

    /// Accepts a piece of the body that was read.
    func take(_ arrival: ReadAhead.Arrival) {
        sending.body?.ahead?.take(arrival, now: state.now)
        if sending.pause == .body { sending.pause = .until(state.now) }
    }

    /// Updates the recorded offset. True if libcurl waited for it.
    func note(recorded offset: Int64) -> Bool {
        receiving.recorded = max(receiving.recorded, min(offset, sink.length))
        guard receiving.pause == .record else { return false }
        receiving.pause = .until(state.now)
        return true
    }

    /// Resumes libcurl if nothing pauses it any more. A code other than `CURLE_OK` ended the exchange.
    func resumeIfDue() -> CURLcode {
        guard mayGoOn else { return CURLE_OK }
        if case .until(let time)? = receiving.pause, time <= state.now { receiving.pause = nil }
        if case .until(let time)? = sending.pause, time <= state.now { sending.pause = nil }
        lastActivity = state.now
        return curl_easy_pause(
            easy.raw,
            (receiving.pause == nil ? 0 : CURLPAUSE_RECV) | (sending.pause == nil ? 0 : CURLPAUSE_SEND))
    }

    /// Makes libcurl try the next address of the host.
    ///
    /// In socket mode, libcurl would wait for a timer: 7.88 closes the socket of an address that refused and requests
    /// no other event. Ending a pause makes it process a transfer at once.
    func tryNextAddress() {
        lostSocket = false
        guard !isRequestSent else { return }
        curl_easy_pause(easy.raw, CURLPAUSE_SEND)
        curl_easy_pause(easy.raw, CURLPAUSE_CONT)
    }

    // MARK: The end

    /// The outcome from libcurl's code and the callbacks' findings, and libcurl's message.
    func ending(_ code: CURLcode) -> (outcome: ExchangeOutcome, message: String) {
        if code == CURLE_OK {
            settleAtEnd()
            return (outcome(code, ""), "")
        }
        let message = easy.errorMessage
        let text = message.isEmpty ? CurlError(code: code).description : message
        return (outcome(code, text), text)
    }

    private func outcome(_ code: CURLcode, _ message: String) -> ExchangeOutcome {
        if receiving.skipsSince != nil { return .complete }
        switch cut {
        case .fault(let fault): return .failed(fault)
        case .stopped: return .stopped
        case .enough: return .complete
        case nil: break
        }
        if code == CURLE_OK { return receiving.answer == nil ? .failed(.emptyReply) : .complete }
        if exchange.denied != nil { return .failed(.egressDenied) }
        if wasAnsweredEarly(code) { return .complete }
        let facts = facts(message)
        exchange.systemError = facts.errno
        let fault = TransferFault(code, facts)
        return fault == .proxyAuthenticationRequired && tunnelHead != nil ? .complete : .failed(fault)
    }

    private func facts(_ message: String) -> TransferFault.Facts {
        TransferFault.Facts(
            message: message, errno: Int32(truncatingIfNeeded: easy.number(CURLINFO_OS_ERRNO)),
            verifyResult: easy.number(CURLINFO_SSL_VERIFYRESULT), isRequestSent: isRequestSent,
            hasHead: receiving.answer != nil, hasProxy: exchange.request.proxy != nil,
            hasClientCertificate: exchange.request.tls.clientCertificate != nil)
    }

    /// Whether the server responded during our body and closed: its response counts (RFC 9110 section 10.1.1).
    private func wasAnsweredEarly(_ code: CURLcode) -> Bool {
        guard let answer = receiving.answer, let body = sending.body,
            body.position < body.length || code == CURLE_SEND_ERROR
        else { return false }
        return (answer.head.status >= 300 || hasWholeAnswer) && (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR)
    }

    /// Whether the response counts although the peer has become silent: the server responded during our body and reads
    /// no more of it, or the body of the response is skipped.
    var isAnswered: Bool { receiving.skipsSince != nil || !isBodySent && hasWholeAnswer }

    /// Whether libcurl has read the whole body of the request.
    var isBodySent: Bool { sending.body.map { $0.position >= $0.length } ?? true }

    private var hasWholeAnswer: Bool {
        guard let answer = receiving.answer else { return false }
        return !answer.hasTwoFramings && answer.announcedLength == receiving.count
    }
}
