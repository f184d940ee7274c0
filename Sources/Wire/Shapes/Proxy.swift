/// A proxy between the service and the servers of a session.
public struct Proxy: Shape {
    /// The protocol of a proxy.
    public struct Kind: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// An HTTP proxy.
        public static let http: Self = "http"
        /// An HTTP proxy with a TLS connection.
        public static let https: Self = "https"
        /// SOCKS 5; the service resolves names.
        public static let socks5: Self = "socks5"
        /// SOCKS 5; the proxy resolves names.
        public static let socks5h: Self = "socks5h"
        public static let known: [Self] = [.http, .https, .socks5, .socks5h]
    }

    public var type = Kind()
    public var host = ""
    public var port: Int64 = 0
    /// The user, if the proxy requires one.
    public var user: String?
    /// The user's password. Never in responses.
    public var password: String?

    public init() {}

    public init(type: Kind, host: String, port: Int64, user: String? = nil, password: String? = nil) {
        self.type = type
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("type", &type)
        members.member("host", &host, .host)
        members.member("port", &port, 1...65535)
        var login = user.map { user in Login { ($0.user, $0.password) = (user, password) } }
        members.optional("credential", &login)
        (user, password) = (login?.user, login?.password)
    }

    private struct Login: Shape {
        var user = ""
        var password: String?

        mutating func visit(_ members: inout some MemberVisitor) {
            members.member("user", &user, .plain(0...1024))
            members.optional("password", &password, .plain(0...1024))
        }
    }
}
