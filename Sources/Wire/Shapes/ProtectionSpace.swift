/// How a server or proxy wants to be shown who asks, or shows itself.
public struct AuthenticationMethod: WireName {
    /// The word.
    public let rawValue: String
    /// Makes a value of its word.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// User and password (RFC 7617).
    public static let basic: Self = "HTTPBasic"
    /// User and password, not shown (RFC 7616).
    public static let digest: Self = "HTTPDigest"
    /// A token (RFC 6750).
    public static let bearer: Self = "HTTPBearer"
    /// A certificate of the client.
    public static let clientCertificate: Self = "ClientCertificate"
    /// The server's own certificate is not trusted.
    public static let serverTrust: Self = "ServerTrust"
    /// All of them.
    public static let known: [Self] = [.basic, .digest, .bearer, .clientCertificate, .serverTrust]
}

/// Who asks for authentication, as `URLProtectionSpace` tells it.
public struct ProtectionSpace: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The host that asks.
    public var host: String
    /// Its port.
    public var port: Int64
    /// `http` or `https`.
    public var `protocol`: String
    /// What the host calls the space.
    public var realm: String?
    /// What it wants.
    public var authenticationMethod: AuthenticationMethod
    /// Whether it is a proxy.
    public var isProxy: Bool
    /// `sha256/BASE64` of the key that an untrusted server showed.
    public var serverPublicKey: String?

    /// Makes one.
    public init(
        host: String, port: Int64, protocol: String, realm: String? = nil, authenticationMethod: AuthenticationMethod,
        isProxy: Bool = false, serverPublicKey: String? = nil
    ) {
        self.host = host
        self.port = port
        self.protocol = `protocol`
        self.realm = realm
        self.authenticationMethod = authenticationMethod
        self.isProxy = isProxy
        self.serverPublicKey = serverPublicKey
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        host = reader.string("host", .host)
        port = reader.integer("port", in: 1...65535)
        `protocol` = reader.string("protocol", .httpScheme)
        realm = reader.optionalString("realm", .length(0...1024))
        authenticationMethod = reader.word("authenticationMethod")
        isProxy = reader.bool("isProxy", default: false)
        serverPublicKey = reader.optionalString("serverPublicKey", .publicKeyPin)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("host", host)
            writer.member("port", port)
            writer.member("protocol", `protocol`)
            writer.member("realm", realm)
            writer.member("authenticationMethod", authenticationMethod)
            writer.member("isProxy", isProxy)
            writer.memberIfPresent("serverPublicKey", serverPublicKey)
        }
    }
}

extension TextRule {
    /// `http` or `https`.
    static let httpScheme = TextRule { text in
        text == "http" || text == "https" ? nil : "This must be http or https."
    }
}

/// A credential that the service keeps, without its secret.
public struct StoredCredential: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What deletes it.
    public var credentialIdentifier: String
    /// Where it is used.
    public var protectionSpace: ProtectionSpace
    /// Whose it is, where it says so.
    public var user: String?
    /// When it was stored.
    public var createdAt: String

    /// Makes one.
    public init(credentialIdentifier: String, protectionSpace: ProtectionSpace, user: String? = nil, createdAt: String)
    {
        self.credentialIdentifier = credentialIdentifier
        self.protectionSpace = protectionSpace
        self.user = user
        self.createdAt = createdAt
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        credentialIdentifier = reader.string("credentialIdentifier")
        protectionSpace = reader.object("protectionSpace")
        user = reader.optionalString("user")
        createdAt = reader.string("createdAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("credentialIdentifier", credentialIdentifier)
            writer.member("protectionSpace", protectionSpace)
            writer.member("user", user)
            writer.member("createdAt", createdAt)
        }
    }
}

/// What `POST /v1/credentials` takes.
public struct CredentialCreation: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Where it is used.
    public var protectionSpace: ProtectionSpace
    /// The secret.
    public var credential: Credential

    /// Makes one.
    public init(protectionSpace: ProtectionSpace, credential: Credential) {
        self.protectionSpace = protectionSpace
        self.credential = credential
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        protectionSpace = reader.object("protectionSpace")
        credential = reader.object("credential")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("protectionSpace", protectionSpace)
            writer.member("credential", credential)
        }
    }
}
