/// What `POST /v1/sessions` takes: it only creates.
public struct SessionCreation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The name of the session; `nil` lets the service make one.
    public var identifier: String?
    /// The configuration; `nil` for defaults, and to reconnect to any.
    public var configuration: SessionConfiguration?
    /// The app's words about it.
    public var sessionDescription: String?

    /// The longest description in bytes.
    static let maximumDescriptionLength = 4096

    /// Makes a request.
    public init(
        identifier: String? = nil, configuration: SessionConfiguration? = nil, sessionDescription: String? = nil
    ) {
        self.identifier = identifier
        self.configuration = configuration
        self.sessionDescription = sessionDescription
    }

    /// Reads the body of a `POST`.
    public init(reading reader: inout ObjectReader) {
        identifier = reader.optionalString("identifier", .identifier)
        configuration = reader.optionalObject("configuration")
        sessionDescription = reader.optionalString("sessionDescription", .length(0...Self.maximumDescriptionLength))
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("identifier", identifier)
            writer.memberIfPresent("configuration", configuration)
            writer.memberIfPresent("sessionDescription", sessionDescription)
        }
    }
}

/// What `PUT /v1/sessions/{identifier}` takes: it creates the session or reconnects to it.
public struct SessionPut: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The configuration; `nil` for defaults, and to reconnect to any.
    public var configuration: SessionConfiguration?
    /// The app's words about it; an absent member leaves them as they are.
    public var sessionDescription: Change<String>

    /// Makes a request.
    public init(configuration: SessionConfiguration? = nil, sessionDescription: Change<String> = .unchanged) {
        self.configuration = configuration
        self.sessionDescription = sessionDescription
    }

    /// Reads a body.
    public init(reading reader: inout ObjectReader) {
        configuration = reader.optionalObject("configuration")
        sessionDescription = reader.change("sessionDescription") { reader in
            reader.optionalString("sessionDescription", .length(0...SessionCreation.maximumDescriptionLength))
        }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.memberIfPresent("configuration", configuration)
            writer.member("sessionDescription", sessionDescription)
        }
    }
}

/// What `PATCH /v1/sessions/{identifier}` takes.
public struct SessionChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The app's words about it.
    public var sessionDescription: Change<String>
    /// Bytes per second over all transfers.
    public var bandwidthLimit: Change<Int64>

    /// Makes a change.
    public init(sessionDescription: Change<String> = .unchanged, bandwidthLimit: Change<Int64> = .unchanged) {
        self.sessionDescription = sessionDescription
        self.bandwidthLimit = bandwidthLimit
    }

    /// Reads a change.
    public init(reading reader: inout ObjectReader) {
        sessionDescription = reader.change("sessionDescription") { reader in
            reader.optionalString("sessionDescription", .length(0...SessionCreation.maximumDescriptionLength))
        }
        bandwidthLimit = reader.change("bandwidthLimit") { $0.optionalInteger("bandwidthLimit", in: 1 ... .max) }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("sessionDescription", sessionDescription)
            writer.member("bandwidthLimit", bandwidthLimit)
        }
    }
}
