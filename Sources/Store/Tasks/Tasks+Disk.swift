package import Core
import SQL

/// Tasks that wait until the disk has space for the rest of their content.
extension Store.Tasks {
    /// A task that waits for longer than this was stored before the clock was set back, and is ready.
    private static let longestDiskPause = Duration.seconds(600)

    /// The tasks with the smallest need, and those with the largest need among tasks with a partial file, up to `limit`
    /// of each. A partial file at another node does not count: the task needs space for its whole content here.
    package func waitingForDisk(at now: Timestamp, limit: Int) async throws -> [DiskPlan.Waiting] {
        try await database.read { [node, documents] db in
            func read(_ row: Row) throws -> DiskPlan.Waiting {
                let progress = try row.blobOrNil("progress_document").map {
                    try documents.decode(TaskProgress.self, $0)
                }
                let (kept, needed) = (row.integer("disk_kept"), row.integer("disk_needed"))
                let isElsewhere = progress?.node.map { $0 != node } ?? false
                return DiskPlan.Waiting(
                    task: TaskID(row.integer("task")), kept: isElsewhere ? 0 : kept,
                    needed: isElsewhere ? needed + kept : needed, isReady: row.bool("ready"))
            }
            let least = try db.all(
                """
                SELECT task, disk_kept, disk_needed, disk_not_before <= ?1 OR disk_not_before > ?3 AS ready, progress_document FROM live \
                WHERE stage = 'waitingForDisk' \
                AND EXISTS (SELECT 1 FROM session WHERE id = live.session AND forgotten = 0) \
                ORDER BY disk_needed LIMIT ?2
                """, now.milliseconds, limit, (now + Self.longestDiskPause).milliseconds, read: read)
            let most = try db.all(
                """
                SELECT task, disk_kept, disk_needed, disk_not_before <= ?1 OR disk_not_before > ?3 AS ready, progress_document FROM live \
                WHERE stage = 'waitingForDisk' \
                AND disk_kept > 0 AND EXISTS (SELECT 1 FROM session WHERE id = live.session AND forgotten = 0) \
                ORDER BY disk_needed DESC LIMIT ?2
                """, now.milliseconds, limit, (now + Self.longestDiskPause).milliseconds, read: read)
            return Array(Set(least + most))
        }
    }

    /// Whether any task is queued.
    package func hasQueued() async throws -> Bool {
        try await database.read { db in try db.exists("SELECT 1 FROM lane WHERE queued > 0 LIMIT 1") }
    }

    /// Queues tasks that waited for disk space.
    package func endWaitForDisk(of tasks: [TaskID], at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            try transaction.forEachLive(tasks) { live in
                if live.life.phase == .waitingForDisk { try self.move(live, .due, transaction) }
            }
        }.1
    }

    /// Records that a waiting task's partial file is gone. The task restarts when there is space for its whole content,
    /// or fails if this happened too often.
    package func noteEmptied(_ id: TaskID, at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            guard let live = try transaction.live(id) else { return }
            var progress = try self.progress(of: live)
            progress.loseContent()
            guard live.life.phase == .waitingForDisk else {
                try self.save(progress, of: id, transaction.db)
                return
            }
            if progress.hasLostTooOften {
                return try self.end(live, .failed, .fullDisk(.lostTooOften), progress: progress, transaction)
            }
            try self.move(live, .emptied, progress: progress, transaction)
        }.1
    }
}

extension Settlement {
    /// Whether the task waits for disk space.
    package var waitsForDisk: Bool { if case .waitsForDisk = verdict { true } else { false } }
}
