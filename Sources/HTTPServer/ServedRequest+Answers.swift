import Base

/// Responses before, inside, or after the body.
extension ServedRequest {
    func refusal(_ reason: RefusalReason) -> HTTPResponse {
        var response = server.refusal(reason, target, facts.withLock { $0.requestID })
        if case .methodNotAllowed(let allow) = reason,
            !response.headers.contains(where: { equalIgnoringASCIICase($0.0, "Allow") })
        {
            response.headers.append(("Allow", allow.joined(separator: ", ")))
        }
        return response
    }

    func adorned(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        guard let adorn = server.adorn else { return response }
        var response = response
        adorn(request, &response)
        return response
    }

    func refuse(_ reason: RefusalReason, _ request: HTTPRequest? = nil, hasBody: Bool) -> Bool {
        let response = refusal(reason)
        return answer(request.map { adorned(response, $0) } ?? response, hasBody: hasBody)
    }

    /// Responds without a handler: before the body, which closes the connection, or if there is none.
    func answer(_ response: HTTPResponse, hasBody: Bool) -> Bool {
        guard !hasBody else { return send(response, early: true) }
        state.withLock {
            $0.reading = .whole
            $0.answer = .ready(response)
        }
        return true
    }

    /// Responds inside a body, which libmicrohttpd cannot: writes to the socket directly and closes.
    func interrupt(_ response: HTTPResponse) -> Bool {
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

    func demand() {
        let time = now
        state.withLock { if $0.demanded(at: time) { handle.resume() } }
    }

    /// Limits the time for the rest of the body. Under the lock, so that no deadline outlives the body.
    func limitBody(_ time: Duration) {
        state.withLock { state in
            guard state.streamed != nil else { return }
            state.pace = .deadline
            client.setDeadline(now + time.milliseconds)
        }
    }

    func deliver(_ response: HTTPResponse, isHead: Bool) async {
        let produce: (@Sendable (ResponseWriter) async throws -> Void)? =
            switch response.body {
            case .stream(let body) where !isHead: body
            case .sized(_, let body) where !isHead: body
            default: nil
            }
        let writer = produce.map { _ in ResponseWriter(handle, for: response.body) }
        if case .stream = response.body { client.limitSendBuffer() }
        var response = response
        if let limit = response.silenceLimit {
            client.limitSilence(limit)
            // The limit holds for the connection, which therefore serves no other response.
            response.headers.append(("Connection", "close"))
        }
        let isTaken = state.withLock { state in
            guard state.answered(response) else { return false }
            state.writer = writer
            if state.release() { handle.resume() }
            return true
        }
        guard isTaken else { return response.body.discard() }
        guard let produce, let writer else { return }
        await Task.yield()
        do {
            try await produce(writer)
            writer.end()
        } catch {
            // The client must notice that the body is shorter than announced.
            _ = writer.abort()
        }
    }
}
