import Base
package import Core
import Store
import Transfers

extension Service {
    /// A task as stored, or the caller's value for its stamp.
    package func task<Known>(
        _ number: Int64, in session: String, of app: AppID, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> FoundTask<Known> {
        try await store.tasks.read(number, in: session, of: app, known: known)
    }

    package func task(_ number: Int64, in session: SessionID) async throws -> TaskRecord {
        try await store.tasks.read(number, in: session)
    }

    /// Tasks of a session after a number, each with the result of a search, if there is one.
    package func tasks<Known>(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), matching search: TaskSearch? = nil,
        after number: Int64, limit: Int, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await store.tasks.list(
            in: session, filter, span, matching: search, after: number, limit: limit, known: known)
    }

    package func tasks(
        in session: SessionID, _ filter: TaskFilter, _ span: ListSpan = ListSpan(), after number: Int64, limit: Int
    ) async throws -> [TaskRecord] {
        try await store.tasks.list(in: session, filter, span, after: number, limit: limit)
    }

    /// Tasks of an app in all sessions, after one of them, each with the result of a search, if there is one.
    package func tasks<Known>(
        of app: AppID, _ filter: TaskFilter, _ span: ListSpan, matching search: TaskSearch? = nil, after id: Int64,
        limit: Int, known: @escaping @Sendable (TaskStamp) -> Known?
    ) async throws -> [SearchedTask<Known>] {
        try await store.tasks.list(of: app, filter, span, matching: search, after: id, limit: limit, known: known)
    }

    /// A task once it completes or, with a revision, once it is newer; at the latest at the monotonic `deadline` (ms).
    package func waitForTask(
        _ number: Int64, in session: SessionID, newerThan revision: Int64?, until deadline: Int64,
        isGone: @escaping @Sendable () -> Bool
    ) async throws -> TaskRecord {
        var task = try await store.tasks.read(number, in: session)
        let watch = hub.tasks.watch(task.id)
        while true {
            task = try await store.tasks.read(number, in: session)
            let isNewer = revision.map { task.revision > $0 } ?? false
            if task.state == .completed || isNewer || clock.monotonic() >= deadline || isGone() || isDraining {
                return task
            }
            _ = await watch.wait(until: deadline)
        }
    }

    // MARK: Changing

    package func changeTask(
        _ id: TaskID, _ changes: TaskChanges, ifRevision revision: Int64?
    ) async throws -> TaskRecord {
        let (task, aftermath) = try await behindMoves { overtakesMove in
            try await self.store.tasks.change(
                id, changes, ifRevision: revision, overtakesMove: overtakesMove, at: self.clock.now)
        }
        outlet.handle(aftermath)
        hub.tasks.signal(id)
        return task
    }

    package func command(
        _ command: TaskCommand, task id: TaskID, ifRevision revision: Int64? = nil
    ) async throws -> TaskRecord {
        let (task, aftermath) = try await behindMoves { overtakesMove in
            try await self.store.tasks.command(
                command, task: id, ifRevision: revision, overtakesMove: overtakesMove, at: self.clock.now)
        }
        outlet.handle(aftermath)
        hub.tasks.signal(id)
        return task
    }

    /// Commands all matching tasks of a session, in batches. Tasks whose content is being moved come last, and count as
    /// matching if they are not completed by then.
    ///
    /// - Parameters:
    ///   - newest: The newest task that matches, nil for any.
    ///   - revision: The required revision of the session at the first batch, or nil.
    package func command(
        _ command: TaskCommand, _ filter: TaskFilter, in session: SessionID, upTo newest: TaskID? = nil,
        ifRevision revision: Int64? = nil
    ) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var revision = revision
        var moving: Set<Int64> = []
        func carryOut(_ filter: TaskFilter, overtakesMoves: Bool = false) async throws {
            var after: Int64? = 0
            while let number = after {
                let (step, aftermath) = try await store.tasks.command(
                    command, filter, in: session, after: number, limit: Store.Tasks.commandGroup, upTo: newest,
                    ifRevision: revision, overtakesMoves: overtakesMoves, at: clock.now)
                revision = nil
                outlet.handle(aftermath)
                matched += step.matched
                changed += step.changed
                moving.formUnion(step.moving)
                after = step.last
            }
        }
        try await carryOut(filter)
        try await behindMoves { overtakesMoves in
            if moving.isEmpty { return }
            var rest = filter
            rest.numbers = moving
            moving = []
            try await carryOut(rest, overtakesMoves: overtakesMoves)
            if !moving.isEmpty { throw MoveUnderWay() }
        }
        return (matched, changed)
    }

    /// Repeats a command while the content that it would stop is being moved to a destination: for ten seconds at most,
    /// after which the command overtakes the move.
    func behindMoves<Value>(_ command: (_ overtakesMoves: Bool) async throws -> Value) async throws -> Value {
        let deadline = clock.monotonic() + 10_000
        while clock.monotonic() < deadline {
            do {
                return try await command(false)
            } catch is MoveUnderWay {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        return try await command(true)
    }

    /// Creates a new task of a completed one.
    ///
    /// - Parameter traceparent: The trace context of the request, if it has one.
    package func retry(
        _ task: TaskRecord, in session: SessionRecord, traceparent: String? = nil, recording: Recording<[CreatedTask]>?
    ) async throws -> CreatedTask {
        guard task.state == .completed else { throw Refused(state: task.state.rawValue, event: "retry") }
        var order = TaskOrder(retrying: task, traceparent)
        let created: [CreatedTask]
        do {
            created = try await createTasks([order], in: session, recording: recording)
        } catch DomainError.resumeDataSpent {
            // Another retry has claimed the kept bytes meanwhile.
            order.retried = nil
            created = try await createTasks([order], in: session, recording: recording)
        }
        guard let first = created.first else { throw DomainError.notFound }
        return first
    }
}
