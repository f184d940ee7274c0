import CCurl
import Core
import Files
import Synchronization

/// One exchange on its loop, from the request to the report that it ended.
///
/// ```
/// preparing ──▶ running ──▶ concluding ──▶ ended
///     │            └──▶ probing ──▲
///     └───────────────────────────┘
/// ```
/// `preparing` waits for names, the body's file and the digest of the kept prefix. libcurl performs `running`.
/// `probing` reads the key of an untrusted server. `concluding` waits for the disk.
final class Exchange {
    enum Stage {
        case preparing(Preparation)
        case running(Running)
        indirect case probing(Handle, ExchangeResult)
        /// The result before the disk work has ended.
        indirect case concluding(ExchangeResult)
    }

    /// libcurl's part of the exchange, returned at its end.
    struct Handle {
        let easy: Easy
        let pool: ConnectionPool
    }

    /// The disk work for the content that is due or in flight.
    enum FileWork: Equatable {
        case none
        /// The partial file is needed, with this many bytes kept.
        case wanted(prefix: Int64)
        case opening
        case syncing
    }

    let request: ExchangeRequest
    let meter: ExchangeMeter
    let sink: ContentSink
    let state: LoopState
    let room: DiskRoom
    /// Receives response heads and other reports.
    let report: @Sendable (ExchangeReport) -> Void
    /// Monotonic ms.
    let started: Int64

    var stage: Stage
    var fileWork = FileWork.none
    /// Permitted addresses for libcurl, `host:port:address,…`.
    var pins: [String] = []
    /// The peer of the last connection or connection attempt.
    var peer: (address: IPAddress, port: UInt16)?
    /// `errno` of the last failed system call in libcurl; 0 if none failed.
    var systemError: Int32 = 0
    /// The address that the egress policy denied. For the operator's log, not for the app.
    var denied: (address: IPAddress, port: UInt16)?
    var metrics: TransactionMetrics
    /// The current limit, initially ``ExchangeRequest/maximumUnrecorded``.
    var maximumUnrecorded: Int64?

    init(
        _ request: ExchangeRequest, _ meter: ExchangeMeter, _ state: LoopState, _ room: DiskRoom, _ buffers: BufferPool,
        _ seat: PartMemory.Seat?, at wall: Int64, report: @escaping @Sendable (ExchangeReport) -> Void
    ) {
        self.request = request
        self.meter = meter
        self.state = state
        self.room = room
        self.report = report
        maximumUnrecorded = request.maximumUnrecorded
        sink = ContentSink(request.sink, buffers, seat, maximumUnrecorded: request.maximumUnrecorded)
        metrics = TransactionMetrics(of: request, at: wall)
        started = state.now
        stage = .preparing(Preparation(bandwidthLimit: request.bandwidthLimit, at: state.now))
        meter.length.store(sink.length, ordering: .relaxed)
    }

    var id: ExchangeID { request.id }
    var url: ParsedURL { request.url }

    var resumeOffset: Int64 {
        if case .content(_, let offset, _, _, _) = request.sink { offset } else { 0 }
    }

    // MARK: Time

    /// The fault of a time limit that has passed, if any.
    var overdue: TransferFault? {
        if let total = request.totalTimeout, state.now >= started + total.milliseconds { return .totalTimeout }
        switch stage {
        case .preparing(let preparation) where preparation.needsNames:
            guard state.now >= preparation.namesSince + request.connectTimeout.milliseconds else { return nil }
            return preparation.waitsForTurn.isEmpty ? .couldNotResolve : .nameNotAsked
        case .running(let running): return running.isOverdue ? .idleTimeout : nil
        default: return nil
        }
    }

    /// When the limits of this exchange must be checked again at the latest.
    var deadline: Int64 {
        let end = request.totalTimeout.map { started.addingSaturated($0.milliseconds) } ?? .max
        switch stage {
        case .preparing(let preparation) where preparation.needsNames:
            return min(end, preparation.namesSince.addingSaturated(request.connectTimeout.milliseconds))
        case .running(let running): return min(end, running.deadline)
        default: return end
        }
    }

    /// Sets the bandwidth limit of each direction, in bytes per second.
    func setLimit(_ limit: Int64?) {
        switch stage {
        case .preparing(let preparation): preparation.bandwidthLimit = limit
        case .running(let running): running.setLimit(limit)
        case .probing, .concluding: break
        }
    }

    // MARK: Sockets

    /// Checks an address against the egress policy, and records a denied one.
    func mayReach(_ address: IPAddress, _ port: UInt16) -> Bool {
        guard !request.egress.permits(address, port: port) else { return true }
        denied = (address, port)
        return false
    }

    /// Called before a socket is opened. False if the address is denied.
    func mayConnect(to address: IPAddress, port: UInt16) -> Bool {
        guard mayReach(address, port) else { return false }
        peer = (address, port)
        if meter.phase.load(ordering: .relaxed) == ExchangeProgress.Phase.resolving.rawValue {
            meter.enter(.connecting)
        }
        return true
    }

    /// Called before the request is written. False if the peer is denied.
    func beforeRequest(remote: String, port: UInt16) -> Bool {
        guard let address = IPAddress(remote), mayReach(address, port) else { return false }
        if case .running(let running) = stage { running.requestBegins() }
        return true
    }

    /// Called when a socket of this exchange was closed.
    func socketIsGone() {
        if case .running(let running) = stage { running.socketIsGone() }
    }

    // MARK: The end

    /// The result of an exchange that libcurl never received.
    func result(_ outcome: ExchangeOutcome, _ code: CURLcode = CURLE_OK) -> ExchangeResult {
        ExchangeResult(
            outcome: outcome, metrics: metrics, curlCode: code.rawValue, cookies: request.cookies ?? [])
    }

    /// The result with the content, after the disk work has ended.
    func completed(_ result: ExchangeResult) -> ExchangeResult {
        var result = result
        let isComplete = result.outcome == .complete
        let sha256 = sink.settle()
        result.received = sink.content(wasKept: result.isBodyKept)
        result.receivedTruncated = sink.isTruncated
        result.length = sink.length
        if isComplete, result.isBodyKept, sink.isInParts { result.lastPart = sink.takeLastPart() }
        if isComplete, result.isBodyKept { result.digests = sink.finishDigests() }
        result.partialSHA256 = isComplete ? nil : sha256
        result.host = url.host
        result.peer = peerName(result.metrics)
        result.systemError = systemError
        return result
    }
}

extension Exchange {
    /// `ADDRESS:PORT` of the peer, or `HOST:PORT` without a connection.
    private func peerName(_ metrics: TransactionMetrics) -> String {
        let remote = metrics.remoteAddress.flatMap { IPAddress($0) }
        let known =
            peer
            ?? remote.flatMap { address in
                metrics.remotePort.flatMap { UInt16(exactly: $0) }.map { (address, $0) }
            }
        let name = known.map { "\($0.address.description.bracketed):\($0.port)" }
        guard let proxy = request.proxy else { return name ?? url.hostAndPort }
        return "the proxy \(name ?? proxy.host)"
    }
}

@available(*, unavailable)
extension Exchange: Sendable {}

extension Exchange {
    /// The host whose name was looked up.
    enum Name: Sendable {
        case target, proxy

        var need: Preparation.Needs { self == .proxy ? .proxy : .target }
    }

    /// The preparations that must end before libcurl receives the request.
    final class Preparation {
        struct Needs: OptionSet {
            let rawValue: Int
            static let target = Needs(rawValue: 1)
            static let proxy = Needs(rawValue: 2)
            static let body = Needs(rawValue: 4)
            static let prefix = Needs(rawValue: 8)
        }

        var needs: Needs = []
        /// Names whose look-up has not begun, because others have the turn.
        var waitsForTurn: Needs = []
        /// When the last of its look-ups, or the wait for a turn, began (monotonic ms).
        var namesSince: Int64
        var body: BodySource?
        var bandwidthLimit: Int64?

        init(bandwidthLimit: Int64?, at now: Int64) {
            self.bandwidthLimit = bandwidthLimit
            namesSince = now
        }

        var needsNames: Bool { !needs.isDisjoint(with: [.target, .proxy]) }
    }
}
