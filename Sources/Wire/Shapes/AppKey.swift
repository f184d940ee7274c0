/// What a key may do.
public struct Scope: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Read sessions, tasks, contents and events.
    public static let sessionsRead: Self = "sessions:read"
    /// Change sessions, tasks and bodies.
    public static let sessionsWrite: Self = "sessions:write"
    /// Read and acknowledge events, attach, answer and complete.
    public static let events: Self = "events"
    /// Read and change the app itself.
    public static let app: Self = "app"
    /// All of them.
    public static let known: [Self] = [.sessionsRead, .sessionsWrite, .events, .app]
}

/// A key of an app. The key itself is there only in the answer that made it.
public struct AppKey: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What revokes it.
    public var keyIdentifier: String
    /// The key itself, once.
    public var apiKey: String?
    /// What it may do.
    public var scopes: [Scope]
    /// When it ends.
    public var expiresAt: String?

    /// Makes one.
    public init(keyIdentifier: String, apiKey: String? = nil, scopes: [Scope], expiresAt: String? = nil) {
        self.keyIdentifier = keyIdentifier
        self.apiKey = apiKey
        self.scopes = scopes
        self.expiresAt = expiresAt
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        keyIdentifier = reader.string("keyIdentifier")
        apiKey = reader.optionalString("apiKey")
        scopes = reader.words("scopes", default: [])
        expiresAt = reader.optionalString("expiresAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("keyIdentifier", keyIdentifier)
            writer.memberIfPresent("apiKey", apiKey)
            writer.member("scopes", scopes)
            writer.member("expiresAt", expiresAt)
        }
    }
}

/// What `POST /v1/apps/{app}/keys` takes.
public struct AppKeyCreation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What it may do.
    public var scopes: [Scope]
    /// When it ends.
    public var expiresAt: String?

    /// Makes one.
    public init(scopes: [Scope] = Scope.known, expiresAt: String? = nil) {
        self.scopes = scopes
        self.expiresAt = expiresAt
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        scopes = reader.words("scopes", default: Scope.known, count: 1...Scope.known.count)
        expiresAt = reader.optionalString("expiresAt", .timestamp)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("scopes", scopes)
            writer.memberIfPresent("expiresAt", expiresAt)
        }
    }
}

/// What `POST /v1/app/webhook/secret/rotate` takes.
public struct SecretRotation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Seconds for which the replaced secret goes on signing.
    public var gracePeriod: Double

    /// Makes one.
    public init(gracePeriod: Double = 86_400) {
        self.gracePeriod = gracePeriod
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        gracePeriod = reader.number("gracePeriod", default: 86_400, in: 0...2_592_000)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { $0.member("gracePeriod", gracePeriod) }
    }
}

/// What the rotation of a secret answers.
public struct RotatedSecret: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The new secret, `whsec_…`. Shown once.
    public var secret: String
    /// When the replaced one stops signing.
    public var previousSecretExpiresAt: String

    /// Makes one.
    public init(secret: String, previousSecretExpiresAt: String) {
        self.secret = secret
        self.previousSecretExpiresAt = previousSecretExpiresAt
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        secret = reader.string("secret")
        previousSecretExpiresAt = reader.string("previousSecretExpiresAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("secret", secret)
            writer.member("previousSecretExpiresAt", previousSecretExpiresAt)
        }
    }
}
