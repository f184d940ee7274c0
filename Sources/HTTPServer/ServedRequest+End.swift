import Base

/// How a request ends.
extension ServedRequest {
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

    var isOver: Bool {
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
        client.requestEnded(
            nextDeadline: now + (server.limits.inactivity + server.limits.headDeadline).milliseconds)
        server.noteEnd()
        server.observe(
            Observation(
                method: facts.method, target: target, route: facts.route, status: facts.status,
                duration: ContinuousClock.now - start, bytesReceived: facts.stream?.received ?? 0,
                bytesSent: last.writer?.total ?? facts.sent, isStreamed: last.writer != nil, requestID: facts.requestID)
        )
    }
}
