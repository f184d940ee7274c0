import Base
import CSimulation
import Core
import Files
import Formats
import Launches
import SQL
import Service
import Store

/// A task as its client knows it.
final class KnownTask {
    enum Wish { case no, asked, confirmed }

    var order: TaskOrder
    /// Where its bytes may come from: the last one is that of its present request.
    var resources: [Resource]
    let body: [UInt8]?
    var number: Int64?
    var cancel = Wish.no
    var isClaimed = false
    /// Whether the digest that the client expects is another one.
    let expectsOther: Bool

    init(_ order: TaskOrder, _ resource: Resource, body: [UInt8]?, expectsOther: Bool) {
        self.order = order
        resources = [resource]
        self.body = body
        self.expectsOther = expectsOther
    }

    var mayBeShort: Bool { resources.contains(where: \.mayBeShort) }

    /// Whether these bytes are a version of a resource.
    func has(digest: [UInt8]) -> Bool { resources.contains { $0.version(of: digest) != nil } }

    var name: String { order.specification.clientTaskId ?? "" }
    var isDownload: Bool { order.specification.kind == .download }
}

/// A client with a session of its own: it calls the program at random, repeats what was lost, and compares every answer
/// with what was confirmed to it before.
final class Client: @unchecked Sendable {
    let number: Int
    private let world: World
    private let dice = Dice.clients
    private var session: SessionRecord?
    private var tasks: [KnownTask] = []
    private var log = EventLog()
    /// Confirmed, and asked for.
    private var (acknowledged, acknowledging): (Int64, Int64) = (0, 0)
    private var configuration = SessionConfiguration()
    private(set) var isDone = false
    /// The session was invalidated: new tasks are refused.
    private var mayCancel = false
    private var isInvalidated = false
    private var lastTask = 0
    private var epoch: Int64?
    private var bodies: [(id: String, bytes: [UInt8])] = []

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
    }

    private var trace: Trace { world.trace }
    private var plan: Plan { world.plan }
    private var identifier: String { "s\(number)" }

    // MARK: Calls

    /// Calls the program once. Nil if the answer was lost or refused for a passing reason; the call may have had its effect.
    private func attempt<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Service, SessionRecord?) async throws -> Value
    ) async throws -> Value? {
        let session = session
        do {
            let value = try await world.call(of: world.app) { service, _ in try await body(service, session) }
            trace.note("client \(number) \(name): done")
            return value
        } catch is Life.Lost {
            trace.note("client \(number) \(name): lost")
        } catch let error as ServiceError where error == .insufficientStorage || error == .shuttingDown {
            trace.note("client \(number) \(name): \(error)")
        } catch let error as SQLError where world.mayFail(error) {
            trace.note("client \(number) \(name): \(error)")
        } catch let error as SystemError where world.mayFail(error) {
            trace.note("client \(number) \(name): \(error)")
        }
        await world.simulator.pause(dice.between(20, 2000))
        return nil
    }

    /// Calls until there is an answer. The call has to be one that may be repeated.
    private func insist<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Service, SessionRecord?) async throws -> Value
    ) async throws -> Value {
        while true { if let value = try await attempt(name, body) { return value } }
    }

    // MARK: Living

    func live() async {
        do {
            try await open()
            while world.isTroubled {
                await world.simulator.pause(dice.between(5, 3000))
                try await act()
            }
            try await finish()
        } catch {
            trace.fail("client \(number): \(error)")
        }
        isDone = true
    }

    private func open() async throws {
        configuration.retryPolicy = dice.pick([
            .robust, .apple, .custom(RetryPolicy.Settings(initialDelay: 0.1, maximumDelay: 2)),
        ])
        configuration.timeoutIntervalForRequest = dice.pick([2, 10, 60])
        configuration.sessionSendsLaunchEvents = dice.chance(800)
        configuration.httpMaximumConnectionsPerHost = dice.pick([1, 2, 6])
        if dice.chance(100) { configuration.bandwidthLimit = Int64(dice.pick([20_000, 200_000])) }
        if dice.chance(200) { configuration.authenticationChallenges = .performDefaultHandling }
        if dice.chance(100) { configuration.stallInterval = 5 }
        let (app, configuration, identifier) = (world.app, configuration, identifier)
        session = try await insist("open session") { service, _ in
            try await service.openSession(
                identifier, app: app, configuration: configuration, description: nil, onlyCreates: false, recording: nil
            ).session
        }
    }

    private func act() async throws {
        let known = tasks.filter { $0.number != nil }
        switch dice.below(18) {
        case 0, 1, 2, 3: if lastTask < plan.tasks { try await create() }
        case 4: if plan.has(.commands), let task = known.randomElement(using: dice) { try await cancel(task) }
        case 5:
            if plan.has(.commands), let task = known.randomElement(using: dice) { try await command(.suspend, task) }
        case 6: if plan.has(.commands), let task = known.randomElement(using: dice) { try await command(.resume, task) }
        case 7: try await readEvents()
        case 8: try await acknowledge()
        case 9: if let task = known.randomElement(using: dice) { try await look(at: task) }
        case 10: try await answerQuestions(kindly: false)
        case 11: if plan.has(.retries), let task = known.randomElement(using: dice) { try await retry(task) }
        case 12: if plan.has(.commands), let task = known.randomElement(using: dice) { try await change(task) }
        case 13: if plan.has(.commands), let task = known.randomElement(using: dice) { try await claim(task) }
        case 14: if plan.has(.attachments) { try await attach() }
        case 15: if plan.has(.sessions), dice.chance(80) { try await invalidate() }
        case 16: if plan.has(.bodies) { try await storeBody() }
        case 17: if plan.has(.apps), dice.chance(200) { try await world.changeApp(dice.below(4)) }
        default: try await handleLaunch()
        }
    }

    // MARK: Tasks

    private func create() async throws {
        guard !isInvalidated else { return }
        let count = min(plan.tasks - lastTask, dice.chance(200) ? 1 + dice.below(4) : 1)
        let made = (0..<count).map { _ in makeTask() }
        tasks += made
        let orders = made.map(\.order)
        let isRepeated = dice.chance(100)
        if let created = try await attempt("create \(made.map(\.name))", Self.creating(orders)) {
            try note(created, made)
        } else if world.isTroubled, dice.chance(300) {
            // Its answer may come later: it is created, or not.
            return
        } else {
            try note(try await insist("create again \(made.map(\.name))", Self.creating(orders)), made)
        }
        if isRepeated { try note(try await insist("repeat \(made.map(\.name))", Self.creating(orders)), made) }
    }

    private static func creating(_ orders: [TaskOrder]) -> @Sendable (Service, SessionRecord?) async throws -> [Int64] {
        { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.createTasks(orders, in: session, recording: nil).map(\.task.number)
        }
    }

    private func note(_ numbers: [Int64], _ made: [KnownTask]) throws {
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

    private func makeTask() -> KnownTask {
        lastTask += 1
        let isUpload = dice.chance(250)
        let resource = world.origins.makeResource()
        let request = TransferRequest(url: resource.url, method: isUpload ? dice.pick(["PUT", "POST"]) : "GET")
        var specification = TaskSpecification(kind: isUpload ? .upload : .download, request: request)
        specification.clientTaskId = "t\(number)-\(lastTask)"
        specification.priority = dice.pick([0.1, 0.5, 1])
        var body: [UInt8]?
        var expectsOther = false
        if isUpload {
            body = Resource.bytes(seed: -lastTask - 100 * number, count: dice.pick([0, 10, 5000, 60_000]))
        } else {
            if resource.length > 1_000_000, dice.chance(500) { specification.segments = .count(3) }
            if dice.chance(100) {
                expectsOther = dice.chance(300)
                specification.expectedDigest = ContentDigest(
                    algorithm: .sha256, value: (expectsOther ? Digest.of([1]) : resource.digest(1)).hexadecimal)
            }
            if dice.chance(150) {
                specification.destination = Destination(
                    root: "root", path: "d\(number)/f\(lastTask)", replace: dice.chance(500))
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
        return KnownTask(order, resource, body: body, expectsOther: expectsOther)
    }

    private func record(of task: KnownTask, _ name: String) async throws -> TaskRecord? {
        guard let number = task.number else { return nil }
        return try await attempt(name) { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.task(number, in: session.id)
        }
    }

    private func look(at task: KnownTask) async throws {
        guard let found = try await record(of: task, "look at \(task.name)") else { return }
        try check(task, found)
    }

    private func command(_ command: TaskCommand, _ task: KnownTask) async throws {
        guard let record = try await record(of: task, "find \(task.name)") else { return }
        do {
            _ = try await attempt("\(command) \(task.name)") { service, _ in
                try await service.command(command, task: record.id)
            }
        } catch DomainError.taskCompleted {}
    }

    private func cancel(_ task: KnownTask) async throws {
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

    /// Compares a task with what is known of it.
    private func check(_ task: KnownTask, _ found: TaskRecord) throws {
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
            throw Violation("\(task.name) was cancelled by nobody.")
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
        // A body that nothing bounds cannot be known to be cut, and 204 has none.
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

    // MARK: Other commands

    /// Makes a new task of one that has ended.
    private func retry(_ task: KnownTask) async throws {
        guard let session, let found = try await record(of: task, "find \(task.name)"), found.state == .completed else {
            return
        }
        do {
            let number = try await attempt("retry \(task.name)") { service, _ in
                try await service.retry(found, in: session, recording: nil).task.number
            }
            guard let number else { return }
            trace.met("retried")
            var order = task.order
            order.specification.clientTaskId = nil
            let again = KnownTask(order, task.resources[0], body: task.body, expectsOther: task.expectsOther)
            again.resources = task.resources
            again.number = number
            tasks.append(again)
        } catch DomainError.sessionInvalidated {} catch DomainError.bodyNotFound {}
    }

    /// Changes where a task's bytes come from, or its priority.
    private func change(_ task: KnownTask) async throws {
        guard let found = try await record(of: task, "find \(task.name)"), found.state != .completed else { return }
        var changes = TaskChanges()
        if task.isDownload, task.order.specification.expectedDigest == nil, dice.chance(500) {
            let resource = world.origins.makeResource()
            task.resources.append(resource)
            changes.request = TransferRequest(url: resource.url, method: "GET")
            changes.origin = "http://o\(resource.origin).test"
        } else {
            changes.priority = dice.pick([0, 0.3, 1])
        }
        let given = changes
        do {
            let isMade = try await attempt("change \(task.name)") { service, _ in
                try await service.changeTask(found.id, given, ifRevision: nil).revision
            }
            if isMade != nil { trace.met("task changed") }
        } catch DomainError.taskCompleted {} catch is Refused {}
    }

    private func claim(_ task: KnownTask) async throws {
        guard let found = try await record(of: task, "find \(task.name)"), found.content != nil else { return }
        task.isClaimed = true
        do {
            _ = try await attempt("claim \(task.name)") { service, _ in
                try await service.claimContent(of: found.id, expecting: nil)
            }
            trace.met("content claimed")
        } catch is DomainError {}
    }

    private func attach() async throws {
        let event: Attachment.Event =
            switch dice.below(4) {
            case 0: .take(ttl: .seconds(5), launchId: nil, takeover: dice.chance(300))
            case 1: .take(ttl: .seconds(30), launchId: nil, takeover: true)
            case 2: .renew(epoch: epoch ?? 1, ttl: .seconds(10))
            default: .release(epoch: epoch ?? 1)
            }
        do {
            let found = try await attempt("attachment \(event)") { service, session in
                guard let session else { throw DomainError.notFound }
                return try await service.attach(event, to: session.id).attachment?.epoch
            }
            if case .take = event, let found { epoch = found }
            trace.met("attachment")
        } catch DomainError.sessionInUse {} catch DomainError.attachmentFenced {}
    }

    private func invalidate() async throws {
        let cancels = dice.chance(500)
        if cancels { mayCancel = true }
        isInvalidated = true
        _ = try await attempt("invalidate, cancels \(cancels)") { service, session in
            guard let session else { throw DomainError.notFound }
            return cancels
                ? try await service.invalidateAndCancel(session.id).revision
                : try await service.finishTasksAndInvalidate(session.id).revision
        }
        trace.met("session invalidated")
    }

    /// Stores a body for uploads, piece by piece.
    private func storeBody() async throws {
        let bytes = Resource.bytes(
            seed: 7_000 + number * 100 + bodies.count, count: dice.pick([100, 65_536, 70_000, 250_000]))
        let (app, dice, simulator) = (world.app, dice, world.simulator)
        let body = try await attempt("store body of \(bytes.count)") { service, _ in
            var rest = bytes[...]
            return try await service.receiveBody(BodyOrder(), app: app, recording: nil) {
                await simulator.pause(dice.between(0.1, 300))
                guard !rest.isEmpty else { return nil }
                defer { rest = rest.dropFirst(40_000) }
                return Array(rest.prefix(40_000))
            }
        }
        guard let body else { return }
        trace.met("body stored")
        guard body.length == Int64(bytes.count) else {
            throw Violation("A body of \(bytes.count) bytes has \(body.length).")
        }
        bodies.append((body.publicId, bytes))
    }

    // MARK: Events

    private func readEvents() async throws {
        let after = log.last
        let waits = dice.chance(300) && world.isTroubled
        let page: EventPage?
        do {
            page = try await readPage(after: after, waits: waits)
        } catch DomainError.eventsExpired(let oldest) {
            // The clock may have jumped beyond the hour for which acknowledged events are kept.
            let acknowledging = max(acknowledging, world.receiver.lastSeq(of: identifier))
            guard oldest - 1 <= acknowledging else {
                throw Violation("G1: events before \(oldest) are gone, and \(acknowledging) are acknowledged.")
            }
            trace.met("events expired")
            return log.skip(to: oldest - 1)
        }
        guard let page else { return }
        if let fault = log.take(page, trace) { throw Violation("session \(identifier): \(fault)") }
        if page.acknowledgedSeq < acknowledged {
            throw Violation("\(identifier) was acknowledged through \(acknowledged), and says \(page.acknowledgedSeq).")
        }
    }

    private func readPage(after: Int64, waits: Bool) async throws -> EventPage? {
        try await attempt("events after \(after)") { service, session in
            guard let session else { throw DomainError.notFound }
            if waits {
                return try await service.waitForEvents(
                    of: session.id, after: after, limit: 50, until: service.clock.monotonic() + 3000, isGone: { false })
            }
            return try await service.events(of: session.id, after: after, limit: 50)
        }
    }

    private func acknowledge() async throws {
        let seq = log.last
        guard seq > 0 else { return }
        acknowledging = max(acknowledging, seq)
        let epoch = epoch
        let session: SessionRecord?? = try await attempt("acknowledge \(seq)") { service, session in
            guard let session else { throw DomainError.notFound }
            do {
                return try await service.acknowledge(through: seq, epoch: epoch, in: session.id, ifRevision: nil)
            } catch DomainError.attachmentFenced { return nil }
        }
        if let found = session ?? nil {
            if found.acknowledgedSeq < seq {
                throw Violation("\(identifier) was acknowledged through \(seq), and says \(found.acknowledgedSeq).")
            }
            acknowledged = max(acknowledged, seq)
        }
    }

    // MARK: Questions and launches

    private func answerQuestions(kindly: Bool) async throws {
        if log.hasGaps, kindly {
            let app = world.app
            let open = try await attempt("open questions") { service, session in
                try await service.questions(
                    of: app, session: session?.id, states: [.open], ListSpan(), after: 0, limit: 100
                ).map(\.question.questionId)
            }
            for question in open ?? [] { log.giveBack(question) }
        }
        while let question = log.takeQuestion() {
            let app = world.app
            let isKind = kindly || dice.chance(700)
            let persistence = dice.pick([Credential.Persistence.none, .forSession, .permanent])
            let choice = dice.below(3)
            do {
                let answered = try await attempt("answer \(question)") { service, _ in
                    let record = try await service.question(question, app: app)
                    var answer = Answer()
                    if record.question.protectionSpace == nil {
                        answer.disposition = isKind ? .continueLoading : .cancel
                    } else if isKind {
                        answer.disposition = .useCredential
                        answer.credential = Credential(
                            user: Origins.user, password: Origins.password, persistence: persistence)
                    } else {
                        answer.disposition =
                            [.performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace][choice]
                    }
                    return try await service.answer(question, app: app, with: answer)
                }
                // Some dispositions cancel the task.
                if !isKind { mayCancel = true }
                if answered == nil { log.giveBack(question); return }
                trace.met("question answered")
            } catch DomainError.questionAnswered {} catch DomainError.notFound {}
        }
    }

    private func handleLaunch() async throws {
        guard let launch = world.receiver.take() else { return }
        let app = world.app
        do {
            _ = try await world.call(of: app) { _, launches in
                try await launches.answer(launch, app: app, with: .completed(through: nil), epoch: nil)
            }
            trace.met("launch completed")
        } catch is Life.Lost {} catch is DomainError {} catch let error as SQLError where world.mayFail(error) {}
    }

    // MARK: The end

    /// The origins behave, and nothing crashes any more: everything ends.
    private func finish() async throws {
        for task in tasks where task.number == nil && !isInvalidated {
            // A date of before a jump of the clock may be far away now.
            task.order.specification.earliestBeginDate = nil
            try note(try await insist("create at last \(task.name)", Self.creating([task.order])), [task])
        }
        let deadline = world.simulator.now + 1_200_000
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
            if left.isEmpty, try await hasEnded() { break }
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
        for task in tasks { try await examine(task) }
        try await checkCounts()
        try await readEvents()
        try await acknowledge()
        try await delete()
    }

    /// Tasks without a didComplete. Where events are gone, the tasks themselves tell.
    private func unfinished() async throws -> [KnownTask] {
        var left = tasks.filter { task in task.number.map { log.outcomes[$0] == nil } ?? false }
        guard log.hasGaps else { return left }
        for task in left {
            if try await record(of: task, "see \(task.name)")?.outcome != nil { left.removeAll { $0 === task } }
        }
        return left
    }

    /// Whether the session counts no unfinished task: there may be some whose creation was lost.
    private func hasEnded() async throws -> Bool {
        try await insist("count") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.store.session(session.id).counts.unfinished == 0
        }
    }

    private func beginNow(_ task: KnownTask) async throws {
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

    private func examine(_ task: KnownTask) async throws {
        guard let number = task.number else { return }
        let found = try await insist("examine \(task.name)") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.task(number, in: session.id)
        }
        try check(task, found)
        trace.met("outcome \(found.outcome?.rawValue ?? "none")")
        guard let outcome = found.outcome else {
            throw Violation("\(task.name) has a didComplete, and is \(found.life).")
        }
        if plan.faults.isEmpty, !task.expectsOther, task.order.specification.maximumContentLength == nil,
            outcome != .succeeded
        {
            throw Violation(
                "\(task.name) met no fault, and ended \(outcome): \(String(describing: found.result?.error)).")
        }
        if let destination = task.order.specification.destination {
            return try checkDestination(task, destination, found)
        }
        guard outcome == .succeeded, task.isDownload, let content = found.content, !content.isExpired, !task.isClaimed
        else { return }
        let bytes = try await insist("read \(task.name)") { service, _ in
            switch try await service.content(of: found).source {
            case .bucket: [UInt8]()
            case .here(.bytes(let bytes)): bytes
            case .here(.file(let file)):
                try [UInt8](unsafeUninitializedCapacity: Int(file.size())) { buffer, count in
                    count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
                }
            }
        }
        guard Digest.of(bytes).hexadecimal == content.digest.value || content.digest.algorithm != .sha256 else {
            throw Violation(
                "The bytes of \(task.name) are not those of its digest: \(bytes.count) of \(content.length).")
        }
        trace.met("content compared")
    }

    private func checkDestination(_ task: KnownTask, _ destination: Destination, _ found: TaskRecord) throws {
        let outcome = found.outcome
        let isUnknown = task.mayBeShort || found.result?.response?.statusCode == 204
        let bytes = world.file("root/\(destination.path)")
        if outcome == .succeeded {
            guard let bytes, isUnknown || task.has(digest: Digest.of(bytes)) else {
                throw Violation(
                    "\(task.name) succeeded, and its destination has \(bytes.map { "\($0.count) other bytes" } ?? "no file")."
                )
            }
            trace.met("destination compared")
        } else if outcome == .cancelled || outcome == .failed, bytes != nil,
            !tasks.contains(where: { $0 !== task && $0.order.specification.destination == destination })
        {
            throw Violation("\(task.name) ended \(found.life.state), and there is a file at its destination.")
        }
    }

    private func checkCounts() async throws {
        let found = try await insist("session") { service, session in
            guard let session else { throw DomainError.notFound }
            return try await service.store.session(session.id)
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

    private func delete() async throws {
        do {
            _ = try await insist("delete session") { service, session in
                guard let session else { throw DomainError.notFound }
                return try await service.deleteSession(session.id)
            }
        } catch DomainError.notFound {}
    }
}

extension Array {
    fileprivate func randomElement(using dice: Dice) -> Element? { isEmpty ? nil : self[dice.below(count)] }
}
