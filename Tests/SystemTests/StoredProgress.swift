import Base
import Core
import Store
import TestSupport
import Testing

extension Scene {
    /// The progress of a task (by default the first) in a database (by default the service's). The service must not
    /// run.
    func storedProgress(ofTask row: Int64 = 1, in database: String? = nil) async throws -> TaskProgress? {
        guard TestStore.isOnServer else {
            return try await storedProgress(row, .file(database ?? service.data.file("data/urlsessiond.db")))
        }
        let (location, copy) = try await TestStore.copy(of: service.data)
        defer { withExtendedLifetime(copy) {} }
        return try await storedProgress(row, location)
    }

    private func storedProgress(_ row: Int64, _ location: Store.Location) async throws -> TaskProgress? {
        let task = try await storedTask(row, location)
        return task.result?.progress ?? task.progress
    }

    /// The first task in the service's SQLite file. The service must not run.
    var storedTask: TaskRecord {
        get async throws { try await storedTask(1, .file(service.data.file("data/urlsessiond.db"))) }
    }

    private func storedTask(_ row: Int64, _ location: Store.Location) async throws -> TaskRecord {
        let folder = service.data.file("data")
        let text = String(decoding: readFile("\(folder)/master.key") ?? [], as: UTF8.self)
        let key = try #require([UInt8](base64: String(text.prefix { $0 != "\n" })))
        let store = try Store(
            location, sealer: Sealer(masterKey: key),
            policies: Store.Policies(
                contentRetention: .seconds(1), unacknowledgedRetention: .seconds(1),
                presence: { _ in Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0)) }),
            log: .none, onFatalError: { preconditionFailure("\($0)") })
        defer { store.close() }
        return try await store.tasks.read(TaskID(row))
    }

    /// Waits until a backup of the running service has so many synced bytes of a task, by default the first.
    func waitUntilRecorded(_ count: Int, ofTask row: Int64 = 1) async throws {
        try await eventually("\(count) bytes are recorded") {
            let folder = TemporaryFolder()
            let copy = folder.file("copy.db")
            if TestStore.isOnServer { return try await hasRecorded(count, row, in: copy) }
            let backup = try await ServiceProcess.run(
                ["backup", copy, "--data-dir", service.data.file("data")])
            try #require(backup.status == .exited(0), "\(backup.errors)")
            return try await hasRecorded(count, row, in: copy)
        }
    }

    private func hasRecorded(_ count: Int, _ row: Int64, in database: String) async throws -> Bool {
        try await storedProgress(ofTask: row, in: database)?.kept.point.map { $0.offset >= Int64(count) } ?? false
    }
}
