import Base

/// The end of a request.
extension ServedRequest {
    /// Wakes a waiting handler, because the server stops.
    func wake() { gone.fire(.serverStops) }

    /// Responds in place of the handler and ends streams, because the server stops without further waiting.
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

    /// Whether a handler runs or a response is in flight.
    var isBusy: Bool {
        state.withLock { state in
            switch state.answer {
            case .none, .over: false
            case .running, .ready, .queued: true
            }
        }
    }

    /// Whether a stop waits for the request. It waits for none that began later, so that new requests cannot prolong
    /// it.
    var isAwaited: Bool { isBusy && !isLate }

    var isOver: Bool {
        state.withLock { if case .over = $0.answer { true } else { false } }
    }

    /// Whether a suspended connection forbids stopping libmicrohttpd.
    var isHeld: Bool { state.withLock { $0.isHeld || $0.writer?.isHeld == true } }

    /// Called when the library is done with the request, whatever the reason.
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
