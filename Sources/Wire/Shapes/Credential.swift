/// A secret that answers a challenge. It is sent only to the service, never by it.
public struct Credential: Sendable, Hashable {
    /// The kinds of secrets.
    public enum Secret: Sendable, Hashable {
        /// For Basic and Digest.
        case password(user: String, password: String)
        /// For Bearer.
        case token(String)
        /// A client certificate and its key, in PEM.
        case certificate(String, key: String)
        /// The trusted key of a server, `sha256/BASE64`.
        case trustPublicKey(String)
    }

    /// The scope of a credential.
    public struct Persistence: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// For this answer only; the default.
        public static let none: Self = "none"
        /// For the other tasks of the session, too.
        public static let forSession: Self = "forSession"
        /// For all sessions of the app.
        public static let permanent: Self = "permanent"
        public static let known: [Self] = [.none, .forSession, .permanent]
    }

    public var secret: Secret
    public var persistence: Persistence

    public init(_ secret: Secret, persistence: Persistence = .none) {
        self.secret = secret
        self.persistence = persistence
    }

    /// Whether the credential can answer a challenge of this method.
    public func fits(_ method: AuthenticationMethod) -> Bool {
        switch secret {
        case .password: method == .basic || method == .digest
        case .token: method == .bearer
        case .certificate: method == .clientCertificate
        case .trustPublicKey: method == .serverTrust
        }
    }
}

extension Credential: JSONReadable, MemberValue {
    public init(reading reader: inout ObjectReader) {
        persistence = .none
        reader.defaulted("persistence", &persistence)
        let forms = ["user", "token", "certificate", "trustPublicKey"].filter { reader.presence(of: $0) != .absent }
        switch forms {
        case ["user"]:
            let user = reader.required("user", "", .plain(0...1024))
            if reader.mode == .strict, user.contains(":") { reader.report("user", "A user has no colon in the name.") }
            secret = .password(user: user, password: reader.required("password", "", .plain(0...4096)))
        case ["token"]: secret = .token(reader.required("token", "", .bearerToken))
        case ["certificate"]:
            let certificate = reader.required("certificate", "", .pem)
            secret = .certificate(certificate, key: reader.required("key", "", .pem))
        case ["trustPublicKey"]: secret = .trustPublicKey(reader.required("trustPublicKey", "", .publicKeyPin))
        default:
            reader.report(
                "A credential has exactly one of: user and password, token, certificate and key, trustPublicKey.")
            reader.takeAll(["user", "password", "token", "certificate", "key", "trustPublicKey"])
            secret = .token("")
        }
    }

    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch secret {
            case .password(let user, let password):
                writer.member("user", user)
                writer.member("password", password)
            case .token(let token): writer.member("token", token)
            case .certificate(let certificate, let key):
                writer.member("certificate", certificate)
                writer.member("key", key)
            case .trustPublicKey(let key): writer.member("trustPublicKey", key)
            }
            writer.member("persistence", persistence)
        }
    }
}

extension TextRule {
    /// A bearer token: visible ASCII, valid in a header field.
    static let bearerToken = TextRule { text in
        let isValid = (1...8000).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isValid ? nil : "A token has 1 to 8000 visible ASCII characters."
    }
}
