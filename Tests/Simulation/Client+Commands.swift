import Base
import CSimulation
import Core
import Files
import Formats
import Launches
import SQL
import Service
import Store

/// The commands of a client except the creation of tasks.
extension Client {
    // MARK: Other commands

    /// Retries an ended task.
    func retry(_ task: KnownTask) async throws {
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
            let again = KnownTask(
                order, task.resources[0], body: task.body, expectsOther: task.expectsOther, variant: task.variant,
                askedAt: world.simulator.now)
            again.resources = task.resources
            again.number = number
            tasks.append(again)
        } catch DomainError.sessionInvalidated {} catch DomainError.bodyNotFound {}
    }

    /// Changes the source of a task's bytes, or its priority.
    func change(_ task: KnownTask) async throws {
        guard let found = try await record(of: task, "find \(task.name)"), found.state != .completed else { return }
        var changes = TaskChanges()
        if task.isDownload, task.order.specification.expectedDigest == nil, dice.chance(500) {
            let resource = world.origins.makeResource()
            task.resources.append(resource)
            changes.request = TransferRequest(url: resource.url, method: "GET")
            changes.origin = "http://o\(resource.origin).test"
        } else if Dice.extras.chance(500) {
            changes.priority = dice.pick([0, 0.3, 1])
        } else {
            changes.earliestBeginDate = .some(world.clock + .milliseconds(Int64(dice.below(20_000))))
        }
        try await change(task, found, changes)
    }

    private func change(_ task: KnownTask, _ found: TaskRecord, _ given: TaskChanges) async throws {
        do {
            let isMade = try await attempt("change \(task.name)") { service, _ in
                try await service.changeTask(found.id, given, ifRevision: nil).revision
            }
            if isMade != nil { trace.met("task changed") }
        } catch DomainError.taskCompleted {} catch is Refused {}
    }

    /// Waits until a task is in a phase of few tasks, and calls for it then.
    func ambush(_ task: KnownTask) async throws {
        let extras = Dice.extras
        let phase = extras.pick([
            TaskLife.Phase.quarantined, .quarantined, .waitingForDisk, .following, .waitingForConnectivity,
        ])
        do {
            while world.isTroubled {
                await world.simulator.pause(extras.between(20, 400))
                guard let found = try await record(of: task, "watch \(task.name)") else { continue }
                if found.state == .completed { return }
                guard found.phase == phase else { continue }
                trace.met("ambush \(phase.rawValue)")
                switch extras.below(4) {
                case 0: return try await cancel(task)
                case 1:
                    var changes = TaskChanges()
                    changes.earliestBeginDate = .some(world.clock + .milliseconds(Int64(extras.below(4000))))
                    try await change(task, found, changes)
                default:
                    try await command(.suspend, task)
                    await world.simulator.pause(extras.between(0, 2000))
                    try await command(.resume, task)
                }
            }
        } catch is DomainError {}
    }

    func claim(_ task: KnownTask) async throws {
        guard let found = try await record(of: task, "find \(task.name)"), found.content != nil else { return }
        task.isClaimed = true
        do {
            _ = try await attempt("claim \(task.name)") { service, _ in
                try await service.claimContent(of: found.id, expecting: nil)
            }
            trace.met("content claimed")
        } catch is DomainError {}
    }

    func attach() async throws {
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

    func invalidate() async throws {
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

    /// Stores a body for uploads, in pieces.
    func storeBody() async throws {
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

    func readEvents() async throws {
        let after = log.last
        let waits = dice.chance(300) && world.isTroubled
        let page: EventPage?
        do {
            page = try await readPage(after: after, waits: waits)
        } catch DomainError.eventsExpired(let oldest) {
            // The clock may have jumped beyond the hour of retention for acknowledged events.
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

    func readPage(after: Int64, waits: Bool) async throws -> EventPage? {
        try await attempt("events after \(after)") { service, session in
            guard let session else { throw DomainError.notFound }
            if waits {
                return try await service.waitForEvents(
                    of: session.id, after: after, limit: 50, until: service.clock.monotonic() + 3000, isGone: { false })
            }
            return try await service.events(of: session.id, after: after, limit: 50)
        }
    }

    func acknowledge() async throws {
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

    func answerQuestions(kindly: Bool) async throws {
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

    /// Starts a fetch, changes its interval, or redelivers a launch.
    func actOnLaunches() async throws {
        let (app, extras, choice) = (world.app, Dice.extras, Dice.extras.below(4))
        let known = world.receiver.launches.keys.sorted()
        let launch = try await exhausted(known) ?? known.randomElement(using: extras)
        do {
            let name: String? = try await world.call(of: app) { _, launches in
                switch choice {
                case 0: return try await launches.setRefreshInterval(.minimum, of: app).why
                case 1: return try await launches.simulateFetch(of: app).launchId
                default:
                    guard let launch else { return nil }
                    return try await launches.redeliver(launch, app: app).launchId
                }
            }
            trace.note("client \(number) launches \(choice): \(name ?? "")")
            trace.met("launches \(choice)")
        } catch is Life.Lost {} catch is DomainError {} catch let error as SQLError where world.mayFail(error) {}
    }

    /// One of the launches whose attempts have ended in vain.
    private func exhausted(_ known: [String]) async throws -> String? {
        let app = world.app
        for launch in known {
            let found = try? await world.call(of: app) { _, launches in try await launches.launch(launch, app: app) }
            if found?.state.phase == .exhausted, found?.kind != .performFetch { return launch }
        }
        return nil
    }

    /// Ends the background refresh.
    func endFetches() async throws {
        let app = world.app
        while true {
            do {
                _ = try await world.call(of: app) { _, launches in
                    try await launches.setRefreshInterval(.never, of: app)
                }
                return
            } catch is Life.Lost {} catch let error as SQLError where world.mayFail(error) {}
            await world.simulator.pause(100)
        }
    }

    func handleLaunch() async throws {
        guard let launch = world.receiver.take() else { return }
        let app = world.app
        do {
            let result = Dice.extras.pick(BackgroundRefresh.Result.allCases)
            _ = try await world.call(of: app) { _, launches in
                let isFetch = try await launches.launch(launch, app: app).kind == .performFetch
                return try await launches.answer(
                    launch, app: app, with: isFetch ? .fetched(result) : .completed(through: nil), epoch: nil)
            }
            trace.met("launch completed")
        } catch is Life.Lost {} catch is DomainError {} catch let error as SQLError where world.mayFail(error) {}
    }
}
