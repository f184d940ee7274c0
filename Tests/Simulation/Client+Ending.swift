import Base
import CSimulation
import Core
import Files
import Formats
import Launches
import SQL
import Service
import Store

/// The end of a run, without misbehaviour.
extension Client {
    /// The origins behave, and there are no more crashes: every task ends.
    func finish() async throws {
        for task in tasks where task.number == nil && !isInvalidated {
            try note(try await insist("create at last \(task.name)", Self.creating([task.order])), [task])
        }
        let deadline = world.simulator.now + 1_200_000 + world.slowness + (try await slowness())
        for task in tasks { try await beginNow(task) }
        while true {
            _ = try await insist("resume all") { service, session in
                guard let session else { throw DomainError.notFound }
                return try await service.command(.resume, TaskFilter(), in: session.id).matched
            }
            try await readEvents()
            try await answerQuestions(kindly: true)
            try await handleLaunch()
            let left = try await unfinished()
            if left.isEmpty, try await countOfUnfinished() == 0 { break }
            if world.simulator.now > deadline {
                let names = left.map(\.name)
                var found: [String] = []
                for task in left {
                    if let record = try await record(of: task, "see") { found.append("\(task.name) \(record.life)") }
                }
                throw Violation("Liveness: \(names) have not ended. \(found)")
            }
            await world.simulator.pause(500)
        }
        tasks.removeAll { $0.number == nil }
        // Destinations first: they are overwritten then.
        let placed = tasks.filter { $0.order.specification.destination != nil }
        for task in placed { try await examine(task) }
        for task in tasks where task.order.specification.destination == nil { try await examine(task) }
        if plan.has(.sets) { try await finishSet() }
        if plan.has(.fetches) { try await endFetches() }
        var known: Int64
        repeat {
            known = log.last
            try await readEvents()
        } while log.last > known
        try await checkCounts()
        try await acknowledge()
        try await delete()
    }

    /// The time in which all tasks of the session, also those of sets, get a whole long resource each at its bandwidth, in
    /// milliseconds.
    private func slowness() async throws -> Int64 {
        guard let limit = configuration.bandwidthLimit else { return 0 }
        return (Int64(tasks.count) + (try await countOfUnfinished())) * World.longestTime(at: limit, plan)
    }

    /// Tasks without a didComplete. If events were deleted, the tasks themselves are read.
    func unfinished() async throws -> [KnownTask] {
        var left = tasks.filter { task in task.number.map { log.outcomes[$0] == nil } ?? false }
        guard log.hasGaps else { return left }
        for task in left {
            if try await record(of: task, "see \(task.name)")?.outcome != nil { left.removeAll { $0 === task } }
        }
        return left
    }

    /// The unfinished tasks of the session, also those whose creation had a lost response.
    private func countOfUnfinished() async throws -> Int64 {
        try await insist("count") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.session(session.identifier, app: session.app).counts.unfinished
        }
    }

    func beginNow(_ task: KnownTask) async throws {
        guard task.order.specification.earliestBeginDate != nil, let number = task.number else { return }
        do {
            _ = try await insist("begin now \(task.name)") { service, session in
                guard let session else { throw DomainError.notFound }
                var changes = TaskChanges()
                changes.earliestBeginDate = .some(nil)
                let task = try await service.task(number, in: session.id)
                return try await service.changeTask(task.id, changes, ifRevision: nil).revision
            }
        } catch DomainError.taskCompleted {} catch is Refused {}
    }

    /// The record of a task, read again until there is a response; `nil` if the task was never created.
    private func finalRecord(of task: KnownTask) async throws -> TaskRecord? {
        guard let number = task.number else { return nil }
        return try await insist("examine \(task.name)") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.task(number, in: session.id)
        }
    }

    func examine(_ task: KnownTask) async throws {
        guard let found = try await finalRecord(of: task) else { return }
        try check(task, found)
        trace.met("outcome \(found.outcome?.rawValue ?? "none")")
        try checkArrival(task, found)
        guard let outcome = found.outcome else {
            throw Violation("\(task.name) has a didComplete, and is \(found.life).")
        }
        if plan.isCalm, !task.expectsOther, task.order.specification.maximumContentLength == nil,
            outcome != .succeeded, outcome != .cancelled || !mayCancel,
            policy(of: task) != .returnCacheDataDontLoad || found.result?.error?.code != .resourceUnavailable
        {
            throw Violation(
                "\(task.name) met no fault, and ended \(outcome): \(String(describing: found.result?.error)).")
        }
        if let destination = task.order.specification.destination {
            return try await checkDestination(task, destination, found)
        }
        if let destination = task.order.specification.destinationObject {
            return try checkDestination(task, destination, found)
        }
        guard outcome == .succeeded, let content = readable(task, found) else { return }
        do {
            try compare(try await insist("read \(task.name)", Self.reading(found)), with: content, of: task)
        } catch DomainError.contentExpired where plan.has(.clockJumps) {
            // It expires by the clock of the machine that is asked.
        }
    }

    func checkDestination(_ task: KnownTask, _ destination: Destination, _ found: TaskRecord) async throws {
        let outcome = found.outcome
        let isUnknown = task.mayBeShort || found.result?.response?.statusCode == 204
        // Written by the check of another task with this destination.
        guard !scribbled.contains(destination.path) else { return }
        let bytes = world.file("root/\(destination.path)")
        let others = tasks.filter { $0 !== task && $0.order.specification.destination == destination }
        if bytes == nil, plan.has(.powerCuts), trace.counts[Life.unsyncedMove] != nil { return }
        if outcome == .succeeded {
            var isExpected = isUnknown || bytes.map { task.has(digest: Digest.of($0)) } ?? false
            // A retry of the task has replaced the file, and the response to it was a 204, which has no body.
            for other in others where bytes == [] && !isExpected {
                isExpected = try await finalRecord(of: other)?.result?.response?.statusCode == 204
            }
            guard bytes != nil, isExpected else {
                throw Violation(
                    "\(task.name) succeeded, and its destination has \(bytes.map { "\($0.count) other bytes" } ?? "no file")."
                )
            }
            trace.met("destination compared")
            if plan.has(.sharing) { scribble(on: "root/\(destination.path)") }
        } else if outcome == .cancelled || outcome == .failed, bytes != nil, others.isEmpty {
            // SQLite reports failed reads as damage of the file.
            if outcome == .failed, plan.has(.readErrors), trace.counts[Life.unstoredOutcome] != nil { return }
            throw Violation("\(task.name) ended \(found.life.state), and there is a file at its destination.")
        }
    }

    /// Changes a file at its destination, which its app may: no other content has its inode.
    private func scribble(on path: String) {
        scribbled.insert(String(path.dropFirst("root/".count)))
        if world.overwriteFirstByte(of: path) { trace.met("destination overwritten") }
    }

    func checkDestination(_ task: KnownTask, _ destination: ObjectDestination, _ found: TaskRecord) throws {
        guard found.outcome == .succeeded else { return }
        guard let object = world.objects.ofApps(destination.key) else {
            throw Violation("\(task.name) succeeded, and its destination has no object.")
        }
        if task.mayBeShort || found.result?.response?.statusCode == 204 { return }
        let digest = Digest.of(object.bytes)
        // A retry of the task has the same destination, and perhaps another resource.
        let others = tasks.filter { $0.order.specification.destinationObject == destination }
        let isEmptyResponse = others.count > 1 && plan.has(.statuses) && object.bytes.isEmpty
        guard isEmptyResponse || others.contains(where: { $0.has(digest: digest) }) else {
            throw Violation("\(task.name) succeeded, and its object has \(object.bytes.count) other bytes.")
        }
        trace.met("object compared")
    }

    func checkCounts() async throws {
        let found = try await insist("session") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.session(session.identifier, app: session.app)
        }
        var counts: [Outcome: Int64] = [:]
        for outcome in log.outcomes.values { counts[outcome, default: 0] += 1 }
        for outcome in Outcome.allCases where !log.hasGaps && found.counts[outcome] != counts[outcome, default: 0] {
            throw Violation(
                "\(identifier) counts \(found.counts[outcome]) \(outcome), and there were \(counts[outcome, default: 0])."
            )
        }
        guard found.counts.unfinished == 0 else {
            throw Violation("\(identifier) counts unfinished tasks: \(found.counts).")
        }
    }

    func delete() async throws {
        do {
            _ = try await insist("delete session") { service, session in
                guard let session else { throw DomainError.notFound }
                return try await service.deleteSession(session.id)
            }
        } catch DomainError.notFound {}
    }
}
