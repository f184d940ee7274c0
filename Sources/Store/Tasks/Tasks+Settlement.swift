package import Core
import Formats
import SQL

/// The content of a finished task.
package struct NewContent: Sendable {
    package enum Storage: Sendable {
        /// Up to 64 KiB, kept in the database.
        case bytes([UInt8])
        /// A file below the data folder, synced and renamed already.
        case file(String)
        /// An object in the bucket of contents.
        case object(String)
        /// The bytes of a row of the cache.
        case cached(Int64)
        /// Moved to the task's destination: this service cannot read it any more.
        case moved
    }

    package var storage: Storage
    package var length: Int64
    package var digest: ContentDigest
    /// A file that rows of the app name for the same bytes, and that is gone: they name this one's from now on.
    package var replacedFile: String?

    package init(storage: Storage, length: Int64, digest: ContentDigest, replacing replacedFile: String? = nil) {
        self.storage = storage
        self.length = length
        self.digest = digest
        self.replacedFile = replacedFile
    }
}

/// The outcome of an attempt for its task.
package struct Settlement: Sendable {
    package indirect enum Verdict: Sendable {
        case completed(Outcome, TaskResult, NewContent?)
        case retry(at: Timestamp, waitsForConnectivity: Bool, TaskProgress)
        case asked(Question, questionId: String, deadline: Timestamp, TaskProgress)
        /// The disk has no space for the remaining `needed` bytes. No attempt is charged.
        case waitsForDisk(needed: Int64, notBefore: Timestamp, TaskProgress)
        /// The task is requeued; no attempt is charged.
        case interrupted(TaskProgress)
        /// Bytes were synced while the transfer continues.
        case advanced(TaskProgress)
        /// The store has released the task already, and its progress with it.
        case released
    }

    package var task: TaskID
    package var verdict: Verdict
    /// The request that was transferred. A completion does not count if the task has another request by now. `nil`
    /// counts for any request.
    package var request: TransferRequest?
    /// The canonical URL of the request.
    package var url: String?
    /// Reported by an event before the verdict's events.
    package var resumption: Resumption?
    package var bytesReceived: Int64 = 0
    package var bytesSent: Int64 = 0
    /// Whether a partial file remains that is not the content of a completed task.
    package var leavesPartialFile: Bool
    /// The stored credentials that the attempt could use before it asked. A credential stored since is tried first.
    package var credentialsKnown: Set<String> = []
    /// Whether the task has run alone long enough to end its quarantine.
    package var endsSuspicion = false
    /// What other tasks share of the transfer. Whatever the verdict is for this task.
    package var landing: Landing?
    /// Whether the response, of which the head has come, may not be reused.
    package var isNotReusable = false
    /// Whether the transfer presents an identity that tasks of other sessions, which wait for it, need not have.
    package var dividesFlight = false

    package init(
        task: TaskID, _ verdict: Verdict, of request: TransferRequest? = nil, resumption: Resumption? = nil,
        leavesPartialFile: Bool = false
    ) {
        self.task = task
        self.verdict = verdict
        self.request = request
        self.resumption = resumption
        self.leavesPartialFile = leavesPartialFile
    }
}

extension Store.Tasks {
    /// Settles attempts in one commit: states, contents, events, counters, launches.
    ///
    /// A settlement of a task that was cancelled or taken over is stale, and its files are discarded, except the bytes
    /// of a cancelled or failed download from which its retry can resume. A suspended task keeps its progress, even if
    /// it was resumed and is queued. If its transfer was complete, it completes, because a repetition could do harm.
    /// Costs about eight rows for each completed task.
    ///
    /// - Parameter sessions: The probable sessions of the tasks.
    func settle(
        _ settlements: [Settlement], of sessions: Set<SessionID> = [], _ transaction: Transaction
    ) throws {
        if settlements.isEmpty { return }
        let places = try store.files.askPlaces(of: settlements, transaction.db)
        let landings = try store.cache.askLandings(of: settlements, transaction.db)
        let invalidated = try store.cache.askInvalidated(by: settlements, transaction.db)
        try transaction.preread(settlements.map(\.task), likely: sessions)
        try store.files.note(places, transaction)
        try store.cache.note(landings, transaction)
        for settlement in settlements {
            let found = try transaction.live(settlement.task)
            guard let live = found, isHeld(live) else {
                try discard(settlement, isOfAnotherNode: found != nil, transaction)
                continue
            }
            let session = try transaction.session(live.session)
            session.bytesReceived += settlement.bytesReceived
            session.bytesSent += settlement.bytesSent
            session.isChanged = true
            if settlement.endsSuspicion {
                try transaction.db.execute(
                    "UPDATE live SET crashes = 0, left_by = NULL WHERE task = ?1", live.id.rawValue)
            }
            if let kept = settlement.progress?.keptOffset, kept > 0, try kept > progress(of: live).keptOffset {
                session.stall.progressed(at: transaction.now)
            }
            let phase = live.life.phase
            if phase != .active, try !completes(live, by: settlement, transaction.db) {
                try keepProgress(of: settlement, live, transaction)
                continue
            }
            if let resumption = settlement.resumption {
                try transaction.append(
                    .didResumeAtOffset, to: session, task: live.id, data: documents.encode(resumption))
            }
            try apply(settlement, to: live, of: session, transaction)
        }
        try store.cache.remove(invalidated: invalidated, transaction)
        try store.cache.makeRoom(transaction)
    }

    /// Removes what a settlement without a task of this node leaves: content, object and partial file.
    private func discard(_ settlement: Settlement, isOfAnotherNode: Bool, _ transaction: Transaction) throws {
        transaction.aftermath.filesToRemove += settlement.files
        if let object = settlement.object { try store.files.discard(object: object, transaction) }
        if settlement.isLast, !isOfAnotherNode {
            let isPassedOn = try store.cache.handOverFlight(
                ledBy: settlement.task, settlement.progress, transaction)
            if !isPassedOn, let progress = settlement.progress {
                try keepForRetry(progress, of: settlement.task, transaction)
            }
        }
        let partial = Self.partialFile(settlement.task)
        if settlement.isLast, try !isKept(partial, but: settlement.task, transaction.db) {
            transaction.aftermath.filesToRemove.append(partial)
        }
    }

    private func apply(
        _ settlement: Settlement, to live: LiveTask, of session: SessionEntry, _ transaction: Transaction
    ) throws {
        if settlement.isNotReusable { try store.cache.forbidReuse(by: live, transaction) }
        if settlement.dividesFlight { try store.cache.divideFlight(of: live, transaction) }
        var live = live
        if let landing = settlement.landing, !settlement.isCompletion {
            // The task continues with another request: its flight ends without it.
            try store.cache.leaveFlight(live, landing: landing, transaction)
            live.flight = nil
        }
        switch settlement.verdict {
        case .completed(let outcome, let result, let content):
            guard try store.files.isStored(content, transaction) else {
                guard live.life.phase == .active else { return try letGo(of: live, transaction) }
                _ = try move(live, .interrupted, letsGo: true, transaction)
                return
            }
            try complete(
                live, outcome, result, content: content, landing: settlement.landing,
                leavesPartialFile: settlement.leavesPartialFile, transaction)
        case .retry(let at, let waitsForConnectivity, let progress):
            try move(
                live, .retry(at: at, waitsForConnectivity: waitsForConnectivity), progress: progress, letsGo: true,
                transaction)
        case .asked(let question, let questionId, let deadline, let progress):
            if try store.questions.isAnswered(
                question, for: session, known: settlement.credentialsKnown, transaction.db)
            {
                try move(live, .interrupted, progress: progress, letsGo: true, transaction)
            } else {
                let id = try store.questions.ask(question, questionId, deadline, live, session, transaction)
                try move(live, .ask(id), progress: progress, letsGo: true, transaction)
                // The answer may be of no use to other sessions.
                try store.cache.divideFlight(of: live, transaction)
            }
        case .waitsForDisk(let needed, let notBefore, let progress):
            let kept = progress.keptOffset
            try move(
                live, .noRoom(needed: needed, kept: kept, notBefore: notBefore), progress: progress, letsGo: true,
                transaction)
        case .released: try move(live, .interrupted, letsGo: true, transaction)
        case .interrupted(let progress):
            try move(live, .interrupted, progress: progress, letsGo: true, transaction)
        case .advanced(let progress):
            try save(progress, of: live.id, transaction.db)
        }
    }

    private func keepProgress(of settlement: Settlement, _ live: LiveTask, _ transaction: Transaction) throws {
        transaction.aftermath.filesToRemove += settlement.files
        switch settlement.verdict {
        case .completed(_, _, let content):
            if let object = settlement.object { try store.files.discard(object: object, transaction) }
            if content != nil {
                var progress = try progress(of: live)
                progress.forgetBytes()
                try save(progress, of: live.id, transaction.db)
            }
        case .released: break
        case .retry(_, _, let progress), .asked(_, _, _, let progress), .interrupted(let progress),
            .waitsForDisk(_, _, let progress), .advanced(let progress):
            try save(progress, of: live.id, transaction.db)
        }
        if settlement.isLast, live.node != nil || live.plannedMove != nil { try letGo(of: live, transaction) }
        if settlement.isLast, live.flight != nil, live.life.phase == .suspended {
            try store.cache.leaveFlight(live, passing: settlement.progress, transaction)
        }
    }

    /// Whether a task that is not active completes: its request is still the transferred one.
    private func completes(_ live: LiveTask, by settlement: Settlement, _ db: Connection) throws -> Bool {
        guard settlement.isCompletion else { return false }
        guard let request = settlement.request else { return true }
        return try read(live.id, db)?.specification.request == request
    }

    /// Whether this node may settle the task: no other node has claimed it.
    private func isHeld(_ live: LiveTask) -> Bool { live.node == nil || live.node == node }

    /// Releases a task, so that any node may claim it.
    func letGo(of live: LiveTask, _ transaction: Transaction) throws {
        try transaction.db.execute(
            "UPDATE live SET node = NULL, move_document = NULL WHERE task = ?1", live.id.rawValue)
        if live.life.phase == .queued || live.life.phase == .quarantined { transaction.aftermath.hasQueuedTasks = true }
    }

    /// Stores the progress of an unfinished task, outside the scheduler's commits.
    ///
    /// - Returns: False if the task is completed.
    package func keep(_ progress: TaskProgress, of task: TaskID) async throws -> Bool {
        try await database.write { db in try self.save(progress, of: task, db) > 0 }
    }

    @discardableResult
    func save(_ progress: TaskProgress, of task: TaskID, _ db: Connection) throws -> Int {
        try db.change(
            "UPDATE live SET progress_document = ?2, adopts = ?3 WHERE task = ?1", task.rawValue,
            documents.encode(progress), progress.adoptedFile)
    }

    /// Ends a task in any state.
    ///
    /// - Parameter progress: The final progress; `nil` for the stored progress.
    func end(
        _ live: LiveTask, _ outcome: Outcome, _ error: TaskError, progress: TaskProgress? = nil,
        response: TaskResponse? = nil, _ transaction: Transaction
    ) throws {
        var result = TaskResult(progress: try progress ?? self.progress(of: live))
        result.error = error
        result.response = response
        if live.life.phase == .active, let attempt = transaction.policies.attempt(live.id) {
            // Its settlement comes too late.
            result.progress.count(attempt, endedBy: error, at: transaction.now)
            result.response = response ?? attempt.response
            let session = try transaction.session(live.session)
            session.bytesReceived += attempt.received
            session.bytesSent += attempt.sent
        }
        try complete(live, outcome, result, by: TaskLife.Event.end, content: nil, transaction)
        try transaction.flushCompleted()
    }

    /// Completes a task: its row, content and last events, in the order that G3 promises.
    ///
    /// - Parameter leavesPartialFile: Whether the transfer, which has ended, left a partial file that is not the
    ///   content.
    func complete(
        _ live: LiveTask, _ outcome: Outcome, _ result: TaskResult,
        by event: (Outcome, TaskResult) -> TaskLife.Event = TaskLife.Event.finish, content: NewContent?,
        landing: Landing? = nil, leavesPartialFile: Bool = false, _ transaction: Transaction
    ) throws {
        let now = transaction.now
        let session = try transaction.session(live.session)
        let result = try described(result, of: live, outcome, content, landing, transaction)
        if let status = result.cacheStatus { transaction.change(cacheOf: session.app) { $0.count(status) } }
        let stops = transaction.aftermath.transfersToStop.count
        let life = try transaction.life(of: live, after: event(outcome, result), crashes: live.crashes)
        let isWriting = transaction.aftermath.transfersToStop.count > stops
        transaction.follow(live.life, life, lane: live.lane, of: session)
        if live.kind == .download, content != nil {
            // The event keeps this time, even if the content's expiry changes later.
            let expiresAt = now + policies.unacknowledgedRetention
            try transaction.append(
                .didFinishDownloading, to: session, task: live.id, data: documents.encode(expiresAt))
        }
        try transaction.append(.didFinishCollectingMetrics, to: session, task: live.id)
        let seq = try transaction.append(.didComplete, to: session, task: live.id, data: session.counts.completions)
        session.book.lastCompletionSeq = seq
        session.stall.progressed(at: now)
        transaction.complete(task: [
            live.id.rawValue, outcome.rawValue, documents.encode(result), now.milliseconds, seq, life.state.rawValue,
        ])
        let place = try content.flatMap { try insert($0, of: live, seq: seq, transaction) }
        if let fetch = live.setFetch {
            try store.sets.settle(fetch, of: live, outcome, result, content, place, transaction)
        }
        let isPassedOn = try store.cache.leaveFlight(
            live, landing: landing, passing: result.progress, isWriting: isWriting, transaction)
        if !isPassedOn {
            try keepForRetry(live, outcome, result.progress, session, transaction)
            // The transfer of an active task may still write. Its last settlement discards the file then.
            let leavesFile = leavesPartialFile || live.life.phase != .active && live.progress != nil && content == nil
            try discardFiles(of: live.id, result.progress, andPartialFile: leavesFile, transaction)
        }
        try store.questions.leaveQuestion(live, transaction)
        if let body = live.body { try store.files.release(body: body, transaction) }
        if outcome == .cancelled, result.progress.uploadURL != nil {
            transaction.aftermath.abandonedUploads.append(live.id)
        }
        transaction.aftermath.completedTasks.append(
            CompletedTask(
                id: live.id, session: live.session,
                name: TaskName(
                    app: session.appIdentifier, session: session.identifier, number: live.number,
                    clientTaskId: live.clientTaskId),
                outcome: outcome, statusCode: result.response?.statusCode, error: result.error))
    }

    /// The result with the URL of its error, its content, and its use of the cache.
    private func described(
        _ result: TaskResult, of live: LiveTask, _ outcome: Outcome, _ content: NewContent?, _ landing: Landing?,
        _ transaction: Transaction
    ) throws -> TaskResult {
        var result = result
        if let error = result.error, error.failingURL == nil {
            do {
                result.error?.failingURL =
                    try result.progress.currentURL ?? read(live.id, transaction.db)?.specification.request.url
            } catch is SealError, is UnreadableDocument {
                // A task whose request cannot be read could not end otherwise.
            }
        }
        result.contentLength = content?.length
        result.contentDigest = content?.digest
        if let landing, outcome == .succeeded, store.cache.isStorable(landing) {
            result.cacheStatus = result.cacheStatus ?? .stored
        }
        return result
    }

    /// Discards the files of a completed task that no resume data and no other task needs.
    private func discardFiles(
        of task: TaskID, _ progress: TaskProgress, andPartialFile leavesFile: Bool, _ transaction: Transaction
    ) throws {
        let partial = Self.partialFile(task)
        for file in [leavesFile ? partial : nil, progress.adoptedFile].compactMap({ $0 })
        where try !isKept(file, but: task, transaction.db) {
            try store.files.discard(file, on: progress.node, transaction)
        }
    }

    /// The path of a task's partial file, relative to the data folder.
    static func partialFile(_ task: TaskID) -> String { "partial/\(task.rawValue)" }

    /// - Returns: Where the bytes lie; `nil` for a content that was moved elsewhere.
    private func insert(
        _ content: NewContent, of live: LiveTask, seq: Int64, _ transaction: Transaction
    ) throws -> StoredPlace? {
        let expiresAt = transaction.now + policies.unacknowledgedRetention
        let session = try transaction.session(live.session)
        let place = try store.files.refer(to: content, session.app, transaction)
        if place != nil { transaction.addStored(content.length, app: session.app) }
        transaction.keep(content: [
            live.id.rawValue, live.session.rawValue, seq, content.length, content.digest.algorithm.rawValue,
            content.digest.value, place?.bytes, place?.file, expiresAt.milliseconds, place == nil, place?.object,
            session.app.rawValue, session.indexesContents && place?.bytes != nil,
        ])
        return place
    }
}

extension Settlement {
    var isCompletion: Bool { if case .completed = verdict { true } else { false } }

    /// The progress from which the next attempt continues; `nil` if the task completed.
    var progress: TaskProgress? {
        switch verdict {
        case .completed, .released: nil
        case .retry(_, _, let progress), .asked(_, _, _, let progress), .waitsForDisk(_, _, let progress),
            .interrupted(let progress), .advanced(let progress):
            progress
        }
    }

    /// Whether the transfer has ended and closed its partial file.
    var isLast: Bool { if case .advanced = verdict { false } else { true } }

    /// Files that are orphaned if the settlement is stale or cannot be stored.
    package var files: [String] {
        var files: Set<String> = []
        if case .completed(_, _, let content?) = verdict, case .file(let path) = content.storage { files.insert(path) }
        if let landing, case .file(let path) = landing.content.storage { files.insert(path) }
        return Array(files)
    }

    /// The object in the bucket of contents that is orphaned in the same cases.
    var object: String? {
        guard case .completed(_, _, let content?) = verdict, case .object(let key) = content.storage else { return nil }
        return key
    }
}
