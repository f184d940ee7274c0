import Base

/// The watch thread's view of a long request.
extension ServedRequest {
    /// Checks a long request: its rate, and whether its client should be watched.
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

    /// Handles a passed deadline: responds 408 if that is still possible, and ends the connection.
    func expire() {
        let canAnswer = state.withLock { state in
            switch (state.reading, state.answer) {
            case (.head, .none), (.empty, .none), (.streaming, .running), (.streaming, .none):
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

    /// Called when the client closed its side. During a streamed body, the rest of the body may still arrive.
    func clientLeft() {
        let (streamed, writer) = state.withLock { ($0.streamed, $0.writer) }
        if let streamed {
            facts.withLock { $0.halfClosedAt = streamed.received - 1 }
        } else {
            // A handler that is notified must find that no bytes can be written any more.
            _ = writer?.abort()
            gone.fire(.left)
        }
    }

    /// Ends a connection whose client closed its side during a body, once nothing arrived between two checks and
    /// nothing is left to read. libmicrohttpd can miss the end: it takes a short read for an empty socket, and with
    /// edge-triggered epoll an end that arrived with the last bytes causes no event of its own.
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
}
