/// What `POST /v1/sessions` takes: it only creates.
public struct SessionCreation: Shape {
    /// The name of the session; `nil` lets the service make one.
    public var identifier: String?
    /// The configuration; `nil` for defaults, and to reconnect to any.
    public var configuration: SessionConfiguration?
    public var sessionDescription: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("identifier", &identifier, .identifier)
        members.optional("configuration", &configuration)
        members.optional("sessionDescription", &sessionDescription, .description)
    }
}

/// What `PUT /v1/sessions/{identifier}` takes: it creates the session or reconnects to it.
public struct SessionPut: Shape {
    /// The configuration; `nil` for defaults, and to reconnect to any.
    public var configuration: SessionConfiguration?
    /// The app's words about it; an absent member leaves them as they are.
    public var sessionDescription: Change<String> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("configuration", &configuration)
        members.change("sessionDescription", &sessionDescription, .description)
    }
}

/// What `PATCH /v1/sessions/{identifier}` takes.
public struct SessionChange: Shape {
    public var sessionDescription: Change<String> = .unchanged
    /// Bytes per second over all transfers.
    public var bandwidthLimit: Change<Int64> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("sessionDescription", &sessionDescription, .description)
        members.change("bandwidthLimit", &bandwidthLimit, 1 ... .max)
    }
}
