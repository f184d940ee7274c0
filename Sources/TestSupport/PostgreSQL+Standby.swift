extension PostgreSQL {
    /// A copy on a port of its own that follows this one. From here on no commit is confirmed that the copy does not
    /// have.
    package func standby() async throws -> PostgreSQL {
        let connection = connection("postgres")
        let standby = try await PostgreSQL { data in
            [
                "\(Self.binaries)/pg_basebackup", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", connection,
                "-D", data,
            ]
        }
        // After the copy was made, so that the copy waits for no standby once it is promoted.
        _ = try await query("ALTER SYSTEM SET synchronous_standby_names = '*'", in: "postgres")
        _ = try await query("SELECT pg_reload_conf()", in: "postgres")
        try await eventually("the standby is waited for") {
            try await query("SELECT sync_state FROM pg_stat_replication", in: "postgres") == [["sync"]]
        }
        return standby
    }

    /// Promotes a standby: it follows no server any more, and accepts writes.
    package func promote() async throws {
        let isPromoted = try await query("SELECT pg_promote()", in: "postgres")
        guard isPromoted == [["t"]] else { throw Failed(log: log) }
    }
}
