package import Core
import SQL

extension Store.Tasks {
    /// The work that a start found in flight.
    package struct Recovered: Hashable, Sendable {
        /// Requeued, with no attempt charged.
        package var interrupted = 0
        /// The suspects among them, and the failed tasks.
        package var suspects = 0
        package var failed = 0
        /// Partial files that cannot be resumed, to be removed before any transfer.
        package var useless: [String] = []
    }

    /// The cause by which transfers have ended without a settlement.
    enum Interruption {
        /// The process of this node ended.
        case start(afterCrash: Bool, unrecorded: (TaskID, TaskProgress) -> Int64?)
        /// Another node died, or released nothing when it ended.
        case takeover
        /// The response to the commit that claimed the tasks was lost, and no transfer began.
        case lostClaim
    }

    /// Releases claimed tasks whose transfers have ended without a settlement, and requeues those in flight. No attempt is
    /// charged. A start, a takeover and a lost response to a claim all end here.
    func recover(
        _ tasks: [TaskID], _ interruption: Interruption, _ transaction: Transaction
    ) throws -> Recovered {
        var recovered = Recovered()
        try transaction.preread(tasks)
        try transaction.forEachLive(tasks) { live in
            guard live.life.phase == .active else { return try letGo(of: live, transaction) }
            if case .start(let afterCrash, let unrecorded) = interruption {
                return try recover(live, afterCrash: afterCrash, unrecorded, &recovered, transaction)
            }
            try move(live, .interrupted, letsGo: true, transaction)
            if case .takeover = interruption { try noteLeft(live, transaction.db) }
            recovered.interrupted += 1
        }
        return recovered
    }

    /// Requeues a task that was in flight here when the process ended. If the process crashed, the task may be the cause.
    private func recover(
        _ live: LiveTask, afterCrash: Bool, _ unrecorded: (TaskID, TaskProgress) -> Int64?,
        _ recovered: inout Recovered, _ transaction: Transaction
    ) throws {
        var progress = try progress(of: live)
        if let count = unrecorded(live.id, progress) {
            if live.kind == .download { progress.noteFetchedTwice(count) }
            if progress.kept.point == nil { recovered.useless.append(Self.partialFile(live.id)) }
        }
        let crashes = live.crashes + (afterCrash ? 1 : 0)
        switch Quarantine.verdict(after: crashes) {
        case .goOn:
            try move(live, .interrupted, progress: progress, crashes: crashes, letsGo: true, transaction)
            recovered.interrupted += 1
        case .runAlone:
            try move(
                live, .retry(at: transaction.now + Quarantine.delay, waitsForConnectivity: false), progress: progress,
                crashes: crashes, letsGo: true, transaction)
            recovered.interrupted += 1
            recovered.suspects += 1
        case .fail:
            var result = TaskResult(progress: progress)
            result.error = Quarantine.error
            try complete(live, .failed, result, content: nil, leavesPartialFile: true, transaction)
            recovered.failed += 1
        }
    }

    /// Requeues the tasks that were in flight here when the service ended. No attempt is charged.
    ///
    /// Called once at start, before the scheduler runs. Costs one row for each interrupted transfer. A crash counts
    /// against these tasks in the same commit that requeues them, so that a start that dies before it removes the crash
    /// marker cannot count the crash twice. The crash also counts against tasks that other nodes have taken over since.
    ///
    /// - Parameters:
    ///   - afterCrash: Whether the service left the crash marker.
    ///   - unrecorded: Returns the number of bytes in a task's partial file beyond its recorded progress, which are
    ///     transferred again; `nil` if there is no file.
    package func recoverInterrupted(
        at now: Timestamp, afterCrash: Bool = false,
        unrecorded: @escaping @Sendable (TaskID, TaskProgress) -> Int64? = { _, _ in nil }
    ) async throws -> (recovered: Recovered, aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            if let node = self.node { try self.forgetConnections(of: node, transaction.db) }
            try self.letGoOn(heldBy: self.node ?? "", transaction)
            let active = try transaction.db.all(
                "SELECT task FROM live WHERE stage = 'active' AND (node IS NULL OR node = ?1) ORDER BY session, task",
                self.node
            ) { TaskID($0.integer("task")) }
            var recovered = try self.recover(
                active, .start(afterCrash: afterCrash, unrecorded: unrecorded), transaction)
            try self.report(afterCrash, &recovered, transaction)
            // The cause of the crash is found: the other suspects are cleared.
            if recovered.failed > 0 { try self.clearSuspects(transaction) }
            return recovered
        }
    }

    // MARK: Crashes of nodes that were taken over

    /// Records the node that a task was taken over from. That node reports at its next start whether it crashed.
    func noteLeft(_ live: LiveTask, _ db: Connection) throws {
        guard let node = live.node else { return }
        try db.execute(
            """
            UPDATE live SET left_by = CASE WHEN left_by IS NULL THEN CAST(?2 AS TEXT) \
            ELSE left_by || ' ' || CAST(?2 AS TEXT) END WHERE task = ?1
            """, live.id.rawValue, node)
    }

    /// Counts this node's last end, if it was a crash, against the tasks that other nodes took over.
    private func report(_ hasCrashed: Bool, _ recovered: inout Recovered, _ transaction: Transaction) throws {
        guard let node else { return }
        let noted = try transaction.db.all(
            "SELECT task, left_by FROM live WHERE left_by IS NOT NULL ORDER BY task"
        ) { (TaskID($0.integer("task")), $0.text("left_by").split(separator: " ")) }
        for (task, nodes) in noted where nodes.contains(Substring(node)) {
            let others = nodes.filter { $0 != node }.joined(separator: " ")
            try transaction.db.execute(
                "UPDATE live SET left_by = ?2 WHERE task = ?1", task.rawValue, others.isEmpty ? nil : others)
            if hasCrashed, let live = try transaction.live(task) {
                try countCrash(against: live, &recovered, transaction)
            }
        }
    }

    /// Counts a crash against a task that continued at another node, or is waiting.
    private func countCrash(
        against live: LiveTask, _ recovered: inout Recovered, _ transaction: Transaction
    ) throws {
        let crashes = live.crashes + 1
        // A task whose content is being moved ends with the outcome of its move.
        let verdict = live.plannedMove == nil ? Quarantine.verdict(after: crashes) : .goOn
        switch (verdict, live.life.phase) {
        case (.fail, _):
            try end(live, .failed, Quarantine.error, transaction)
            recovered.failed += 1
            return
        case (.runAlone, .active):
            // The node that has claimed the task sees the decision and releases it.
            let time = transaction.now + Quarantine.delay
            try move(live, .retry(at: time, waitsForConnectivity: false), crashes: crashes, transaction)
        case (.runAlone, .queued): try move(live, .suspected, crashes: crashes, transaction)
        case (.goOn, _), (.runAlone, _):
            try transaction.db.execute("UPDATE live SET crashes = ?2 WHERE task = ?1", live.id.rawValue, crashes)
        }
        if verdict == .runAlone { recovered.suspects += 1 }
    }

    private func clearSuspects(_ transaction: Transaction) throws {
        try transaction.db.execute("UPDATE live SET left_by = NULL WHERE left_by IS NOT NULL")
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
