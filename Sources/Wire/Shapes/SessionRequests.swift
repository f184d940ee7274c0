/// The body of `POST /v1/sessions`, which only creates.
public struct SessionCreation: Shape {
    /// The name of the session; if `nil`, the service creates one.
    public var identifier: String?
    /// The configuration; `nil` for the defaults, and to reconnect to any configuration.
    public var configuration: SessionConfiguration?
    public var sessionDescription: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("identifier", &identifier, .identifier)
        members.optional("configuration", &configuration)
        members.optional("sessionDescription", &sessionDescription, .description)
    }
}

/// The body of `PUT /v1/sessions/{identifier}`, which creates the session or reconnects to it.
public struct SessionPut: Shape {
    /// The configuration; `nil` for the defaults, and to reconnect to any configuration.
    public var configuration: SessionConfiguration?
    /// The app's description; an absent member keeps it.
    public var sessionDescription: Change<String> = .unchanged

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("configuration", &configuration)
        members.change("sessionDescription", &sessionDescription, .description)
    }
}

/// The body of `PATCH /v1/sessions/{identifier}`.
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
