public import Wire

/// The log of a session.
extension Client {
    /// The events after a sequence number, by default after the last acknowledged one. With `waiting`, it waits for the
    /// first event.
    ///
    /// Meanwhile the app counts as attached and is not launched.
    public func eventPage(
        of session: String, after seq: Int64? = nil, waiting: Int = 0, limit: Int = 100
    ) async throws -> EventPage<Event> {
        var query = ["limit": String(limit)]
        query["after"] = seq.map { String($0) }
        if waiting > 0 { query["wait"] = String(waiting) }
        return try await send("GET", ["v1", "sessions", session, "events"], query: query, mayTakeLong: waiting > 0)
    }

    /// The session's events in order, from the first unacknowledged one. The sequence has no end.
    ///
    /// Acknowledge each event after it was handled: unacknowledged events are delivered again after a restart.
    public func events(of session: String) -> Events { Events(client: self, session: session) }

    /// The session's stored and live events as they occur, after a sequence number or the last acknowledged one. The
    /// sequence has no end.
    ///
    /// - Parameter attaching: Whether the app counts as attached meanwhile, so that it is not launched. An observer
    ///   that handles no events does not attach.
    public func stream(of session: String, after seq: Int64? = nil, attaching: Bool = true) -> EventStream {
        EventStream(client: self, session: session, after: seq, attaching: attaching)
    }

    /// Acknowledges all events up to a sequence number, with the `epoch` of the app's attachment, if it has one.
    public func acknowledge(through seq: Int64, in session: String, epoch: Int64? = nil) async throws {
        _ = try await exchange(
            "POST", ["v1", "sessions", session, "events", "ack"], body: EventAck(through: seq, epoch: epoch).jsonBytes)
    }
}
