import Base
import Glibc
import SQL
import TestSupport
import Testing

/// Replaces the file of a database's write-ahead log below its descriptors.
@Suite struct `Broken log` {
    private func replaceLog(of database: String, with path: String, _ flags: Int32) throws {
        let replacement = open(path, flags | O_CLOEXEC)
        try #require(replacement >= 0)
        defer { close(replacement) }
        var replaced = 0
        for descriptor in 3..<getdtablesize() where descriptor != replacement {
            var target = [UInt8](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
            guard count > 0, String(decoding: target[..<count], as: UTF8.self) == database + "-wal" else { continue }
            dup2(replacement, descriptor)
            replaced += 1
        }
        try #require(replaced > 0)
    }

    @Test func `A commit that fails with an I/O error ends the process without a response`() async throws {
        let folder = TemporaryFolder()
        let fatal = Locked<SQLError?>(nil)
        let answered = Locked(false)
        let database = try Database.open(
            path: folder.file("test.db"), migrations: Migration.things, log: .none,
            onFatalError: { error in
                fatal.withLock { $0 = error }
                pthread_exit(nil)
            })
        try await database.add("a")
        try replaceLog(of: folder.file("test.db"), with: folder.file("test.db-wal"), O_RDONLY)
        Task {
            _ = try? await database.add("b")
            answered.withLock { $0 = true }
        }
        try await eventually { fatal.withLock { $0 } != nil }
        #expect(fatal.withLock { $0 }?.primary == 10)
        #expect(!answered.withLock { $0 })
        database.close()
    }

    @Test func `A commit on a full disk fails, and the process continues`() async throws {
        let folder = TemporaryFolder()
        let database = try folder.open(readers: 1)
        try await database.add("a")
        try replaceLog(of: folder.file("test.db"), with: "/dev/full", O_RDWR)
        let error = await #expect(throws: SQLError.self) { try await database.add("b") }
        #expect(error?.isFull == true)
    }
}
