public import Wire

/// Other commands for sessions.
extension Client {
    /// Creates a session. Unlike ``openSession(_:configuration:description:)`` it refuses an existing one.
    public func createSession(_ session: SessionCreation = SessionCreation()) async throws -> Session {
        try await send("POST", ["v1", "sessions"], body: session.jsonBytes)
    }

    /// Changes the description or the bandwidth limit. The rest of the configuration is frozen.
    public func change(_ change: SessionChange, ofSession identifier: String) async throws -> Session {
        try await send("PATCH", ["v1", "sessions", identifier], body: change.jsonBytes)
    }

    /// Deletes the session's cookies and credentials and closes its connections. Partial downloads stay.
    public func resetSession(_ identifier: String) async throws -> Session {
        try await send("POST", ["v1", "sessions", identifier, "reset"])
    }
}
