/// Which transfers go on when the disk has no room for all of them. Room is counted in bytes above the floor.
package enum DiskPlan {
    /// A transfer that stopped at the floor.
    package struct Waiting: Hashable, Sendable {
        package var task: TaskID
        /// Bytes that its partial file keeps.
        package var kept: Int64
        /// Bytes that are still to come; a guess where the origin does not say.
        package var needed: Int64
        /// Whether it may go on as soon as there is room; false shortly after it tried in vain.
        package var isReady: Bool

        package init(task: TaskID, kept: Int64, needed: Int64, isReady: Bool = true) {
            self.task = task
            self.kept = kept
            self.needed = needed
            self.isReady = isReady
        }
    }

    package enum Step: Hashable, Sendable {
        /// There is room for these, one after the other.
        case goOn([TaskID])
        /// What this one keeps goes, so that others find room.
        case empty(TaskID)
        /// No task would be helped: all wait for room from elsewhere.
        case wait
    }

    /// What to do next; asked again when it is done and the disk was measured.
    ///
    /// The task that needs the least resumes first. If none fits, the task with the most bytes to come gives up its partial
    /// file, provided that this, or the same of the tasks after it, lets another one fit.
    ///
    /// - Parameter othersWait: Whether tasks that have not begun wait for any room at all.
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

    /// What becomes of a transfer that the floor stopped.
    package enum Verdict: Hashable, Sendable {
        case waits(needed: Int64)
        /// The disk is smaller than the content, whatever else goes.
        case neverFits
        /// What it had was thrown away too often.
        case lostTooOften
    }

    /// How often a content may begin anew because the disk was full.
    package static let lossLimit = 4

    /// - Parameters:
    ///   - total: Length of the content, where the origin said it.
    ///   - kept: Bytes that stay.
    ///   - reached: Bytes that were there when it stopped.
    ///   - losses: How often bytes were lost to the full disk, this time included.
    ///   - largest: The longest content that the empty disk could hold above its floor.
    package static func judge(total: Int64?, kept: Int64, reached: Int64, losses: Int, largest: Int64) -> Verdict {
        if let total, total > largest { return .neverFits }
        if losses > lossLimit { return .lostTooOften }
        // Of what has no length there is as much to come as came.
        let guess = min(largest, 2 * max(kept, reached))
        return .waits(needed: max(1, (total ?? guess) - kept))
    }

    /// How long a transfer that got no further than the last time waits before it is tried again.
    ///
    /// - Parameter pauses: How often in a row it stopped without getting on, this time included.
    package static func delay(afterPauses pauses: Int) -> Duration {
        pauses < 2 ? .zero : .seconds(min(600, 5 << min(pauses - 2, 7)))
    }
}

extension TaskProgress {
    /// Takes note that what was kept is thrown away, so that others find room.
    package mutating func loseContent() {
        noteFetchedTwice(keptOffset)
        resume = nil
        segments = nil
        source = 0
        durableOffset = 0
        restartCause = "diskFull"
        diskLosses += 1
    }

    /// Counts that it stopped because there was no room.
    ///
    /// - Parameter start: Bytes that it need not have transferred when it began.
    /// - Returns: How long it waits before it is tried again.
    package mutating func pauseForRoom(since start: Int64) -> Duration {
        let hasGotOn = keptOffset - start >= AttemptLedger.progressThreshold
        diskPauses = hasGotOn ? 1 : diskPauses + 1
        return DiskPlan.delay(afterPauses: diskPauses)
    }

    /// The same where the bucket of contents refuses what comes: the node finds out first whether it refuses everything.
    package mutating func pauseForContents(since start: Int64) -> Duration {
        max(.seconds(1), pauseForRoom(since: start))
    }

    /// Whether that was once too often.
    package var hasLostTooOften: Bool { diskLosses > DiskPlan.lossLimit }
}

extension TaskError {
    /// Why a full disk ended a task.
    package static func fullDisk(_ verdict: DiskPlan.Verdict, failingURL: String? = nil) -> TaskError {
        let reason =
            switch verdict {
            case .neverFits: "The content is longer than the disk can hold."
            case .lostTooOften, .waits: "The disk was full so often that the content began anew too many times."
            }
        return TaskError(
            .cannotWriteToFile, reason, failingURL: failingURL,
            underlying: Underlying(domain: "urlsessiond", code: "insufficient-storage", message: reason))
    }
}
