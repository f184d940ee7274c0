import Base
import Core
import Files
import Glibc
import Store
import Transfers

/// The work on sets: lists of files, their tasks, publication and retention.
///
/// Each step reads its state from the store and may be repeated, so a kill at any point costs one step. The keeper of
/// the nodes does the work. Steps of one app follow each other, and no app waits for another's destination.
extension Service {
    /// Apps whose steps run side by side.
    private static let appsAtOnce = 32
    private static let longestPause = Duration.seconds(30)
    private static let keeperPause = Duration.milliseconds(200)

    func workOnSets() async {
        let busy = Locked<Set<AppID>>([])
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                var next: Timestamp?
                do {
                    if !nodes.isKeeper { placedFiles.withLock { $0 = [:] } }
                    if nodes.isKeeper, !isDraining {
                        for (app, work) in try await store.sets.due(at: clock.now) {
                            let isFree = busy.withLock { $0.count < Self.appsAtOnce && $0.insert(app).inserted }
                            guard isFree else { continue }
                            group.addTask {
                                await self.whileKeeper { await self.step(work) }
                                _ = busy.withLock { $0.remove(app) }
                                self.outlet.sets.ring()
                            }
                        }
                        next = busy.withLock(\.isEmpty) ? try await store.sets.nextDue() : nil
                    }
                } catch {
                    if Store.Obstacle(error) != .away {
                        log.warning("the work on sets could not be read", ("error", "\(error)"))
                    }
                    next = clock.now + .seconds(1)
                }
                let pause = min(Self.longestPause, next.map { max(.milliseconds(1), $0 - clock.now) } ?? .seconds(1))
                await outlet.sets.wait(until: clock.monotonic() + pause.milliseconds)
            }
        }
    }

    /// Cancels the work as soon as another node is the keeper, before that node begins the same work.
    private func whileKeeper(_ body: @escaping @Sendable () async -> Void) async {
        guard isShared else { return await body() }
        await withTaskGroup { group in
            group.addTask { await body() }
            group.addTask {
                while self.nodes.remainsKeeper, (try? await Task.sleep(for: Self.keeperPause)) != nil {}
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// Performs one step. A failed one is repeated after a pause that grows, and given up after an hour, or after seconds
    /// at an obstacle.
    private func step(_ work: SetWork) async {
        do {
            switch work {
            case .set(let id): try await step(id)
            case .version(let id): try await step(id)
            }
        } catch {
            guard !Task.isCancelled else { return }
            do {
                try await postpone(work, after: error)
            } catch {
                // The step is still due.
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    private static let mostAttempts = 24
    private static let mostAttemptsAtObstacle = 3

    /// Whether an entry of another program is in the way at the destination. A repetition alone does not help.
    private static func isObstacle(_ error: any Error) -> Bool {
        switch error {
        case is SetFolderFault: true
        case let error as SystemError: [ELOOP, ENOTDIR, EISDIR, EEXIST].contains(error.errno)
        default: false
        }
    }

    private func postpone(_ work: SetWork, after error: any Error) async throws {
        guard Store.Obstacle(error) == nil else {
            return try await postpone(work, until: clock.now + .seconds(1), isFailure: false)
        }
        let attempts =
            switch work {
            case .set(let id): try await store.sets.attempts(of: id)
            case .version(let id): try await store.sets.standing(of: id)?.attempts ?? 0
            }
        log.warning("a step on a set failed", ("work", "\(work)"), ("attempts", attempts + 1), ("error", "\(error)"))
        let most = Self.isObstacle(error) ? Self.mostAttemptsAtObstacle : Self.mostAttempts
        if attempts + 1 >= most, try await giveUp(work, after: error) { return }
        let pause = min(Duration.seconds(300), .seconds(1 << min(attempts, 9)))
        try await postpone(work, until: clock.now + pause, isFailure: true)
    }

    private func postpone(_ work: SetWork, until time: Timestamp, isFailure: Bool) async throws {
        switch work {
        case .set(let id): try await store.sets.postpone(id, until: time, isFailure: isFailure)
        case .version(let id):
            guard let standing = try await store.sets.standing(of: id) else { return }
            try await store.sets.postpone(standing.version, until: time, isFailure: isFailure)
        }
    }

    /// - Returns: Whether nothing is left to repeat.
    private func giveUp(_ work: SetWork, after error: any Error) async throws -> Bool {
        switch work {
        case .set(let id):
            guard let standing = try await store.sets.standing(of: id) else { return true }
            guard !standing.isForgotten else { return false }
            if let version = standing.switching { try await store.sets.abandonSwitch(of: id, to: version.id) }
            return false
        case .version(let id):
            guard let standing = try await store.sets.standing(of: id), standing.version.state.isInFlight else {
                return false
            }
            let step =
                switch standing.version.state {
                case .expanding: "The list of files could not be made"
                case .fetching: "The tasks of the files could not be created"
                case .verifying: "The files could not be verified"
                default: "The destination could not be written"
                }
            try await fail(id, "\(step): \(error)")
            return true
        }
    }

    func fail(_ version: SetVersionID, _ detail: String?) async throws {
        let (failed, aftermath) = try await store.sets.handle(.failed, version, detail: detail, at: clock.now)
        outlet.handle(aftermath)
        let first = failed.failures.first
        log.warning(
            "set version failed", ("version", failed.publicId), ("session", failed.sessionIdentifier),
            ("failed", failed.failedFiles),
            ("detail", [first?.path, first?.detail].compactMap { $0 }.joined(separator: ": ")))
    }

    func move(_ version: SetVersionID, _ event: SetVersionState.Event) async throws {
        outlet.handle(try await store.sets.handle(event, version, at: clock.now).aftermath)
    }

    // MARK: Sets

    private func step(_ id: SetID) async throws {
        guard let standing = try await store.sets.standing(of: id) else { return }
        if standing.isForgotten { return try await remove(standing) }
        let destination = try outlet(of: standing.set)
        if let version = standing.switching {
            try await destination?.point(to: version)
            outlet.handle(try await store.sets.endSwitch(of: id, to: version.id, at: clock.now))
        }
        try await destination?.sweep(keeping: try await store.sets.livingVersions(of: id))
        let open = setReaders.held.union(nodes.openVersions)
        outlet.handle(try await store.sets.retire(id, but: open, at: clock.now))
    }

    /// Rows that one commit removes.
    private static let rowsAtOnce = 200

    /// Removes a deleted set: its tasks, its published files, its rows.
    private func remove(_ standing: SetStanding) async throws {
        let set = standing.set
        let versions = try await store.sets.allVersions(of: set.id)
        // A removal that was interrupted may have cancelled a version, and not yet its tasks.
        for version in versions where version.state != .published {
            try await move(version.id, .cancel)
            if try await store.sets.standing(of: version.id)?.hasLostSession == false {
                try await cancelTasks(of: version)
            }
        }
        if !standing.hasLeftDestination { try await leaveDestination(standing, versions) }
        for version in versions { try await removeRows(of: version.id) }
        try await store.sets.remove(set.id)
    }

    /// Removes the files of a deleted set, and records that before its rows are deleted: the row of the current version
    /// tells which files stay.
    private func leaveDestination(_ standing: SetStanding, _ versions: [SetVersionRecord]) async throws {
        let set = standing.set
        do {
            let (outlet, kept) = (try outlet(of: set), standing.keepsCurrent ? set.current : nil)
            if let kept {
                // A switch that the deletion has ended may have been shown.
                try await outlet?.point(to: kept)
                for version in versions where version.state != .published && version.mayBeShown {
                    try await outlet?.withdraw(version, for: [kept])
                }
            }
            try await outlet?.removeAll(keeping: kept, known: versions)
        } catch {
            guard try await store.sets.attempts(of: set.id) >= Self.mostAttempts else { throw error }
            log.error("the files of a deleted set were left", ("set", set.name), ("error", "\(error)"))
        }
        try await store.sets.noteLeftDestination(set.id)
    }

    private func removeRows(of version: SetVersionID) async throws {
        try await repeatStep { try await store.sets.remove(version, limit: Self.rowsAtOnce, at: clock.now) }
    }

    private func cancelTasks(of version: SetVersionRecord) async throws {
        let unfinished = TaskFilter(states: [.running, .suspended], group: version.publicId)
        _ = try await command(.cancel(reason: nil), unfinished, in: version.session)
    }

    // MARK: Versions

    private func step(_ id: SetVersionID) async throws {
        guard let standing = try await store.sets.standing(of: id) else { return }
        if !standing.version.state.isInFlight { placedFiles.withLock { $0[id] = nil } }
        guard standing.isReceived else { return try await removeRows(of: id) }
        if standing.isRemoving { return try await remove(standing) }
        if standing.hasLostSession, standing.version.state.isInFlight, !standing.version.isBeingShown {
            return try await move(id, .cancel)
        }
        switch standing.version.state {
        case .expanding: try await expand(standing)
        case .fetching: try await fetch(standing)
        case .verifying: try await verify(standing)
        case .publishing: try await publish(standing)
        case .published: try await store.sets.postpone(standing.version, until: nil)
        case .failed, .superseded, .cancelled: try await retire(standing)
        }
    }

    /// Removes a version that readers do not see any more, or never saw.
    private func remove(_ standing: SetVersionStanding) async throws {
        do {
            try await outlet(of: standing.set)?.remove(
                standing.version, but: try await namedVersions(of: standing.set))
        } catch {
            guard standing.attempts >= Self.mostAttempts else { throw error }
            log.error(
                "the files of a version were left", ("version", standing.version.publicId), ("error", "\(error)"))
        }
        try await removeRows(of: standing.version.id)
    }

    /// Ends what is left of a version that was not published, and removes it a day later.
    private func retire(_ standing: SetVersionStanding) async throws {
        let version = standing.version
        if version.state != .failed, !standing.hasLostSession { try await cancelTasks(of: version) }
        if let outlet = try outlet(of: standing.set) {
            let others = try await namedVersions(of: standing.set)
            if version.mayBeShown {
                try await outlet.withdraw(version, for: others.filter { $0.state == .published })
                try await store.sets.note(mayBeShown: false, version.id)
            }
            // Another attempt may take the name.
            try await outlet.remove(version, but: others)
        }
        let end = (version.endedAt ?? version.createdAt) + Store.Sets.endedRetention
        guard end <= clock.now else {
            return try await store.sets.postpone(version, until: end)
        }
        if try await store.sets.beginRemoval(of: version.id) { try await remove(standing) }
    }
}
