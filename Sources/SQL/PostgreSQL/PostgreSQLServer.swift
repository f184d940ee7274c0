import CPostgreSQL

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

extension PostgreSQLServer {
    /// A new connection, which the caller owns.
    func connect() throws(SQLError) -> OpaquePointer {
        let pq = try LibPQ.functions().pointee
        let parameters = Self.defaults + [("dbname", connection)]
        let handle = withCStrings(parameters.map(\.0)) { names in
            withCStrings(parameters.map(\.1)) { pq.PQconnectdbParams(names, $0, 1) }
        }
        guard let handle else { throw SQLError(.unreachable, "no memory for a connection") }
        // By itself, libpq would print what the server remarks.
        _ = pq.PQsetNoticeProcessor(handle, { _, _ in }, nil)
        guard pq.PQstatus(handle) == CONNECTION_OK else {
            defer { pq.PQfinish(handle) }
            throw Self.lost(handle, pq)
        }
        guard pq.PQserverVersion(handle) >= 140_000 else {
            defer { pq.PQfinish(handle) }
            throw SQLError(.unknownSchema, "the PostgreSQL server is too old: version 14 or later is needed")
        }
        return handle
    }

    /// Why a connection is of no use any more.
    static func lost(_ handle: OpaquePointer, _ pq: libpq) -> SQLError {
        let message = pq.PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        return SQLError(.unreachable, message.split(whereSeparator: \.isWhitespace).joined(separator: " "))
    }

    /// What went wrong with a statement; nil where nothing did.
    static func error(in result: OpaquePointer, _ pq: libpq) -> SQLError? {
        switch pq.PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY, PGRES_PIPELINE_SYNC: return nil
        case PGRES_PIPELINE_ABORTED: return SQLError(.postgresql("25P02"), "a statement before failed")
        default:
            func field(_ code: Int32) -> String? {
                pq.PQresultErrorField(result, code).map { String(cString: $0) }
            }
            let message = field(libpq_message) ?? "no message"
            guard let state = field(libpq_sqlstate) else { return SQLError(.unreachable, message) }
            // The server ends, has ended, or is one that takes no writes any more.
            let isAway = ["57P01", "57P02", "57P03", "25006"].contains(state) || state.hasPrefix("08")
            return isAway ? SQLError(.unreachable, message) : SQLError(.postgresql(state), message)
        }
    }
}
