/// A PostgreSQL server, and how it is spoken to.
package struct PostgreSQLServer: Sendable {
    /// A connection string of libpq: `postgresql://user@host1,host2/name?option=value`.
    package var connection: String
    /// Whether statements are prepared once and kept; a pooler that gives each transaction another connection may not have
    /// them.
    package var keepsStatements: Bool

    package init(_ connection: String, keepsStatements: Bool = true) {
        self.connection = connection
        self.keepsStatements = keepsStatements
    }

    /// What is wrong with the connection string; nil for one that can be used.
    ///
    /// - Throws: ``SQLError/Code/unreachable`` where libpq is not installed.
    package var fault: String? { get throws(SQLError) { try LibPQ.fault(in: connection) } }

    /// The connection string without its password and options.
    package var publicText: String {
        let address = connection.prefix { $0 != "?" }
        guard let at = address.lastIndex(of: "@"), let scheme = address.firstRange(of: "://"), scheme.upperBound < at
        else { return String(address) }
        let user = address[scheme.upperBound..<at].prefix { $0 != ":" }
        return String(address[..<scheme.upperBound] + user + address[at...])
    }

    /// What holds where the connection string says nothing else: no connection is waited for longer than a failover takes,
    /// and a server that vanished is noticed.
    static let defaults = [
        ("application_name", "urlsessiond"), ("client_encoding", "UTF8"), ("connect_timeout", "5"),
        ("target_session_attrs", "read-write"), ("keepalives_idle", "5"), ("keepalives_interval", "5"),
        ("keepalives_count", "3"), ("tcp_user_timeout", "15000"),
    ]
}
