/// One request and its answer as a machine. The ``ServedRequest`` that owns it does what it says.
///
/// ```
/// reading:  head ──▶ collecting ──▶ whole            answer:  none ──▶ running ──▶ ready ──▶ queued ──▶ over
///             ├───▶ offered ──▶ streaming ──▶ whole             └─────────────────▶┘
///             └───▶ dropping (the rest of a body whose answer is already known)
/// ```
///
/// libmicrohttpd takes an answer only before a body's first byte or after its last, so a connection is held
/// (suspended) in three places: before the body while a streaming handler has not asked for it, inside the body while
/// the handler is behind, and after it while the handler runs.
struct ServedRequestState: Sendable {
    enum Reading: Sendable {
        case head
        case collecting(CollectedBody)
        /// The handler runs and has not asked for the body.
        case offered(RequestStream)
        case streaming(RequestStream)
        case dropping
        case whole
    }

    enum Answer: Sendable {
        case none, running
        case ready(HTTPResponse)
        case queued, over
    }

    /// What to do with the connection now.
    enum Step: Sendable {
        case readOn
        case hold
        case run([UInt8])
        /// Queue the answer; `early` when a body has not been read, which ends the connection.
        case send(HTTPResponse, early: Bool)
        /// A body is under way and its answer is known.
        case interrupt(HTTPResponse)
        case refuse(RefusalReason)
    }

    var reading = Reading.head
    var answer = Answer.none
    /// Whether the connection is suspended by us.
    var isHeld = false
    /// Whether a streaming handler has asked for the body.
    var isWanted = false
    /// Where the rate of a streamed body is measured from; `nil` while we are the slow ones.
    var window: (start: Int64, bytes: Int64)?
    var writer: ResponseWriter?
    /// Memory set aside for a large body, given back when the request is forgotten.
    var share: BodyBudget.Share?

    /// The library calls with no bytes: before the body, after it, or because the connection was resumed.
    mutating func called(at now: Int64) -> Step {
        switch (reading, answer) {
        case (.collecting(let body), _):
            reading = .whole
            share = body.share
            return .run(body.bytes)
        case (.offered, .ready(let response)): return .send(response, early: true)
        case (.offered(let stream), _):
            guard isWanted else { return .hold }
            reading = .streaming(stream)
            window = (now, stream.received)
            return .readOn
        case (.streaming(let stream), _):
            reading = .whole
            window = nil
            stream.finish()
            return called(at: now)
        case (_, .ready(let response)): return .send(response, early: false)
        case (.whole, .running): return .hold
        case (.head, _), (.dropping, _), (.whole, _): return .readOn
        }
    }

    /// Bytes of the body arrive. A connection that is held can still deliver what libmicrohttpd had read.
    mutating func received(_ bytes: UnsafeRawBufferPointer, budget: BodyBudget) -> Step {
        switch (reading, answer) {
        case (.collecting(var body), _):
            reading = .whole  // So that the array is not shared while it grows.
            if let reason = body.append(bytes, budget: budget) {
                reading = .collecting(body)
                return .refuse(reason)
            }
            reading = .collecting(body)
            return .readOn
        case (.streaming, .ready(let response)):
            reading = .dropping
            return .interrupt(response)
        case (.streaming(let stream), _):
            guard stream.append(bytes) else { return .readOn }
            window = nil
            return .hold
        case (.head, _), (.offered, _), (.dropping, _), (.whole, _): return .readOn
        }
    }

    /// The handler wants bytes. Returns whether a held connection must go on.
    mutating func demanded(at now: Int64) -> Bool {
        isWanted = true
        switch reading {
        case .offered: return release()
        case .streaming(let stream):
            guard isHeld else { return false }
            window = (now, stream.received)
            return release()
        case .head, .collecting, .dropping, .whole: return false
        }
    }

    /// The handler has answered. Returns whether anybody can still be answered.
    mutating func answered(_ response: HTTPResponse) -> Bool {
        guard case .running = answer else { return false }
        answer = .ready(response)
        return true
    }

    /// Ends holding. Returns whether the connection was held.
    mutating func release() -> Bool {
        defer { isHeld = false }
        return isHeld
    }

    /// The body that a handler reads and that has not ended.
    var streamed: RequestStream? {
        switch reading {
        case .offered(let stream), .streaming(let stream): stream
        case .head, .collecting, .dropping, .whole: nil
        }
    }

    /// Whether a streamed body comes too slowly.
    mutating func isTooSlow(at now: Int64, _ limits: ServerLimits) -> Bool {
        guard case .streaming(let stream) = reading, let window else { return false }
        let grace = limits.streamGrace.milliseconds
        guard now - window.start >= grace else { return false }
        let wanted = Int64(limits.streamBytesPerSecond) * grace / 1000
        guard stream.received - window.bytes >= wanted else { return true }
        self.window = (now, stream.received)
        return false
    }
}

/// A body read whole before its handler runs.
struct CollectedBody: Sendable {
    private(set) var bytes: [UInt8] = []
    private let limit: Int
    private let free: Int
    private(set) var share: BodyBudget.Share?

    /// No body: what libmicrohttpd calls next is the end of the request.
    static let empty = CollectedBody(limit: 0, free: 0)

    private init(limit: Int, free: Int) {
        self.limit = limit
        self.free = free
    }

    /// - Parameters:
    ///   - length: from `Content-Length`.
    ///   - free: the size up to which a body takes nothing from `budget`.
    /// - Throws: ``RefusalReason/payloadTooLarge(limit:)``, ``RefusalReason/overloaded``.
    init(length: UInt64?, limit: Int, free: Int, budget: BodyBudget) throws(RefusalReason) {
        self.init(limit: limit, free: free)
        guard let length else { return }
        guard length <= UInt64(limit) else { throw .payloadTooLarge(limit: limit) }
        guard take(Int(length), budget) else { throw .overloaded }
        bytes.reserveCapacity(min(Int(length), free))
    }

    mutating func append(_ more: UnsafeRawBufferPointer, budget: BodyBudget) -> RefusalReason? {
        let total = bytes.count + more.count
        guard total <= limit else { return .payloadTooLarge(limit: limit) }
        guard take(total, budget) else { return .overloaded }
        bytes.append(contentsOf: more)
        return nil
    }

    /// Makes sure that a large body of `total` bytes has its share of the budget, in steps of 1 MiB.
    private mutating func take(_ total: Int, _ budget: BodyBudget) -> Bool {
        guard total > free, total > share?.bytes ?? 0 else { return true }
        let share = share ?? BodyBudget.Share(budget)
        self.share = share
        let step = 1 << 20
        return share.grow(to: min((total + step - 1) / step * step, limit))
    }
}
