import Base
import Glibc
import SQLite
import Testing

/// A folder that is gone with the test, and databases in it.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/sqlite-tests-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { preconditionFailure("mkdtemp: \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in names() { unlink(file(name)) }
        rmdir(path)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// What is in the folder, sorted.
    func names() -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var result: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { result.append(name) }
        }
        return result.sorted()
    }

    func open(
        _ name: String = "test.db", readers: Int = 2, migrations: [Migration] = Migration.things, check: Bool = false,
        log: Log = .none
    ) throws -> Database {
        try Database.open(
            path: file(name), readers: readers, migrations: migrations, check: check, log: log,
            onFatalError: { preconditionFailure("\($0)") })
    }
}

extension Migration {
    /// The schema most tests use.
    static let things = [
        Migration(
            version: 1,
            sql: """
                CREATE TABLE thing (
                    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL DEFAULT 0, body BLOB
                ) STRICT;
                """)
    ]
}

extension Database {
    func names() async throws -> [String] {
        try await read { try $0.all("SELECT name FROM thing ORDER BY id") { $0.text(0) } }
    }

    func add(_ name: String) async throws {
        try await write { try $0.execute("INSERT INTO thing (name) VALUES (?)", name) }
    }
}

/// Keeps the thread it is called on until it is let go, so that a test decides what waits behind it.
final class Gate: Sendable {
    private let entered = Locked(false)
    private let opened = Locked(false)

    /// Stays until `open()`. For the database's threads, which may block.
    func pass() {
        entered.withLock { $0 = true }
        let deadline = Clock.system.monotonic() + 30_000
        while !opened.withLock({ $0 }) {
            precondition(Clock.system.monotonic() < deadline, "nobody opened")
            usleep(200)
        }
    }

    func waitUntilEntered() async throws { try await until { self.entered.withLock { $0 } } }

    func open() { opened.withLock { $0 = true } }
}

/// Waits for `condition`, half a minute at most.
func until(_ condition: @Sendable () -> Bool) async throws {
    let deadline = Clock.system.monotonic() + 30_000
    while !condition() {
        try #require(Clock.system.monotonic() < deadline, "it did not happen")
        try await Task.sleep(for: .milliseconds(1))
    }
}
