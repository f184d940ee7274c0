import Glibc
import TestSupport
import Testing

@testable import SQL

@Suite(
    .enabled(
        if: PostgreSQL.isAvailable && access("/usr/bin/openssl", X_OK) == 0,
        "PostgreSQL or openssl is not installed: scripts/install-packages test"))
struct `A server with TLS` {
    @Test func `A TLS connection requires the expected certificate`() async throws {
        let server = try await PostgreSQL.withTLS()
        let home = try await server.database()
        let database = try home.open(options: "?sslmode=verify-full&sslrootcert=\(server.certificate)")
        try await `Group commit on a server`.expectNoBlock(database)
        let isEncrypted = try await database.read { db in
            try db.first("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") { $0.bool(0) }
        }
        #expect(isEncrypted == true)

        let stranger = try await PostgreSQL.withTLS()
        let error = #expect(throws: SQLError.self) {
            try home.open(options: "?sslmode=verify-full&sslrootcert=\(stranger.certificate)")
        }
        #expect(error?.code == .unreachable && error?.message.contains("certificate verify failed") == true)
        // The client sends nothing to an impostor without TLS.
        let plain = try await SharedPostgreSQL.database()
        let refused = #expect(throws: SQLError.self) { try plain.open(options: "?sslmode=require") }
        #expect(refused?.code == .unreachable && refused?.message.contains("does not support SSL") == true)
    }
}
