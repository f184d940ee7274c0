import Base
import CMicroHTTPD
import Glibc

/// One request and its response: carries out the decisions of ``ServedRequestState``.
///
/// libmicrohttpd's thread calls ``access(_:_:_:_:)`` and ``over()``, the handler's Swift task ``deliver(_:)``, the
/// watch thread ``look(at:)`` and ``clientLeft()``. Lock order: this class's, then the library's.
final class ServedRequest: Sendable {
    let server: HTTPServer
    let client: ClientConnection
    /// The target as sent.
    private let rawTarget: String
    /// The authority of a target in absolute form.
    private let authority: String?
    /// The target without scheme and authority.
    let target: String
    let handle: ConnectionHandle
    /// The target's address in libmicrohttpd's buffer, to check whether the head is in one piece.
    private let targetAddress: UInt
    let began: Int64
    let start = ContinuousClock.now
    /// Whether the request began after the server had begun to stop: no handler runs for it.
    let isLate: Bool
    let state = Locked(ServedRequestState())
    let facts: Locked<Facts>
    let gone = ClientGone()

    /// Facts collected during the request for its end.
    struct Facts: Sendable {
        var requestID = ""
        var method = ""
        var route: String?
        var status = 0
        var sent: Int64 = 0
        var stream: RequestStream?
        /// Whether the connection closes with unread bytes of the client, so that it needs a lingering close.
        var lingers = false
        var isWatched = false
        /// The bytes received at the last check, if the client closed its side during a streamed body.
        var halfClosedAt: Int64?
    }

    init(server: HTTPServer, client: ClientConnection, handle: ConnectionHandle, target: String, targetAddress: UInt) {
        self.server = server
        self.client = client
        self.handle = handle
        rawTarget = target
        (authority, self.target) = RequestTarget.divided(target)
        self.targetAddress = targetAddress
        began = server.clock.monotonic()
        isLate = server.isStopping
        facts = Locked(Facts())
    }

    var now: Int64 { server.clock.monotonic() }

    // MARK: On libmicrohttpd's thread

    /// One call of the access handler. Returns `false` to close the connection.
    func access(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>, _ bytes: UnsafeRawBufferPointer)
        -> Bool
    {
        if case .head = state.withLock({ $0.reading }) {
            return open(RequestHead(handle, method, version, target: rawTarget, at: targetAddress))
        }
        switch nextStep(bytes) {
        case .readOn, .hold: return true
        case .run: return run()
        case .send(let response, let early): return send(response, early: early)
        case .interrupt(let response): return interrupt(response)
        }
    }

    /// The next step after a call of the library. For a hold, the connection is suspended already.
    private func nextStep(_ bytes: UnsafeRawBufferPointer) -> ServedRequestState.Step {
        let time = now
        return state.withLock { state in
            let step = bytes.isEmpty ? state.called(at: time) : state.received(bytes)
            if case .hold = step { hold(&state) }
            if state.pace == .deadline, state.streamed == nil { client.setDeadline(nil) }
            return step
        }
    }

    /// Suspends the connection, once.
    private func hold(_ state: inout ServedRequestState) {
        guard !state.isHeld else { return }
        state.isHeld = true
        handle.suspend()
    }

    /// A request without a body, and its route, until the library's next call.
    private let pending = Locked<(request: HTTPRequest, route: Route)?>(nil)

    private func open(_ head: RequestHead) -> Bool {
        let id = head.requestID
        facts.withLock {
            $0.requestID = id
            $0.method = head.method
        }
        client.setDeadline(nil)
        var request: HTTPRequest?
        var hasBody = true
        do throws(RefusalReason) {
            let framing = try head.framing(server.limits)
            guard !server.isStopping else { throw .shuttingDown }
            hasBody = framing != .none && framing != .length(0)
            if target == "*", head.method == "OPTIONS" { return answer(HTTPResponse(status: 204), hasBody: hasBody) }
            let parts = try RequestTarget(target)
            let parsed = HTTPRequest(
                method: head.method, rawTarget: target, segments: parts.segments, query: parts.query,
                headers: head.headers(authority: authority), requestID: id, framing: framing, clientGone: gone)
            request = parsed
            return try route(parsed, hasBody: hasBody)
        } catch {
            return refuse(error, request, hasBody: hasBody)
        }
    }

    private func route(_ request: HTTPRequest, hasBody: Bool) throws(RefusalReason) -> Bool {
        switch server.router.match(method: request.method, segments: request.segments) {
        case .notFound: throw .notFound
        case .methodNotAllowed(let allow):
            guard request.method == "OPTIONS" else { throw .methodNotAllowed(allow: allow) }
            return answer(adorned(server.router.options(request, allow), request), hasBody: hasBody)
        case .route(let route, let parameters):
            var request = request
            request.parameters = parameters
            facts.withLock { $0.route = route.pattern }
            return try read(request, route, hasBody: hasBody)
        }
    }

    private func read(_ request: HTTPRequest, _ route: Route, hasBody: Bool) throws(RefusalReason) -> Bool {
        switch route.body {
        case .none:
            guard !hasBody else { throw .unexpectedBody }
            pending.withLock { $0 = (request, route) }
            return whole()
        case .stream:
            var request = request
            guard hasBody else {
                request.body = .stream(RequestStream([]))
                pending.withLock { $0 = (request, route) }
                return whole()
            }
            let stream = RequestStream {
                [weak self] in
                self?.demand()
            } limit: {
                [weak self] in
                self?.limitBody($0)
            }
            facts.withLock { $0.stream = stream }
            request.body = .stream(stream)
            state.withLock { $0.reading = .offered(stream) }
            start(request, route)
            return goOn()
        }
    }

    /// There is no body: the library calls again at once, and then accepts a response without closing.
    private func whole() -> Bool {
        state.withLock { $0.reading = .empty }
        return true
    }

    private func run() -> Bool {
        guard let (request, route) = pending.withLock({ $0.take() }) else { return false }
        start(request, route)
        return goOn()
    }

    /// Continues after the handler started, which may have responded already or requested its body.
    private func goOn() -> Bool {
        guard case .send(let response, let early) = nextStep(UnsafeRawBufferPointer(start: nil, count: 0)) else {
            return true
        }
        return send(response, early: early)
    }

    /// Runs the handler on its route's executor, or on this thread until it first suspends.
    private func start(_ request: HTTPRequest, _ route: Route) {
        let isLate = state.withLock { state in
            guard case .none = state.answer else { return true }
            state.answer = .running
            return false
        }
        guard !isLate else { return }  // The deadline was faster.
        server.handlerStarted()
        let handle: @Sendable () async -> Void = {
            let response = await route.handler(request)
            await self.deliver(self.adorned(response, request), isHead: request.method == "HEAD")
            self.server.handlerEnded()
        }
        if let executor = route.executor?(request) {
            Task(executorPreference: executor, operation: handle)
        } else {
            _ = Task.immediate(operation: handle)
        }
    }

    func send(_ response: HTTPResponse, early: Bool) -> Bool {
        let (writer, isLate) = state.withLock { state -> (ResponseWriter?, Bool) in
            if case .over = state.answer { return (nil, true) }
            state.answer = .queued
            return (state.writer, false)
        }
        guard !isLate else { return false }
        let id = facts.withLock { facts in
            facts.status = response.status
            facts.sent = response.body.length ?? 0
            facts.lingers = facts.lingers || early
            return facts.requestID
        }
        var reply = Reply(response.body, writer)
        let refused = reply.add(response.headers, requestID: id, closes: early || server.isStopping)
        for name in refused { server.log.error("a response header was dropped", ("name", name), ("request", id)) }
        return reply.queue(on: handle, status: response.status)
    }
}
