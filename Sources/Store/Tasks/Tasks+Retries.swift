package import Core
import SQL

/// The outcome of retrying one of several tasks.
package enum RetryResult: Sendable {
    case created(CreatedTask)
    /// The task already has a retry.
    case skipped
    case refused(DomainError)
}

extension Store.Tasks {
    /// Completed tasks of a session that match and have no retry yet, among `limit` matching tasks after a number.
    ///
    /// - Returns: Also the numbers of the matching tasks, and the last number visited, `nil` at the end.
    package func retriable(
        _ filter: TaskFilter, in session: SessionID, after number: Int64, limit: Int
    ) async throws -> (matched: [Int64], tasks: [TaskRecord], last: Int64?) {
        try await database.read { db in
            let found = try Self.taskIDs(session, filter, after: number, limit: limit, db)
            let tasks = try found.compactMap { id, _ in try self.isRetried(id, db) ? nil : self.read(id, db) }
            return (found.map(\.1), tasks, found.count < limit ? nil : found.last?.1)
        }
    }

    /// Creates the retries that can be created, in one commit. A task that has a retry gets no second one.
    ///
    /// - Parameters:
    ///   - tasks: New tasks, each with `retryOf`.
    ///   - revision: The session's revision that the caller expects, or `nil`.
    /// - Returns: The outcome for each task.
    /// - Throws: ``DomainError/sessionInvalidated``, ``DomainError/revisionMismatch``.
    package func retry(
        _ tasks: [NewTask], in id: SessionID, limit: Int64, storedLimit: Int64, ifRevision revision: Int64? = nil,
        at now: Timestamp
    ) async throws -> ([RetryResult], Aftermath) {
        try await transact(at: now) { transaction in
            let session = try transaction.session(id, ifRevision: revision)
            guard session.state == .active, !session.isForgotten else { throw DomainError.sessionInvalidated }
            let (before, stored) = try self.usage(of: session.app, transaction.db)
            var unfinished = before
            var batch = try self.batch(of: tasks, in: id, transaction.db)
            var results: [RetryResult] = []
            for (index, task) in tasks.enumerated() {
                let original = try task.specification.retryOf.flatMap { try Self.taskID($0, id, transaction.db) }
                if let original, try self.isRetried(original, transaction.db) {
                    results.append(.skipped)
                } else if unfinished >= limit {
                    results.append(.refused(.tooManyTasks(limit: limit, index: index)))
                } else if stored + (task.specification.bringsContent ? 1 : 0) > storedLimit {
                    results.append(.refused(.storedBytesExceeded(index: index)))
                } else {
                    do {
                        let item = try self.create(task, index: index, in: session, &batch, transaction)
                        try batch.flush(transaction.db)
                        results.append(.created(try self.withoutForbidden([item], in: session, transaction)[0]))
                        unfinished += 1
                    } catch let error as DomainError {
                        guard case .bodyNotFound = error else { throw error }
                        results.append(.refused(error))
                    }
                }
            }
            return results
        }
    }

    private func isRetried(_ task: TaskID, _ db: Connection) throws -> Bool {
        try db.first("SELECT retried FROM task WHERE id = ?1", task.rawValue) { $0.bool(0) } ?? false
    }
}
