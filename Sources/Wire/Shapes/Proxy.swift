/// What stands between the service and the servers of a session.
public struct Proxy: Sendable, Hashable, JSONWritable, JSONReadable {
    /// What a proxy speaks.
    public struct Kind: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a kind of its word.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// An HTTP proxy.
        public static let http: Self = "http"
        /// An HTTP proxy reached through TLS.
        public static let https: Self = "https"
        /// SOCKS 5; the service resolves names.
        public static let socks5: Self = "socks5"
        /// SOCKS 5; the proxy resolves names.
        public static let socks5h: Self = "socks5h"
        /// All kinds.
        public static let known: [Self] = [.http, .https, .socks5, .socks5h]
    }

    /// What it speaks.
    public var type: Kind
    /// Its host.
    public var host: String
    /// Its port.
    public var port: Int64
    /// The user it wants, if it wants one.
    public var user: String?
    /// The user's password. Never in answers.
    public var password: String?

    /// Makes a proxy.
    public init(type: Kind, host: String, port: Int64, user: String? = nil, password: String? = nil) {
        self.type = type
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// Reads a proxy.
    public init(reading reader: inout ObjectReader) {
        type = reader.word("type")
        host = reader.string("host", .host)
        port = reader.integer("port", in: 1...65535)
        let credential = reader.optionalObject("credential") { reader in
            (reader.string("user", .plain(0...1024)), reader.optionalString("password", .plain(0...1024)))
        }
        user = credential?.0
        password = credential?.1
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("type", type)
            writer.member("host", host)
            writer.member("port", port)
            guard let user else { return }
            writer.object("credential") { writer in
                writer.member("user", user)
                writer.memberIfPresent("password", password)
            }
        }
    }
}
