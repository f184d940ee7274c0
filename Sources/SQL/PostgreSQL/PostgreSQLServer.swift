import CPostgreSQL

/// A PostgreSQL server and its connection settings.
package struct PostgreSQLServer: Sendable {
    /// A connection string of libpq: `postgresql://user@host1,host2/name?option=value`.
    package var connection: String
    /// Whether statements are prepared once and kept. A pooler with transaction pooling may not support that.
    package var keepsStatements: Bool

    package init(_ connection: String, keepsStatements: Bool = true) {
        self.connection = connection
        self.keepsStatements = keepsStatements
    }

    /// The error in the connection string, without its password; `nil` if the string is valid.
    ///
    /// - Throws: ``SQLError/Code/unreachable`` if libpq is not installed.
    package var fault: String? {
        get throws(SQLError) { try LibPQ.fault(in: connection)?.replacing(connection, with: publicText) }
    }

    /// The connection string without its password and options.
    package var publicText: String {
        let start = connection.firstRange(of: "://")?.upperBound ?? connection.startIndex
        // A password may contain a question mark.
        let authority = connection[start...].prefix { $0 != "/" }
        let at = authority.lastIndex(of: "@") ?? start
        let user = connection[start..<at].prefix { $0 != ":" && $0 != "?" }
        return String(connection[..<start] + user + connection[at...].prefix { $0 != "?" })
    }

    /// Defaults for options missing in the connection string: no connection attempt outlasts a failover, and a vanished
    /// server is noticed.
    static let defaults = [
        ("application_name", "urlsessiond"), ("client_encoding", "UTF8"), ("connect_timeout", "5"),
        ("target_session_attrs", "read-write"), ("keepalives_idle", "5"), ("keepalives_interval", "5"),
        ("keepalives_count", "3"), ("tcp_user_timeout", "15000"),
    ]
}

extension PostgreSQLServer {
    /// A new connection, owned by the caller.
    func connect() throws(SQLError) -> OpaquePointer {
        let pq = try LibPQ.functions().pointee
        let parameters = Self.defaults + [("dbname", connection)]
        let handle = withCStrings(parameters.map(\.0)) { names in
            withCStrings(parameters.map(\.1)) { pq.PQconnectdbParams(names, $0, 1) }
        }
        guard let handle else { throw SQLError(.unreachable, "no memory for a connection") }
        // By default, libpq prints the server's notices.
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

    /// The error that made a connection unusable.
    static func lost(_ handle: OpaquePointer, _ pq: libpq) -> SQLError {
        let message = pq.PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        return SQLError(.unreachable, message.split(whereSeparator: \.isWhitespace).joined(separator: " "))
    }

    /// The error of a statement; `nil` if it succeeded.
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
            // The server is shutting down, has shut down, or has become read-only.
            let isAway = ["57P01", "57P02", "57P03", "25006"].contains(state) || state.hasPrefix("08")
            return isAway ? SQLError(.unreachable, message) : SQLError(.postgresql(state), message)
        }
    }
}
