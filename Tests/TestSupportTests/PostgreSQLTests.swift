import Base
import Glibc
import TestSupport
import Testing

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct PostgreSQLTests {
    @Test func `A query returns its rows, whatever they contain`() async throws {
        let database = try await SharedPostgreSQL.database()
        #expect(try await database.query("SELECT 1").first == ["1"])
        try await database.query("CREATE TABLE t (a text, b text); INSERT INTO t VALUES (E'|\\n', NULL), ('', 'é')")
        #expect(try await database.query("SELECT a, b FROM t ORDER BY a DESC") == [["|\n", ""], ["", "é"]])
        #expect(try await database.query("SELECT 1 FROM t WHERE false").isEmpty)
        let long = try await database.query("SELECT repeat('x', 1000000)")
        #expect(long.first?.first?.utf8.count == 1_000_000)
        let failure = await #expect(throws: ChildProcess.Failed.self) { try await database.query("SELECT nothing") }
        #expect(failure?.errors.contains(#"column "nothing" does not exist"#) == true)
    }

    @Test func `A database is empty or a copy, and is dropped with its last reference`() async throws {
        let server = try await PostgreSQL(["work_mem=5MB"])
        var first: PostgreSQLDatabase? = try await server.database()
        let name = try #require(first?.name)
        try await first?.query("CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
        let copy = try await server.database(template: name)
        #expect(try await copy.query("SELECT a FROM t") == [["7"]])
        let other = try await server.database()
        #expect(
            try await other.query("SELECT to_regclass('t') IS NULL, current_setting('work_mem')") == [["t", "5MB"]])
        first = nil
        try await eventually("the database is dropped") {
            try await other.query("SELECT 1 FROM pg_database WHERE datname = '\(name)'").isEmpty
        }
    }

    @Test func `Commits survive each kind of end`() async throws {
        let server = try await PostgreSQL()
        let database = try await server.database()
        try await database.query("CREATE TABLE t (a int)")
        for end in 0..<3 {
            try await database.query("INSERT INTO t VALUES (\(end))")
            switch end {
            case 0: server.kill()
            case 1: try await server.stop(.immediate)
            default: try await server.stop()
            }
            await #expect(throws: ChildProcess.Failed.self) { try await database.query("SELECT 1") }
            try await server.start()
            #expect(try await database.query("SELECT max(a) FROM t") == [["\(end)"]])
        }
    }

    @Test func `A kill ends busy sessions`() async throws {
        let server = try await PostgreSQL()
        let (database, observer) = (try await server.database(), try await server.database())
        let busy = Task { try await database.query("SELECT pg_sleep(600)") }
        try await eventually("it sleeps") {
            try await observer.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").count == 1
        }
        server.kill()
        await #expect(throws: ChildProcess.Failed.self) { try await busy.value }
    }

    @Test func `A server leaves no files`() async throws {
        var server: PostgreSQL? = try await PostgreSQL()
        let folder = try await server?.database().query("SHOW data_directory").first?.first
        let path = try #require(folder)
        #expect(access(path, F_OK) == 0)
        server = nil
        try await eventually("its folder is removed") { access(path, F_OK) != 0 }
    }
}
