/// The authentication method of a server or proxy.
public struct AuthenticationMethod: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// User and password (RFC 7617).
    public static let basic: Self = "HTTPBasic"
    /// User and a digest of the password (RFC 7616).
    public static let digest: Self = "HTTPDigest"
    /// A token (RFC 6750).
    public static let bearer: Self = "HTTPBearer"
    /// A certificate of the client.
    public static let clientCertificate: Self = "ClientCertificate"
    /// A server whose certificate is not trusted.
    public static let serverTrust: Self = "ServerTrust"
    public static let known: [Self] = [.basic, .digest, .bearer, .clientCertificate, .serverTrust]
}

/// The requester of authentication, as in `URLProtectionSpace`.
public struct ProtectionSpace: Shape {
    public var host = ""
    public var port: Int64 = 0
    /// `http` or `https`.
    public var `protocol` = ""
    /// The host's name for the space.
    public var realm: String?
    public var authenticationMethod = AuthenticationMethod()
    /// Whether the requester is a proxy.
    public var isProxy = false
    /// The key of an untrusted server, `sha256/BASE64`.
    public var serverPublicKey: String?

    public init() {}

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

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("host", &host, .host)
        members.member("port", &port, 1...65535)
        members.member("protocol", &`protocol`, .httpScheme)
        members.nullable("realm", &realm, .length(0...1024))
        members.member("authenticationMethod", &authenticationMethod)
        members.defaulted("isProxy", &isProxy)
        members.optional("serverPublicKey", &serverPublicKey, .publicKeyPin)
    }
}

extension TextRule {
    /// `http` or `https`.
    static let httpScheme = TextRule { text in
        text == "http" || text == "https" ? nil : "This must be http or https."
    }
}

/// A stored credential, without its secret.
public struct StoredCredential: Shape {
    /// The identifier with which the credential is deleted.
    public var credentialIdentifier = ""
    /// The protection space in which it is used.
    public var protectionSpace = ProtectionSpace()
    /// The user, if the credential has one.
    public var user: String?
    public var createdAt = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("credentialIdentifier", &credentialIdentifier)
        members.member("protectionSpace", &protectionSpace)
        members.nullable("user", &user)
        members.member("createdAt", &createdAt)
    }
}

/// The body of `POST /v1/credentials`.
public struct CredentialCreation: Shape {
    /// The protection space in which it is used.
    public var protectionSpace = ProtectionSpace()
    public var credential = Credential(.token(""))

    public init() {}

    public init(protectionSpace: ProtectionSpace, credential: Credential) {
        self.protectionSpace = protectionSpace
        self.credential = credential
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("protectionSpace", &protectionSpace)
        members.member("credential", &credential)
    }
}
