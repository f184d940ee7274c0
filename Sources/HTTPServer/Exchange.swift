import Base
import CMicroHTTPD
import Glibc

/// One request and its answer: carries out what ``ExchangeState`` decides.
///
/// libmicrohttpd's thread calls ``access(_:_:_:_:)`` and ``over()``, the handler's task ``deliver(_:)``, the watch
/// thread ``look(at:)`` and ``clientLeft()``. Lock order: ours, then the library's; its callbacks hold none of its.
final class Exchange: Sendable {
    let server: HTTPServer
    let client: ClientConnection
    let target: String
    private let handle: ConnectionHandle
    /// Where the target stands in libmicrohttpd's buffer, to see whether the head is in one piece.
    private let targetAddress: UInt
    private let began: Int64
    private let start = ContinuousClock.now
    private let state = Locked(ExchangeState())
    private let facts: Locked<Facts>
    private let gone = ClientGone()

    /// What becomes known on the way and is wanted at the end.
    private struct Facts: Sendable {
        var requestID = ""
        var method = ""
        var route: String?
        var status = 0
        var sent: Int64 = 0
        var received: Int64 = 0
        var stream: RequestStream?
        /// The connection closes with bytes of the client unread: it needs a lingering close.
        var lingers = false
        var isWatched = false
        /// The client closed its side inside a streamed body; what had been received at the last look.
        var halfClosedAt: Int64?
    }

    init(server: HTTPServer, client: ClientConnection, handle: ConnectionHandle, target: String, targetAddress: UInt) {
        self.server = server
        self.client = client
        self.handle = handle
        self.target = target
        self.targetAddress = targetAddress
        began = server.clock.monotonic()
        facts = Locked(Facts())
    }

    private var now: Int64 { server.clock.monotonic() }

    // MARK: On libmicrohttpd's thread

    /// One call of the access handler. Returns `false` to close the connection.
    func access(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>, _ bytes: UnsafeRawBufferPointer)
        -> Bool
    {
        if case .head = state.withLock({ $0.reading }) {
            return open(RequestHead(handle, method, version, target: target, at: targetAddress))
        }
        let time = now
        let step = state.withLock { state -> ExchangeState.Step in
            let step = bytes.isEmpty ? state.called(at: time) : state.received(bytes, budget: server.budget)
            if case .hold = step { hold(&state) }
            return step
        }
        switch step {
        case .readOn, .hold: return true
        case .run(let body): return run(body)
        case .send(let response, let early): return send(response, early: early)
        case .interrupt(let response): return interrupt(response)
        case .refuse(let reason): return interrupt(refusal(reason))
        }
    }

    /// Suspends the connection, once.
    private func hold(_ state: inout ExchangeState) {
        guard !state.isHeld else { return }
        state.isHeld = true
        handle.suspend()
    }

    /// The request and its route wait here for the body to be complete.
    private let pending = Locked<(request: HTTPRequest, route: Route)?>(nil)

    private func open(_ head: RequestHead) -> Bool {
        let id = head.requestID
        facts.withLock {
            $0.requestID = id
            $0.method = head.method
        }
        client.setDeadline(nil)
        do throws(RefusalReason) {
            let framing = try head.framing(server.limits)
            guard !server.isStopping else { throw .shuttingDown }
            return begin(head, framing, id)
        } catch {
            return refuse(error, hasBody: true)
        }
    }

    private func begin(_ head: RequestHead, _ framing: BodyFraming, _ id: String) -> Bool {
        let hasBody = framing != .none && framing != .length(0)
        do throws(RefusalReason) {
            return try route(head, framing, id, hasBody: hasBody)
        } catch {
            return refuse(error, hasBody: hasBody)
        }
    }

    private func route(
        _ head: RequestHead, _ framing: BodyFraming, _ id: String, hasBody: Bool
    ) throws(RefusalReason) -> Bool {
        if target == "*", head.method == "OPTIONS" {
            return answer(HTTPResponse(status: 204), hasBody: hasBody)
        }
        let target = try RequestTarget(target)
        var request = HTTPRequest(
            method: head.method, rawTarget: self.target, segments: target.segments, query: target.query,
            headers: RequestHeaders(head.fields), remoteAddress: client.address, requestID: id, framing: framing,
            clientGone: gone)
        switch server.router.match(method: head.method, segments: target.segments) {
        case .notFound: return refuse(.notFound, request, hasBody: hasBody)
        case .methodNotAllowed(let allow):
            guard head.method == "OPTIONS" else {
                return refuse(.methodNotAllowed(allow: allow), request, hasBody: hasBody)
            }
            return answer(adorned(server.router.options(request, allow), request), hasBody: hasBody)
        case .route(let route, let parameters):
            request.parameters = parameters
            facts.withLock { $0.route = route.pattern }
            do throws(RefusalReason) {
                return try read(request, route, hasBody: hasBody)
            } catch {
                return refuse(error, request, hasBody: hasBody)
            }
        }
    }

    /// Decides how the body of `request` is read.
    private func read(_ request: HTTPRequest, _ route: Route, hasBody: Bool) throws(RefusalReason) -> Bool {
        switch route.body {
        case .none:
            guard !hasBody else { throw .unexpectedBody }
            pending.withLock { $0 = (request, route) }
            return whole()
        case .collect(let limit):
            var length: UInt64? = nil
            if case .length(let announced) = request.framing { length = announced }
            let body = try CollectedBody(
                length: length, limit: limit, free: server.limits.smallBodyBytes, budget: server.budget)
            pending.withLock { $0 = (request, route) }
            if hasBody { client.setDeadline(now + server.limits.bodyDeadline.milliseconds) }
            state.withLock { $0.reading = .collecting(body) }
            return true
        case .stream:
            var request = request
            guard hasBody else {
                request.body = .stream(RequestStream([]))
                pending.withLock { $0 = (request, route) }
                return whole()
            }
            let stream = RequestStream { [weak self] in self?.demand() }
            facts.withLock { $0.stream = stream }
            request.body = .stream(stream)
            state.withLock { $0.reading = .offered(stream) }
            start(request, route, yields: false)
            return goOn()
        }
    }

    /// There is no body: the library calls again at once, and then takes an answer without closing.
    private func whole() -> Bool {
        state.withLock { $0.reading = .collecting(.empty) }
        return true
    }

    private func run(_ body: [UInt8]) -> Bool {
        client.setDeadline(nil)
        guard
            let (request, route) = pending.withLock({ waiting in
                defer { waiting = nil }
                return waiting
            })
        else { return false }
        var complete = request
        if case .collect = route.body { complete.body = request.framing == .none ? .none : .bytes(body) }
        facts.withLock { $0.received = Int64(body.count) }
        start(complete, route, yields: body.count > 65_536)
        return goOn()
    }

    /// After the handler started: it may have answered already, or asked for its body.
    private func goOn() -> Bool {
        let time = now
        let step = state.withLock { state -> ExchangeState.Step in
            let step = state.called(at: time)
            if case .hold = step { hold(&state) }
            return step
        }
        guard case .send(let response, let early) = step else { return true }
        return send(response, early: early)
    }

    /// Runs the handler, on this thread until it first waits.
    private func start(_ request: HTTPRequest, _ route: Route, yields: Bool) {
        let isLate = state.withLock { state in
            guard case .none = state.answer else { return true }
            state.answer = .running
            return false
        }
        guard !isLate else { return }  // The deadline was faster.
        server.handlerStarted()
        let task = Task.immediate {
            if yields { await Task.yield() }
            let response = await route.handler(request)
            await self.deliver(self.adorned(response, request), isHead: request.method == "HEAD")
            self.server.handlerEnded()
        }
        gone.started(task)
    }

    private func send(_ response: HTTPResponse, early: Bool) -> Bool {
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
        for name in refused { server.log.error("response header dropped", ("name", name), ("request", id)) }
        return reply.queue(on: handle, status: response.status)
    }

    // MARK: Refusals

    private func refusal(_ reason: RefusalReason) -> HTTPResponse {
        var response = server.refusal(reason, facts.withLock { $0.requestID })
        if case .methodNotAllowed(let allow) = reason,
            !response.headers.contains(where: { equalIgnoringASCIICase($0.0, "Allow") })
        {
            response.headers.append(("Allow", allow.joined(separator: ", ")))
        }
        return response
    }

    private func adorned(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        guard let adorn = server.adorn else { return response }
        var response = response
        adorn(request, &response)
        return response
    }

    private func refuse(_ reason: RefusalReason, _ request: HTTPRequest? = nil, hasBody: Bool) -> Bool {
        let response = refusal(reason)
        return answer(request.map { adorned(response, $0) } ?? response, hasBody: hasBody)
    }

    /// Answers without a handler: before the body, which closes the connection, or when there is none.
    private func answer(_ response: HTTPResponse, hasBody: Bool) -> Bool {
        guard !hasBody else { return send(response, early: true) }
        state.withLock {
            $0.reading = .whole
            $0.answer = .ready(response)
        }
        return true
    }

    /// Answers in the middle of a body, which libmicrohttpd cannot: writes past it and closes.
    private func interrupt(_ response: HTTPResponse) -> Bool {
        let (id, method) = facts.withLock { ($0.requestID, $0.method) }
        guard client.isPlain, let bytes = RawAnswer.bytes(response, requestID: id, isHead: method == "HEAD") else {
            state.withLock {
                $0.reading = .dropping
                $0.answer = .ready(response)
            }
            client.setDeadline(now + server.limits.bodyDeadline.milliseconds)
            return true
        }
        state.withLock { $0.answer = .queued }
        facts.withLock {
            $0.status = response.status
            $0.sent = response.body.length ?? 0
            $0.lingers = true
        }
        client.write(bytes)
        return false
    }

    // MARK: From the handler's task

    private func demand() {
        let time = now
        state.withLock { if $0.demanded(at: time) { handle.resume() } }
    }

    private func deliver(_ response: HTTPResponse, isHead: Bool) async {
        var produce: (@Sendable (ResponseWriter) async -> Void)?
        if case .stream(let body) = response.body, !isHead { produce = body }
        let writer = produce.map { _ in ResponseWriter(handle) }
        let isTaken = state.withLock { state in
            guard state.answered(response) else { return false }
            state.writer = writer
            if state.release() { handle.resume() }
            return true
        }
        guard isTaken else { return response.body.discard() }
        guard let produce, let writer else { return }
        await Task.yield()
        await produce(writer)
        writer.end()
    }

    // MARK: From the watch thread

    /// Looks after an exchange that takes a while: its rate, and whether its client should be watched.
    func look(at now: Int64) {
        if state.withLock({ $0.isTooSlow(at: now, server.limits) }) { return expire() }
        lookForCut()
        guard now - began >= 200 else { return }
        let waits = state.withLock { state in
            if case .running = state.answer { return true }
            if case .queued = state.answer { return state.writer != nil }
            return false
        }
        guard waits,
            facts.withLock({ facts in
                defer { facts.isWatched = true }
                return !facts.isWatched
            })
        else { return }
        server.watch.add(self)
        if isOver { server.watch.remove(self) }  // It ended meanwhile, and did not know that it was watched.
    }

    /// A deadline has passed: 408 where it can still be written, and the end of the connection.
    func expire() {
        let canAnswer = state.withLock { state in
            switch (state.reading, state.answer) {
            case (.head, .none), (.collecting, .none), (.streaming, .running), (.streaming, .none):
                state.answer = .queued
                return true
            default: return false
            }
        }
        if canAnswer {
            let response = refusal(.requestTimeout)
            let id = facts.withLock { facts in
                facts.status = response.status
                facts.lingers = true
                if facts.requestID.isEmpty { facts.requestID = randomRequestID() }
                return facts.requestID
            }
            if let bytes = RawAnswer.bytes(response, requestID: id, isHead: false) { client.write(bytes) }
        }
        client.shut()
    }

    /// The client closed its side. Inside a streamed body that may be the end of a body still on its way to us.
    func clientLeft() {
        let (streamed, writer) = state.withLock { ($0.streamed, $0.writer) }
        if let streamed {
            facts.withLock { $0.halfClosedAt = streamed.received - 1 }
        } else {
            gone.fire(.left)
            _ = writer?.abort()
        }
    }

    /// Ends a connection whose client closed its side in the middle of a body: when, between two looks, nothing came
    /// and nothing is left to read. libmicrohttpd can miss the end: it takes a short read for an empty socket, and
    /// with edge-triggered epoll an end that came with the last bytes makes no event of its own.
    private func lookForCut() {
        guard let last = facts.withLock({ $0.halfClosedAt }) else { return }
        let (streamed, isHeld) = state.withLock { ($0.streamed, $0.isHeld) }
        guard let received = streamed?.received else {
            facts.withLock { $0.halfClosedAt = nil }
            return clientLeft()
        }
        facts.withLock { $0.halfClosedAt = received }
        if received == last, !isHeld, !client.hasUnread { client.shut() }
    }

    // MARK: The end

    /// The server stops: wakes a handler that waits.
    func wake() { gone.fire(.serverStops) }

    /// The server stops and waits no longer: answers in place of the handler, ends streams.
    func force() {
        let response = refusal(.shuttingDown)
        let (writer, streamed) = state.withLock { state -> (ResponseWriter?, RequestStream?) in
            let streamed = state.streamed
            if state.answered(response), state.release() { handle.resume() }
            return (state.writer, streamed)
        }
        _ = writer?.abort()
        guard let streamed else { return }
        streamed.fail(.cutOff)
        client.shut()
    }

    /// Whether a handler runs or an answer is under way.
    var isBusy: Bool {
        state.withLock { state in
            switch state.answer {
            case .none, .over: false
            case .running, .ready, .queued: true
            }
        }
    }

    private var isOver: Bool {
        state.withLock { if case .over = $0.answer { true } else { false } }
    }

    /// Whether libmicrohttpd must not be stopped yet.
    var isHeld: Bool { state.withLock { $0.isHeld || $0.writer?.isHeld == true } }

    /// The library is done with the request, whichever way.
    func over() {
        let last = state.withLock { state in
            defer {
                state.answer = .over
                state.reading = .whole
            }
            return state
        }
        last.streamed?.fail(.cutOff)
        var isCutOff = last.writer?.abort() ?? false
        switch last.answer {
        case .running: isCutOff = true
        case .ready(let response): response.body.discard()
        case .none, .queued, .over: break
        }
        if isCutOff { gone.fire(.left) }
        gone.ended()
        let facts = facts.withLock { $0 }
        if facts.isWatched { server.watch.remove(self) }
        if facts.lingers { server.watch.linger(client) }
        client.exchangeEnded(
            nextDeadline: now + (server.limits.inactivity + server.limits.headDeadline).milliseconds)
        server.observe(
            Observation(
                method: facts.method, route: facts.route, status: facts.status,
                duration: ContinuousClock.now - start, bytesReceived: facts.stream?.received ?? facts.received,
                bytesSent: last.writer?.total ?? facts.sent, requestID: facts.requestID))
    }
}
