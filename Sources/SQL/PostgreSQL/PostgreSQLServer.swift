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

    /// What is wrong with the connection string, without its password; nil for one that can be used.
    ///
    /// - Throws: ``SQLError/Code/unreachable`` where libpq is not installed.
    package var fault: String? {
        get throws(SQLError) { try LibPQ.fault(in: connection)?.replacing(connection, with: publicText) }
    }

    /// The connection string without its password and options.
    package var publicText: String {
        let start = connection.firstRange(of: "://")?.upperBound ?? connection.startIndex
        // A password may have a question mark.
        let authority = connection[start...].prefix { $0 != "/" }
        let at = authority.lastIndex(of: "@") ?? start
        let user = connection[start..<at].prefix { $0 != ":" && $0 != "?" }
        return String(connection[..<start] + user + connection[at...].prefix { $0 != "?" })
    }

    /// What holds where the connection string says nothing else: no connection is waited for longer than a failover takes,
    /// and a server that vanished is noticed.
    static let defaults = [
        ("application_name", "urlsessiond"), ("client_encoding", "UTF8"), ("connect_timeout", "5"),
        ("target_session_attrs", "read-write"), ("keepalives_idle", "5"), ("keepalives_interval", "5"),
        ("keepalives_count", "3"), ("tcp_user_timeout", "15000"),
    ]
}
