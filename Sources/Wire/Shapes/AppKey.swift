/// A permission of a key.
public struct Scope: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Read sessions, tasks, contents and events.
    public static let sessionsRead: Self = "sessions:read"
    /// Change sessions, tasks and bodies.
    public static let sessionsWrite: Self = "sessions:write"
    /// Read and acknowledge events, attach, answer and complete.
    public static let events: Self = "events"
    /// Read and change the app itself.
    public static let app: Self = "app"
    public static let known: [Self] = [.sessionsRead, .sessionsWrite, .events, .app]
}

/// A key of an app. The key itself is only in the response that created it.
public struct AppKey: Shape {
    /// The identifier with which the key is revoked.
    public var keyIdentifier = ""
    /// The key itself, only once.
    public var apiKey: String?
    public var scopes: [Scope] = []
    public var createdAt = ""
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("keyIdentifier", &keyIdentifier)
        members.optional("apiKey", &apiKey)
        members.defaulted("scopes", &scopes)
        members.defaulted("createdAt", &createdAt)
        members.nullable("expiresAt", &expiresAt)
    }
}

/// The body of `POST /v1/apps/{app}/keys`.
public struct AppKeyCreation: Shape {
    public var scopes: [Scope] = Scope.known
    /// The expiry of the key.
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("scopes", &scopes, .words(1...Scope.known.count))
        members.optional("expiresAt", &expiresAt, .timestamp)
    }
}

/// The body of `POST /v1/app/webhook/secret/rotate`.
public struct SecretRotation: Shape {
    /// Seconds for which the replaced secret still signs.
    public var gracePeriod: Double = 86_400

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("gracePeriod", &gracePeriod, 0...2_592_000)
    }
}

/// The response to the rotation of a secret.
public struct RotatedSecret: Shape {
    /// The new secret, `whsec_…`. Shown once.
    public var secret = ""
    /// The time at which the replaced secret stops signing.
    public var previousSecretExpiresAt = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("secret", &secret)
        members.member("previousSecretExpiresAt", &previousSecretExpiresAt)
    }
}
