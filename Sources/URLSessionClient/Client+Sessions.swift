public import Wire

/// What a session can be told besides.
extension Client {
    /// Creates a session; unlike ``openSession(_:configuration:description:)`` it refuses one that is there.
    public func createSession(_ session: SessionCreation = SessionCreation()) async throws -> Session {
        try await send("POST", ["v1", "sessions"], body: session.jsonBytes)
    }

    /// Changes the description or the bandwidth limit. The rest of the configuration is frozen.
    public func change(_ change: SessionChange, ofSession identifier: String) async throws -> Session {
        try await send("PATCH", ["v1", "sessions", identifier], body: change.jsonBytes)
    }

    /// Empties the session's cookies and credentials and closes its connections. Partial downloads stay.
    public func resetSession(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "reset"])
    }
}
