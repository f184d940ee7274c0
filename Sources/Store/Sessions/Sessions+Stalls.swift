package import Core
import SQL

extension Store.Sessions {
    /// The time of the next stall check; `nil` if no session is watched.
    package func nextStallCheck() async throws -> Timestamp? {
        try await database.read { db in
            try db.first("SELECT min(stall_check_at) FROM session WHERE stall_check_at IS NOT NULL") {
                $0.integerOrNil(0)
            }?.map(Timestamp.init(milliseconds:))
        }
    }

    /// Records the progress of sessions, then judges those whose check is due, up to `limit`: a stall is recorded with
    /// its event, and with a launch if no client is attached.
    ///
    /// Costs at most ``tasksSampled`` rows for each judged session, however many tasks it has.
    ///
    /// - Parameters:
    ///   - moving: Sessions whose transfers move bytes that no commit has recorded.
    ///   - watchedSince: The start of this node.
    package func judgeStalls(
        moving: Set<SessionID>, watchedSince: Timestamp, at now: Timestamp, limit: Int
    ) async throws -> Aftermath {
        try await transact(at: now) { [documents] transaction in
            for id in moving {
                guard let session = try transaction.sessionIfPresent(id), !session.isForgotten else { continue }
                session.stall.progressed(at: now)
                session.isChanged = true
            }
            let due = try transaction.db.all(
                "SELECT id FROM session WHERE stall_check_at <= ?1 ORDER BY stall_check_at LIMIT ?2", now.milliseconds,
                limit
            ) { SessionID($0.integer(0)) }
            for id in due {
                let session = try transaction.session(id)
                session.isChanged = true
                guard !session.isForgotten else {
                    session.stall.checkAt = nil
                    continue
                }
                let sample = try self.sample(session, transaction.db)
                let verdict = session.stall.judge(
                    watchedSince: watchedSince, areWaiting: sample.areWaiting, at: now)
                guard case .stalled(let since) = verdict else { continue }
                var stall = SessionStall()
                stall.taskCount = session.counts.running
                stall.since = since
                for error in sample.errors { stall.add(error) }
                session.book.lastStallSeq = try transaction.append(
                    .didStall, to: session, data: documents.encode(stall))
            }
        }.1
    }

    /// The maximum number of tasks read to judge a session.
    private static let tasksSampled = 200

    /// Whether running tasks wait for progress, and the errors of their last attempts. The queued tasks of a
    /// discretionary session wait for conditions, which is no stall.
    private func sample(_ session: SessionEntry, _ db: Connection) throws -> (areWaiting: Bool, errors: [TaskError]) {
        var areWaiting = try db.exists(
            "SELECT 1 FROM live WHERE session = ?1 AND stage = 'active' LIMIT 1", session.id.rawValue)
        if !areWaiting, !session.isDiscretionary {
            areWaiting = try db.exists(
                "SELECT 1 FROM lane WHERE session = ?1 AND queued > 0 LIMIT 1", session.id.rawValue)
        }
        let tasks = try db.all(
            "SELECT stage, progress_document FROM live WHERE session = ?1 ORDER BY number LIMIT ?2",
            session.id.rawValue, Self.tasksSampled
        ) { row in
            (
                phase: try row.value("stage") as TaskLife.Phase,
                progress: try row.blobOrNil("progress_document").map { try documents.decode(TaskProgress.self, $0) }
            )
        }
        areWaiting =
            areWaiting
            || tasks.contains { $0.phase.waitsForProgress && !($0.phase == .queued && session.isDiscretionary) }
        let errors = tasks.compactMap { $0.phase.waitsForProgress ? $0.progress?.lastAttempt?.fault : nil }
        return (areWaiting, errors)
    }
}

extension AttemptRecord {
    /// The error of the attempt, which may stand for a status.
    fileprivate var fault: TaskError? {
        error ?? statusCode.map { TaskError(.badServerResponse, "The server answered with status \($0).") }
    }
}
