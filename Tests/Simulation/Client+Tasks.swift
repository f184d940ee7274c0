import Base
import CSimulation
import Core
import Files
import Formats
import Launches
import SQL
import Service
import Store
import Transfers

/// The creation of tasks, and the invariants of each.
extension Client {
    func create() async throws {
        guard !isInvalidated else { return }
        let count = min(plan.tasks - lastTask, dice.chance(200) ? 1 + dice.below(4) : 1)
        let made = (0..<count).map { _ in makeTask() }
        tasks += made
        for task in made where task.isDownload && (Dice.readers.chance(150) || plan.has(.longReads)) {
            world.begin { try await self.followArriving(task) }
        }
        for task in made where plan.has(.commands) && Dice.extras.chance(300) {
            world.begin { try await self.ambush(task) }
        }
        let orders = made.map(\.order)
        let isRepeated = dice.chance(100)
        if let created = try await attempt("create \(made.map(\.name))", Self.creating(orders)) {
            try note(created, made)
        } else if world.isTroubled, dice.chance(300) {
            // The response to its creation may arrive later: it exists, or not.
            return
        } else {
            try note(try await insist("create again \(made.map(\.name))", Self.creating(orders)), made)
        }
        if isRepeated { try note(try await insist("repeat \(made.map(\.name))", Self.creating(orders)), made) }
    }

    static func creating(_ orders: [TaskOrder]) -> @Sendable (Service, SessionRecord?) async throws -> [Int64] {
        { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.createTasks(orders, in: session, recording: nil).map(\.task.number)
        }
    }

    func note(_ numbers: [Int64], _ made: [KnownTask]) throws {
        for (number, task) in zip(numbers, made) {
            if let before = task.number, before != number {
                throw Violation("The task \(task.name) was \(before), and is \(number).")
            }
            task.number = number
            if tasks.contains(where: { $0 !== task && $0.number == number }) {
                throw Violation("Two tasks have the number \(number).")
            }
        }
    }

    func makeTask() -> KnownTask {
        lastTask += 1
        let isUpload = dice.chance(250)
        let shares = plan.has(.sharing) && !isUpload
        let resource = shares ? world.origins.shareResource() : world.origins.makeResource()
        var request = TransferRequest(url: resource.url, method: isUpload ? dice.pick(["PUT", "POST"]) : "GET")
        let variant = shares ? Dice.stores.below(3) : 0
        if variant > 0 { request.headers.append("X-A", "\(variant)") }
        if shares, Dice.stores.chance(800) { request.cachePolicy = Dice.stores.pick(CachePolicy.allCases) }
        var specification = TaskSpecification(kind: isUpload ? .upload : .download, request: request)
        specification.clientTaskId = "t\(number)-\(lastTask)"
        specification.priority = dice.pick([0.1, 0.5, 1])
        var body: [UInt8]?
        var expectsOther = false
        if isUpload {
            body = Resource.bytes(seed: -lastTask - 100 * number, count: dice.pick([0, 10, 5000, 60_000]))
        } else {
            let isLong = resource.length > 1_000_000
            if isLong, dice.chance(plan.has(.longReads) ? 800 : 500) { specification.segments = .count(3) }
            if dice.chance(100) {
                expectsOther = dice.chance(300)
                let first = Resource.Representation(version: 1, variant: resource.variant(variant))
                specification.expectedDigest = ContentDigest(
                    algorithm: .sha256, value: (expectsOther ? Digest.of([1]) : resource.digest(first)).hexadecimal)
            }
            if dice.chance(150), !plan.has(.nodes) {
                specification.destination = Destination(
                    root: "root", path: "d\(number)/f\(lastTask)", replace: dice.chance(500))
            } else if plan.has(.objects), Dice.stores.chance(200) {
                var destination = ObjectDestination()
                (destination.bucket, destination.key) = (ObjectHost.name, "d\(number)/f\(lastTask)")
                destination.replace = Dice.stores.chance(500)
                specification.destinationObject = destination
            }
            if dice.chance(60) { specification.maximumContentLength = 50_000 }
        }
        if dice.chance(80) { specification.confirmBeforeStart = true }
        if dice.chance(80) { specification.earliestBeginDate = world.clock + .milliseconds(Int64(dice.below(20_000))) }
        if dice.chance(80) { specification.failOnHTTPError = true }
        var source = body.map { TaskOrder.Body.bytes($0, mediaType: "application/octet-stream") }
        if isUpload, dice.chance(500), let stored = bodies.randomElement(using: dice) {
            (body, source) = (stored.bytes, .stored(stored.id))
        }
        let order = TaskOrder(specification: specification, isSuspended: dice.chance(100), body: source)
        return KnownTask(
            order, resource, body: body, expectsOther: expectsOther, variant: variant, askedAt: world.simulator.now)
    }

    func record(of task: KnownTask, _ name: String) async throws -> TaskRecord? {
        guard let number = task.number else { return nil }
        return try await attempt(name) { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.task(number, in: session.id)
        }
    }

    func look(at task: KnownTask) async throws {
        guard let found = try await record(of: task, "look at \(task.name)") else { return }
        try check(task, found)
        if plan.has(.sharing) || plan.has(.objects) { try await compare(task, found) }
    }

    /// Reads the content of a task, and compares it with its digest.
    func compare(_ task: KnownTask, _ found: TaskRecord) async throws {
        guard let content = readable(task, found) else { return }
        let bytes: [UInt8]?
        do {
            bytes = try await attempt("read \(task.name)", Self.reading(found))
        } catch DomainError.contentExpired where task.isClaimed || plan.has(.clockJumps) {
            return
        }
        if let bytes { try compare(bytes, with: content, of: task) }
    }

    /// The content of a download that can be read.
    func readable(_ task: KnownTask, _ found: TaskRecord) -> ContentRecord? {
        guard task.isDownload, !task.isClaimed, let content = found.content, !content.isExpired else { return nil }
        return content
    }

    func compare(_ bytes: [UInt8], with content: ContentRecord, of task: KnownTask) throws {
        guard content.digest.algorithm != .sha256 || Digest.of(bytes).hexadecimal == content.digest.value else {
            throw Violation(
                "The bytes of \(task.name) are not those of its digest: \(bytes.count) of \(content.length).")
        }
        trace.met("content compared")
    }

    static func reading(_ found: TaskRecord) -> @Sendable (Service, SessionRecord?) async throws -> [UInt8] {
        { service, _ in
            let (content, source) = try await service.content(of: found)
            return try await bytes(of: source, length: content.length, service)
        }
    }

    static func bytes(of source: ContentSource, length: Int64, _ service: Service) async throws -> [UInt8] {
        switch source {
        case .bucket(let objects):
            let reading = try await service.read(objects, 0..<length)
            let bytes = Locked<[UInt8]>([])
            try await reading.copy { piece in bytes.withLock { $0 += piece } }
            return bytes.withLock { $0 }
        case .here(.bytes(let bytes)): return bytes
        case .here(.file(let file)):
            return try [UInt8](unsafeUninitializedCapacity: Int(file.size())) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
            }
        }
    }

    func command(_ command: TaskCommand, _ task: KnownTask) async throws {
        guard let record = try await record(of: task, "find \(task.name)") else { return }
        do {
            _ = try await attempt("\(command) \(task.name)") { service, _ in
                try await service.command(command, task: record.id)
            }
        } catch DomainError.taskCompleted {}
    }

    func cancel(_ task: KnownTask) async throws {
        guard let record = try await record(of: task, "find \(task.name)") else { return }
        if task.cancel == .no { task.cancel = .asked }
        do {
            let resumes = dice.chance(200) && task.isDownload
            let outcome = try await attempt("cancel \(task.name)") { service, _ -> Outcome? in
                if resumes {
                    _ = try await service.cancelProducingResumeData(record)
                    return .cancelled
                }
                return try await service.command(.cancel(reason: nil), task: record.id).outcome
            }
            if outcome == .some(.some(.cancelled)) { task.cancel = .confirmed }
        } catch DomainError.taskCompleted {}
    }

    /// Compares a task with the client's record.
    func check(_ task: KnownTask, _ found: TaskRecord) throws {
        trace.met("state \(found.phase?.rawValue ?? found.outcome?.rawValue ?? "")")
        if found.specification.clientTaskId ?? "" != task.name {
            throw Violation(
                "The task \(found.number) is \(found.specification.clientTaskId ?? ""), and was \(task.name).")
        }
        if task.cancel == .confirmed, found.outcome != .cancelled {
            throw Violation("The cancellation of \(task.name) was confirmed, and it is \(found.life).")
        }
        guard let outcome = found.outcome else { return }
        if outcome == .cancelled, task.cancel == .no, !mayCancel, !world.mayCancel {
            throw Violation("\(task.name) was cancelled by no client.")
        }
        if let seen = log.outcomes[found.number], seen != outcome {
            throw Violation("\(task.name) ended \(outcome), and its event says \(seen).")
        }
        if task.expectsOther, outcome == .succeeded {
            throw Violation("\(task.name) succeeded with another digest than expected.")
        }
        guard outcome == .succeeded else {
            if outcome == .failed { trace.met("failed \(found.result?.error?.code.rawValue ?? 0)") }
            return
        }
        try checkReuse(task, found)
        // A cut of a body without a length is not detectable, and 204 has no body.
        if task.mayBeShort || found.result?.response?.statusCode == 204 { return }
        if let body = task.body {
            guard task.resources.contains(where: { $0.received.contains(body) }) else {
                throw Violation("The upload \(task.name) succeeded, and nothing was received.")
            }
        } else if let digest = found.result?.contentDigest, digest.algorithm == .sha256 {
            guard let bytes = [UInt8](hexadecimal: digest.value), task.has(digest: bytes) else {
                throw Violation(
                    "The content of \(task.name) is no version of its resource: \(found.result?.contentLength ?? -1) bytes."
                )
            }
        }
    }
}
