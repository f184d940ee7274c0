/// The choice of transfers that resume on a disk without space for all. Space is counted in bytes above the floor.
package enum DiskPlan {
    /// A transfer that stopped at the floor.
    package struct Waiting: Hashable, Sendable {
        package var task: TaskID
        /// The length of its partial file.
        package var kept: Int64
        /// The number of bytes yet to be received; an estimate if the origin does not declare the length.
        package var needed: Int64
        /// Whether the transfer may resume as soon as there is space; false shortly after a failed try.
        package var isReady: Bool

        package init(task: TaskID, kept: Int64, needed: Int64, isReady: Bool = true) {
            self.task = task
            self.kept = kept
            self.needed = needed
            self.isReady = isReady
        }
    }

    package enum Step: Hashable, Sendable {
        /// There is space for these transfers, one after the other.
        case goOn([TaskID])
        /// The partial file of this transfer is removed, so that others have space.
        case empty(TaskID)
        /// Removing a file would help no transfer: all wait for other space.
        case wait
    }

    /// The next step, evaluated again after the step and a new measurement of the disk.
    ///
    /// The task that needs the least resumes first. If none fits, the partial file of the task with the largest need is
    /// removed, provided that this, or further removals in this order, lets another task fit.
    ///
    /// - Parameter othersWait: Whether tasks that have not begun wait for any space.
    package static func next(room: Int64, waiting: [Waiting], othersWait: Bool) -> Step {
        let all = waiting.sorted { ($0.needed, $0.task.rawValue) < ($1.needed, $1.task.rawValue) }
        var left = room
        var fitting: [TaskID] = []
        for one in all {
            guard one.needed <= left else { break }
            left -= one.needed
            if one.isReady { fitting.append(one.task) }
        }
        if !fitting.isEmpty { return .goOn(fitting) }
        if let least = all.first, least.needed <= room { return .wait }
        let victims = all.reversed().filter { $0.kept > 0 }
        guard let first = victims.first else { return .wait }
        var emptied: Set<TaskID> = []
        var freed = room
        for victim in victims {
            emptied.insert(victim.task)
            freed += victim.kept
            let helpsAnother = all.contains { !emptied.contains($0.task) && $0.needed <= freed }
            if helpsAnother || (othersWait && freed > 0) { return .empty(first.task) }
        }
        return .wait
    }

    /// The consequence for a transfer stopped at the floor.
    package enum Verdict: Hashable, Sendable {
        case waits(needed: Int64)
        /// The disk is too small for the content, even when empty.
        case neverFits
        /// The received bytes were discarded too often.
        case lostTooOften
    }

    /// The maximum number of restarts because of a full disk.
    package static let lossLimit = 4

    /// - Parameters:
    ///   - total: The length of the content, if the origin declared it.
    ///   - kept: The number of kept bytes.
    ///   - reached: The number of bytes when the transfer stopped.
    ///   - losses: The number of times that bytes were discarded for space, including this time.
    ///   - largest: The longest content that the empty disk could hold above its floor.
    package static func judge(total: Int64?, kept: Int64, reached: Int64, losses: Int, largest: Int64) -> Verdict {
        if let total, total > largest { return .neverFits }
        if losses > lossLimit { return .lostTooOften }
        // A content of unknown length is estimated at twice the received bytes.
        let guess = min(largest, 2 * max(kept, reached))
        return .waits(needed: max(1, (total ?? guess) - kept))
    }

    /// The wait of a transfer without progress before its next try.
    ///
    /// - Parameter pauses: The number of consecutive stops without progress, including this one.
    package static func delay(afterPauses pauses: Int) -> Duration {
        pauses < 2 ? .zero : .seconds(min(600, 5 << min(pauses - 2, 7)))
    }
}

extension TaskProgress {
    /// Records that the kept bytes were discarded, so that other transfers have space.
    package mutating func loseContent() {
        noteFetchedTwice(keptOffset)
        forgetBytes()
        restartCause = "diskFull"
        diskLosses += 1
    }

    /// Counts a stop because of missing space.
    ///
    /// - Parameter start: The kept bytes at the start of the attempt.
    /// - Returns: The wait before the next try.
    package mutating func pauseForRoom(since start: Int64) -> Duration {
        let hasGotOn = keptOffset - start >= AttemptLedger.progressThreshold
        diskPauses = hasGotOn ? 1 : diskPauses + 1
        return DiskPlan.delay(afterPauses: diskPauses)
    }

    /// Like ``pauseForRoom(since:)`` for a bucket that rejects writes: the node first checks whether it rejects all.
    package mutating func pauseForContents(since start: Int64) -> Duration {
        max(.seconds(1), pauseForRoom(since: start))
    }

    /// Whether bytes were discarded too often.
    package var hasLostTooOften: Bool { diskLosses > DiskPlan.lossLimit }
}

extension TaskError {
    /// The error of a task ended by a full disk.
    package static func fullDisk(_ verdict: DiskPlan.Verdict, failingURL: String? = nil) -> TaskError {
        let reason =
            switch verdict {
            case .neverFits: "The content is longer than the disk can hold."
            case .lostTooOften, .waits: "The disk was full too often: the content restarted too many times."
            }
        return TaskError(
            .cannotWriteToFile, reason, failingURL: failingURL,
            underlying: Underlying(domain: "urlsessiond", code: "insufficient-storage", message: reason))
    }
}
