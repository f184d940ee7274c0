/// One request and its answer as a machine. The ``ServedRequest`` that owns it does what it says.
///
/// ```
/// reading:  head ──▶ empty ───────▶ whole            answer:  none ──▶ running ──▶ ready ──▶ queued ──▶ over
///             ├───▶ offered ──▶ streaming ──▶ whole             └─────────────────▶┘
///             └───▶ dropping (the rest of a body whose answer is already known)
/// ```
///
/// libmicrohttpd accepts a response only before a body's first byte or after its last. A connection is therefore
/// held (suspended) in three places: before the body until a streaming handler requests it, inside the body while the
/// handler is behind, and after the body while the handler runs.
struct ServedRequestState: Sendable {
    enum Reading: Sendable {
        case head
        /// There is no body: the handler starts at the library's next call.
        case empty
        /// The handler runs and has not requested the body.
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

    /// The next step for the connection.
    enum Step: Sendable {
        case readOn
        case hold
        case run
        /// Queue the response; `early` if a body was not read, which ends the connection.
        case send(HTTPResponse, early: Bool)
        /// Respond inside a body.
        case interrupt(HTTPResponse)
    }

    /// The limit of the time for a streamed body.
    enum Pace: Sendable {
        case rate
        /// The connection's deadline.
        case deadline
    }

    var reading = Reading.head
    var answer = Answer.none
    /// Whether the server has suspended the connection.
    var isHeld = false
    /// Whether a streaming handler has requested the body.
    var isWanted = false
    /// The start of the rate measurement of a streamed body; `nil` while the handler is the slow side.
    var window: (start: Int64, bytes: Int64)?
    var pace = Pace.rate
    var writer: ResponseWriter?

    /// Called without bytes: before the body, after it, or after the connection was resumed.
    mutating func called(at now: Int64) -> Step {
        switch (reading, answer) {
        case (.empty, _):
            reading = .whole
            return .run
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

    /// Called with bytes of the body. A held connection can still deliver bytes that libmicrohttpd has read.
    mutating func received(_ bytes: UnsafeRawBufferPointer) -> Step {
        switch (reading, answer) {
        case (.streaming, .ready(let response)):
            reading = .dropping
            return .interrupt(response)
        case (.streaming(let stream), _):
            guard stream.append(bytes) else { return .readOn }
            window = nil
            return .hold
        case (.head, _), (.empty, _), (.offered, _), (.dropping, _), (.whole, _): return .readOn
        }
    }

    /// Called when the handler requests bytes. Returns whether a held connection must be resumed.
    mutating func demanded(at now: Int64) -> Bool {
        isWanted = true
        switch reading {
        case .offered: return release()
        case .streaming(let stream):
            guard isHeld else { return false }
            window = (now, stream.received)
            return release()
        case .head, .empty, .dropping, .whole: return false
        }
    }

    /// Stores the handler's response. Returns whether it can still be sent.
    mutating func answered(_ response: HTTPResponse) -> Bool {
        guard case .running = answer else { return false }
        answer = .ready(response)
        return true
    }

    /// Ends a hold. Returns whether the connection was held.
    mutating func release() -> Bool {
        defer { isHeld = false }
        return isHeld
    }

    /// The body that a handler reads, if it has not ended.
    var streamed: RequestStream? {
        switch reading {
        case .offered(let stream), .streaming(let stream): stream
        case .head, .empty, .dropping, .whole: nil
        }
    }

    /// Whether a streamed body arrives too slowly.
    mutating func isTooSlow(at now: Int64, _ limits: ServerLimits) -> Bool {
        guard case .streaming(let stream) = reading, let window, pace == .rate else { return false }
        let grace = limits.streamGrace.milliseconds
        guard now - window.start >= grace else { return false }
        let wanted = Int64(limits.streamBytesPerSecond) * grace / 1000
        guard stream.received - window.bytes >= wanted else { return true }
        self.window = (now, stream.received)
        return false
    }
}
