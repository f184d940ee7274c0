import Glibc

/// The machine's PgBouncer before a server, on a free loopback port. It gives each transaction another connection.
package final class PgBouncer: Sendable {
    private static let binary = "/usr/sbin/pgbouncer"

    package static let isAvailable = access(binary, X_OK) == 0

    package let port: UInt16
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(to server: PostgreSQL) async throws {
        // PgBouncer refuses to run as root.
        let folder = try PostgreSQL.user.makeFolder()
        self.folder = folder
        let (ports, process) = try await startOnFreePorts(1) { ports in
            unlink(folder.file("log"))
            let text = Self.configuration(folder, port: ports[0], target: server.port)
            let file = folder.write(Array(text.utf8), to: "pgbouncer.ini")
            chmod(file, 0o644)
            return PostgreSQL.user.prefix + [Self.binary, "-q", file]
        } isReady: {
            String(decoding: readFile(folder.file("log")) ?? [], as: UTF8.self).contains("process up")
        }
        (port, self.process) = (ports[0], process)
    }

    private static func configuration(_ folder: TemporaryFolder, port: UInt16, target: UInt16) -> String {
        """
        [databases]
        * = host=127.0.0.1 port=\(target) user=test
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = \(port)
        unix_socket_dir =
        auth_type = any
        pool_mode = transaction
        default_pool_size = 3
        max_client_conn = 200
        logfile = \(folder.file("log"))
        pidfile = \(folder.file("pid"))

        """
    }
}
