import Base
import Glibc

/// A PostgreSQL server on a port of 127.0.0.1, with the superuser `test` without a password. Releasing the last
/// reference kills and removes it.
package final class PostgreSQL: Sendable {
    /// Debian has a folder for each version, of which the newest is used; `POSTGRESQL_BIN` names another folder.
    static let binaries: String = {
        if let named = getenv("POSTGRESQL_BIN") { return String(cString: named) }
        let place = "/usr/lib/postgresql"
        let versions = entries(of: place).compactMap { Int($0.name) }.sorted()
        let newest = versions.last { access("\(place)/\($0)/bin/postgres", X_OK) == 0 }
        return "\(place)/\(newest ?? 0)/bin"
    }()

    package static let isAvailable =
        ["initdb", "postgres", "psql"].allSatisfy { access("\(binaries)/\($0)", X_OK) == 0 }

    static let user = ProgramUser("postgres", "nobody")

    /// A folder in memory, if there is room for many databases: a database has three hundred files, which take a busy
    /// disk a third of a second.
    private static let memory: String? = {
        var room = statvfs()
        guard access("/dev/shm", W_OK) == 0, statvfs("/dev/shm", &room) == 0 else { return nil }
        return UInt64(room.f_bavail) * UInt64(room.f_frsize) >= 4 << 30 ? "/dev/shm" : nil
    }()

    package let port: UInt16
    private let folder: TemporaryFolder
    private let settings: [String]
    private let process: Locked<ChildProcess?>
    private let sweeper: Sweeper

    /// Starts a server without databases, which takes about a second.
    ///
    /// - Parameter settings: More settings, as `name=value`; they override the defaults.
    package convenience init(_ settings: [String] = []) async throws {
        try await self.init(settings) { data in
            [
                "\(Self.binaries)/initdb", "--no-sync", "--no-instructions", "--auth=trust", "--encoding=UTF8",
                "--locale=C", "--username=test", "-D", data,
            ]
        }
    }

    /// Starts a server that also accepts TLS, with the certificate ``certificate`` for 127.0.0.1.
    package static func withTLS() async throws -> PostgreSQL {
        try await PostgreSQL(["ssl=on"]) { data in
            let script = #"""
                "$1" --no-sync --no-instructions --auth=trust --encoding=UTF8 --locale=C --username=test -D "$0" &&
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test \
                    -addext subjectAltName=IP:127.0.0.1 -keyout "$0/server.key" -out "$0/server.crt"
                """#
            return ["/bin/sh", "-c", script, data, "\(Self.binaries)/initdb"]
        }
    }

    /// The file of its self-signed certificate.
    package var certificate: String { folder.file("data/server.crt") }

    /// Starts a server whose data the command creates in a new folder.
    init(_ settings: [String] = [], making: (_ data: String) -> [String]) async throws {
        folder = try Self.user.makeFolder(in: Self.memory)
        self.settings = settings
        sweeper = try await Sweeper(Self.sweeping, folder.path)
        try await ChildProcess.run(Self.user.prefix + making(folder.file("data")))
        for _ in 0..<5 {
            let port = try Socket.listen(port: 0).port
            let process = try await Self.start(port, folder, settings)
            guard !process.hasEnded else { continue }
            (self.port, self.process) = (port, Locked(process))
            return
        }
        throw Failed(log: Self.log(folder))
    }

    /// The server did not start; its log has the reason.
    package struct Failed: Error { package let log: String }

    deinit {
        // The last reference may be released on a thread of Swift's pool.
        startThread { [process, folder, sweeper] in
            Self.kill(process, in: folder)
            sweeper.sweep()
        }
    }

    // MARK: Lifetime

    /// Ends all its processes like a power failure; committed data stays.
    package func kill() { Self.kill(process, in: folder) }

    /// Ends the server in order, after its sessions (`fast`), or at once, without a checkpoint (`immediate`).
    package func stop(_ manner: Shutdown = .fast) async throws {
        guard let process = Self.take(process) else { return }
        process.signal(manner == .fast ? SIGINT : SIGQUIT)
        try await eventually("PostgreSQL stops") { process.hasEnded }
    }

    package enum Shutdown: Sendable { case fast, immediate }

    /// Restarts the killed or stopped server on the same port, and waits until it answers.
    package func start() async throws {
        let next = try await Self.start(port, folder, settings)
        guard !next.hasEnded else { throw Failed(log: Self.log(folder)) }
        process.withLock { $0 = next }
    }

    /// The server's log.
    package var log: String { Self.log(folder) }

    private static func log(_ folder: TemporaryFolder) -> String {
        String(decoding: readFile(folder.file("log")) ?? [], as: UTF8.self)
    }

    /// Returns when the server answers or has ended.
    private static func start(
        _ port: UInt16, _ folder: TemporaryFolder, _ settings: [String]
    ) async throws -> ChildProcess {
        let own = [
            "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=", "fsync=off",
            "synchronous_commit=on", "full_page_writes=off", "max_connections=300", "shared_buffers=16MB", "jit=off",
            "max_wal_size=128MB",
            // In its folder rather than in /dev/shm, where the files would stay after a kill.
            "dynamic_shared_memory_type=mmap",
        ]
        let process = try await ChildProcess(
            user.prefix + [
                "/bin/sh", "-c", #"exec "$0" "$@" >>"$LOG" 2>&1"#, "\(binaries)/postgres", "-D", folder.file("data"),
            ] + (own + settings).flatMap { ["-c", $0] },
            environment: ["LOG=\(folder.file("log"))", "TZ=UTC"])
        try await eventually("PostgreSQL responds or ends") {
            process.hasEnded || answers(process.pid, folder)
        }
        return process
    }

    /// The method of `pg_ctl`: the first line is the server's process, the eighth its state.
    private static func answers(_ pid: pid_t, _ folder: TemporaryFolder) -> Bool {
        let lines = String(decoding: readFile(folder.file("data/postmaster.pid")) ?? [], as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count > 7 && lines[0] == "\(pid)" && ["ready", "standby"].contains { lines[7].hasPrefix($0) }
    }

    private static func take(_ process: Locked<ChildProcess?>) -> ChildProcess? {
        process.withLock { process -> ChildProcess? in
            defer { process = nil }
            return process
        }
    }

    private static func kill(_ process: Locked<ChildProcess?>, in folder: TemporaryFolder) {
        guard let process = take(process) else { return }
        // Stopped first, so that it starts no more processes and does not end the others in order.
        process.signal(SIGSTOP)
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            let left = processes(in: folder.file("data"))
            guard !left.isEmpty else { return }
            for pid in left { Glibc.kill(pid, SIGKILL) }
            usleep(1000)
        }
    }

    /// The processes whose working folder is this one. They are not one process group, because each leads a session of
    /// its own.
    private static func processes(in folder: String) -> [pid_t] {
        var own = stat()
        guard stat(folder, &own) == 0 else { return [] }
        return entries(of: "/proc").compactMap { entry in
            guard let pid = pid_t(entry.name) else { return nil }
            // A process that has ended has no folder.
            var status = stat()
            guard stat("/proc/\(pid)/cwd", &status) == 0 else { return nil }
            return status.st_ino == own.st_ino && status.st_dev == own.st_dev ? pid : nil
        }
    }

    /// The seventh line of the file names shared memory, which outlives killed processes. They may still write for a
    /// moment when they end with the tests.
    private static let sweeping = #"""
        memory=$(sed -n '7s/.* //p' "$0/data/postmaster.pid" 2>/dev/null)
        [ -z "$memory" ] || ipcrm -m "$memory" 2>/dev/null
        for turn in 1 2 3 4 5 6 7 8 9 10; do
            rm -rf "$0" 2>/dev/null && break
            sleep 0.1
        done
        """#

    // MARK: Databases

    /// Creates a database.
    ///
    /// - Parameter template: A database without sessions to copy; `nil` for an empty database.
    package func database(template: String? = nil) async throws -> PostgreSQLDatabase {
        let name = "test_\(RandomBytes.make(6).hexadecimal)"
        // Copied as files, which takes half of the time of a copy through the log.
        let source = "TEMPLATE \(template ?? "template0") STRATEGY file_copy"
        _ = try await query("CREATE DATABASE \(name) \(source)", in: "postgres")
        return PostgreSQLDatabase(self, name)
    }

    /// Copies a database that is in use.
    func copy(of database: String) async throws -> PostgreSQLDatabase {
        let copy = try await self.database()
        let folder = TemporaryFolder()
        try await ChildProcess.run([
            "\(Self.binaries)/pg_dump", "-f", folder.file("dump"), "-d", connection(database),
        ])
        try await ChildProcess.run([
            "\(Self.binaries)/psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", folder.file("dump"), "-d",
            copy.connection,
        ])
        return copy
    }

    /// Drops a database with its open sessions. It creates no folder, which would stay if the tests end first.
    func drop(_ database: String) async throws {
        try await ChildProcess.run([
            "\(Self.binaries)/psql", "-X", "-q", "-o", "/dev/null", "-d", connection("postgres"), "-c",
            "DROP DATABASE IF EXISTS \(database) WITH (FORCE)",
        ])
    }

    func connection(_ database: String, port: UInt16? = nil) -> String {
        "postgresql://test@127.0.0.1:\(port ?? self.port)/\(database)"
    }

    /// The output of `psql` as rows of fields. Text contains neither of the separators.
    func query(_ sql: String, in database: String, port: UInt16? = nil) async throws -> [[String]] {
        // A pipe is too small for some results.
        let folder = TemporaryFolder()
        let output = folder.file("output")
        try await ChildProcess.run([
            "\(Self.binaries)/psql", "-X", "-q", "-A", "-t", "-0", "-F", "\u{1F}", "-o", output, "-d",
            connection(database, port: port), "-c", sql,
        ])
        let rows = (readFile(output) ?? []).split(separator: 0, omittingEmptySubsequences: false).dropLast()
        return rows.map { row in
            row.split(separator: 0x1F, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
