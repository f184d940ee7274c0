package import Core
import SQL

extension Store {
    /// What a start found under way.
    package struct Recovered: Hashable, Sendable {
        /// Put back into the queue, no attempt charged.
        package var interrupted = 0
        /// Among those, and failed.
        package var suspects = 0
        package var failed = 0
        /// Partial files that nothing can be made of, to be removed before any transfer.
        package var useless: [String] = []
    }

    /// Takes back what was under way here when the service ended. No attempt is charged.
    ///
    /// Called once at start, before the scheduler runs; costs one row for each transfer that was under way. Where the
    /// service crashed that counts against them, in the same commit that ends their being under way: a start that dies
    /// before it has removed the mark finds nothing that it could count once more.
    ///
    /// - Parameters:
    ///   - afterCrash: Whether the service left the mark of a fault.
    ///   - unrecorded: How many bytes are in a task's partial file beyond what its progress tells of, which come once
    ///     more; nil where there is no file.
    package func recoverInterruptedTasks(
        at now: Timestamp, afterCrash: Bool = false,
        unrecorded: @escaping @Sendable (TaskID, TaskProgress) -> Int64? = { _, _ in nil }
    ) async throws -> (recovered: Recovered, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            let active = try transaction.db.all(
                "SELECT task FROM live WHERE stage = 'active' AND (node IS NULL OR node = ?1) ORDER BY session, task",
                self.node
            ) { TaskID($0.integer("task")) }
            try transaction.preread(active)
            var recovered = Recovered()
            for id in active {
                guard let live = try transaction.live(id) else { continue }
                var progress = try self.progress(of: live)
                if let count = unrecorded(id, progress) {
                    if live.kind == .download { progress.noteFetchedTwice(count) }
                    if progress.resume == nil { recovered.useless.append(Self.partialFile(id)) }
                }
                let crashes = live.crashes + (afterCrash ? 1 : 0)
                switch Quarantine.verdict(after: crashes) {
                case .goOn:
                    try self.move(live, .interrupted, progress: progress, crashes: crashes, letsGo: true, transaction)
                    recovered.interrupted += 1
                case .runAlone:
                    try self.move(
                        live, .retry(at: now + Quarantine.delay, waitsForConnectivity: false), progress: progress,
                        crashes: crashes, letsGo: true, transaction)
                    recovered.interrupted += 1
                    recovered.suspects += 1
                case .fail:
                    var result = TaskResult(progress: progress)
                    result.error = Quarantine.error
                    try self.complete(live, .failed, result, content: nil, leavesPartialFile: true, transaction)
                    recovered.failed += 1
                }
            }
            // The cause is found: the others were only beside it.
            if recovered.failed > 0 { try self.clearSuspects(transaction) }
            return recovered
        }
    }

    /// Takes back what else bears this node's name, or that of one that is gone: tasks, up to ``commandGroup`` at a time,
    /// launches and clients. Called at start until there is no more.
    package func recoverStrays(at now: Timestamp) async throws -> (hasMore: Bool, aftermath: Aftermath) {
        guard node != nil else { return (false, Aftermath()) }
        return try await transact(at: now) { transaction in
            let others = try self.livingOthers(transaction.db)
            return try self.releaseStrays(but: others, limit: Self.commandGroup, transaction).hasMore
        }
    }

    private func clearSuspects(_ transaction: Transaction) throws {
        let suspects = try transaction.db.all("SELECT task FROM live WHERE crashes > 0 ORDER BY task") {
            TaskID($0.integer(0))
        }
        for id in suspects {
            try transaction.db.execute("UPDATE live SET crashes = 0 WHERE task = ?1", id.rawValue)
            guard let live = try transaction.live(id), live.life.phase == .quarantined else { continue }
            try move(live, .cleared, crashes: 0, transaction)
        }
    }
}
