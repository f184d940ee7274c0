extension PostgreSQL {
    /// A standby of this server on a port of its own. From now on a commit is confirmed only when the standby has it.
    package func standby() async throws -> PostgreSQL {
        let connection = connection("postgres")
        let standby = try await PostgreSQL { data in
            [
                "\(Self.binaries)/pg_basebackup", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", connection,
                "-D", data,
            ]
        }
        // After the copy, so that the standby itself waits for none once it is promoted.
        _ = try await query("ALTER SYSTEM SET synchronous_standby_names = '*'", in: "postgres")
        _ = try await query("SELECT pg_reload_conf()", in: "postgres")
        try await eventually("the standby is waited for") {
            try await query("SELECT sync_state FROM pg_stat_replication", in: "postgres") == [["sync"]]
        }
        return standby
    }

    /// Promotes a standby: it then follows no server, and accepts writes.
    package func promote() async throws {
        let isPromoted = try await query("SELECT pg_promote()", in: "postgres")
        guard isPromoted == [["t"]] else { throw Failed(log: log) }
    }
}
