import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Cancellations of all tasks of a session or an app that were interrupted.
@Suite(.enabled(if: !TestStore.isOnServer)) struct CancellationTests {
    /// Calls `cancel`, which fails because a task of the session cannot end.
    private func fail(_ stage: ServiceStage, in session: SessionRecord, _ cancel: () async throws -> Void) async throws
    {
        try await stage.service.store.database.write { db in
            try db.execute(
                """
                CREATE TRIGGER held BEFORE DELETE ON live WHEN old.number = 2 BEGIN SELECT raise(ABORT, 'held'); END
                """)
        }
        await #expect(throws: (any Error).self) { try await cancel() }
        let first = try await stage.service.task(1, in: session.id)
        #expect(first.state != .completed, "one commit cancels both")
    }

    private func mend(_ stage: ServiceStage) async throws {
        try await stage.service.store.database.write { try $0.execute("DROP TRIGGER held") }
    }

    private func twoTasks(_ stage: ServiceStage) async throws -> SessionRecord {
        let session = try await stage.session()
        for path in ["/a", "/b"] { try await stage.create(stage.order(path, suspended: true), in: session) }
        return session
    }

    private func reasons(_ stage: ServiceStage, in session: SessionRecord) async throws -> [Int?] {
        try await stage.service.tasks(in: session.id, TaskFilter(), after: 0, limit: 10).map { task in
            guard let error = task.result?.error, error.code == .cancelled else { return -1 }
            return error.backgroundTaskCancelledReason
        }
    }

    @Test func `A forced quit that failed is completed, and spares newer tasks`() async throws {
        try await ServiceStage.run { stage in
            let session = try await twoTasks(stage)
            try await fail(stage, in: session) { _ = try await stage.service.forceQuit(stage.app) }
            _ = try await stage.service.activate(stage.app)
            try await stage.create(stage.order("/c", suspended: true), in: session)
            try await mend(stage)
            try await eventually("the older tasks are cancelled", within: .seconds(30)) {
                try await reasons(stage, in: session) == [0, 0, -1]
            }
            try await eventually("nothing is left to cancel") {
                try await stage.service.store.tasks.cancellations().isEmpty
            }
        }
    }

    @Test func `The next start completes the cancellation of an invalidated session`() async throws {
        let folder = TemporaryFolder()
        let origin = try OriginServer()
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            let session = try await twoTasks(stage)
            try await fail(stage, in: session) { _ = try await stage.service.invalidateAndCancel(session.id) }
        }
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await mend(stage)
            let session = try await stage.service.session("s", app: stage.app)
            try await eventually("the tasks are cancelled", within: .seconds(30)) {
                try await reasons(stage, in: session) == [nil, nil]
            }
            #expect(try await stage.service.session("s", app: stage.app).state.phase == .invalid)
        }
    }
}
