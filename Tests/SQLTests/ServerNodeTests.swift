import Base
import Glibc
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `Nodes of a server` {
    private let home: PostgreSQLDatabase

    init() async throws { home = try await SharedPostgreSQL.database() }

    /// A node whose place another process takes, and the reason of its end.
    private func openDoomed() throws -> (database: Database, fatal: Locked<SQLError?>) {
        let fatal = Locked<SQLError?>(nil)
        let database = try home.open(
            onFatalError: { error in
                fatal.withLock { $0 = error }
                pthread_exit(nil)
            })
        return (database, fatal)
    }

    private func expectEnd(of database: Database, _ fatal: Locked<SQLError?>) async throws {
        let answered = Locked(false)
        Task {
            _ = try? await database.add("lost")
            answered.withLock { $0 = true }
        }
        try await eventually("it ends") { fatal.withLock { $0 } != nil }
        #expect(fatal.withLock { $0 }?.code == .superseded)
        #expect(!answered.withLock { $0 })
        database.close()
    }

    @Test func `A node that loses its place to a process of its name stores nothing more and ends`() async throws {
        let (first, fatal) = try openDoomed()
        try await first.add("a")
        let second = try home.open()
        try await second.add("b")
        try await expectEnd(of: first, fatal)
        try await second.add("c")
        #expect(try await second.names() == ["a", "b", "c"])
    }

    @Test func `A node that lost its place ends even without a write`() async throws {
        let fatal = Locked<SQLError?>(nil)
        let first = try home.open(
            limits: .init(heartbeat: 50),
            onFatalError: { error in
                fatal.withLock { $0 = error }
                pthread_exit(nil)
            })
        let second = try home.open()
        try await eventually("it ends") { fatal.withLock { $0 }?.code == .superseded }
        first.close()
        try await second.add("a")
    }

    @Test(arguments: [true, false])
    func `A node renews its lease, whether it is idle or only reads`(_ isIdle: Bool) async throws {
        let database = try home.open(limits: .init(heartbeat: 300))
        try await home.query("UPDATE holder SET signed_at = '2000-01-01'")
        let isOver = Locked(false)
        async let writes: Void = {
            // Shorter pauses than a heartbeat's.
            while !isIdle, !isOver.withLock({ $0 }) {
                try await database.write { _ in }
                try await Task.sleep(for: .milliseconds(10))
            }
        }()
        defer { isOver.withLock { $0 = true } }
        try await eventually("it says so") {
            try await home.query("SELECT 1 FROM holder WHERE signed_at > '2000-01-01'").count == 1
        }
        isOver.withLock { $0 = true }
        try await writes
    }
}
