import Base
import Core
import Files
import Store
import TestSupport
import Testing
import TransferEngine

@testable import Service
@testable import TransferEngine
@testable import Transfers

@Suite(.serialized)
struct SchedulingTests {
    @Test
    func `A session has at most its own limit of transfers to a host`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 2 }
            let other = try await stage.session("other") { $0.httpMaximumConnectionsPerHost = 1 }
            let gate = Gate()
            stage.origin.serve("/a", .text("x"), always: [.hold(gate)])
            for _ in 0..<5 { try await stage.create(stage.order("/a"), in: session) }
            try await stage.create(stage.order("/a"), stage.order("/a"), in: other)
            try await eventually { gate.waiting == 3 }
            try await stays(for: .milliseconds(300)) { gate.waiting == 3 }
            let queued = try await stage.service.tasks(in: session.id, TaskFilter(), after: 0, limit: 10)
                .filter { $0.phase == .queued }
            #expect(queued.count == 3)
            #expect(stage.service.waitingReasons(of: queued[0], in: session).map(\.kind) == [.capacity])
            gate.open()
            try await eventually {
                try await stage.service.session(session.identifier, app: stage.app).counts.succeeded == 5
            }
            #expect(stage.origin.inFlight.peak == 3)
        }
    }

    @Test
    func `The service has at most the operator's limit of transfers to a host`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfersPerHost = 3 }) { stage in
            let gate = Gate()
            stage.origin.serve("/a", .text("x"), always: [.hold(gate)])
            for name in ["a", "b"] {
                let session = try await stage.session(name)
                for _ in 0..<4 { try await stage.create(stage.order("/a"), in: session) }
            }
            try await eventually { gate.waiting == 3 }
            try await stays(for: .milliseconds(300)) { gate.waiting == 3 }
            gate.open()
        }
    }

    @Test
    func `An app whose transfers never end leaves others a slot`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 18 }) { stage in
            let gate = Gate()
            stage.origin.serve("/endless", .text("x"), always: [.hold(gate)])
            stage.origin.serve("/quick", .text("x"))
            let endless = try await stage.session { $0.httpMaximumConnectionsPerHost = 100 }
            var last: TaskRecord?
            for _ in 0..<30 { last = try await stage.create(stage.order("/endless"), in: endless)[0] }
            try await eventually("it has its limit") { gate.waiting == 16 }
            try await stays(for: .milliseconds(300)) { gate.waiting == 16 }
            let waiting = try await stage.service.task(#require(last).number, in: endless.id)
            #expect(
                stage.service.waitingReasons(of: waiting, in: endless).map(\.detail) == [
                    "Other transfers come first: the few free slots are for apps with fewer transfers."
                ])
            let other = try await ServiceStage.app("other", of: stage.service)
            let task = try await stage.create(stage.order("/quick"), in: stage.session(of: other))[0]
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(gate.waiting == 16)
            gate.open()
        }
    }

    @Test
    func `An app that waits for its share gets a slot from one that holds more`() async throws {
        try await ServiceStage.run(configured: {
            $0.maximumTransfers = 4
            $0.slotPatience = .milliseconds(400)
        }) { stage in
            let gate = Gate()
            stage.origin.serve("/endless", .text("x"), always: [.hold(gate)])
            stage.origin.serve(
                "/resumable", Resource.generated(seed: 1, length: 500_000), always: [.holdBody(after: 400_000, gate)])
            stage.origin.serve("/quick", .text("x"))
            let endless = try await stage.session()
            let first = try await stage.create(
                stage.order("/resumable"), stage.order("/resumable"), stage.order("/endless"),
                stage.order("/endless"), in: endless)
            try await eventually("all slots are taken") { gate.waiting == 4 }
            let other = try await ServiceStage.app("other", of: stage.service)
            let session = try await stage.session(of: other)
            let task = try await stage.create(stage.order("/quick"), in: session)[0]
            #expect(try await stage.completed(task).outcome == .succeeded)
            gate.open()
            for task in first {
                #expect(try await stage.completed(task).outcome == .succeeded)
            }
            #expect(stage.origin.requests("/endless").count == 2)
            #expect(stage.origin.requests("/resumable").count == 3)
        }
    }

    @Test
    func `Suspended, changed and cancelled tasks release their slots once while many others end`()
        async throws
    {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 24 }) { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 12 }
            for path in ["old", "new"] {
                stage.origin.serve("/\(path)", .text(path), always: [.delayHead(.milliseconds(10))])
            }
            let orders = (0..<400).map { _ in stage.order("/old") }
            let tasks = try await stage.service.createTasks(orders, in: session, recording: nil).map(\.task)
            var changes = TaskChanges()
            changes.request = TransferRequest(url: stage.origin.url("/new"), method: "GET")
            try await withThrowingTaskGroup { [changes] group in
                for (index, task) in tasks.enumerated() where index.isMultiple(of: 2) {
                    group.addTask {
                        // Each task may have ended already.
                        if index.isMultiple(of: 3) {
                            _ = try? await stage.service.changeTask(task.id, changes, ifRevision: nil)
                        } else {
                            _ = try? await stage.service.command(.suspend, task: task.id)
                        }
                        _ = try? await stage.service.command(
                            index.isMultiple(of: 5) ? .cancel(reason: nil) : .resume, task: task.id)
                    }
                }
                try await group.waitForAll()
            }
            for task in tasks {
                let done = try await stage.completed(task)
                #expect(done.outcome == .succeeded || done.outcome == .cancelled, "\(done)")
                guard done.outcome == .succeeded else { continue }
                let path = done.specification.request.url.split(separator: "/").last.map(String.init) ?? ""
                #expect(done.content?.digest.value == Content.sha256(of: Array(path.utf8)), "\(done)")
            }
            try await eventually("all is let go of") { await stage.service.scheduler.isIdle }
            #expect(stage.service.scheduler.agenda.withLock { $0.freeSlots(.anything) } == 24)
            #expect(stage.origin.inFlight.peak <= 12)
        }
    }

    @Test
    func `A queued task reports other transfers only if they come first`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 2 }) { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 1 }
            let gate = Gate()
            for path in ["/a", "/b"] { stage.origin.serve(path, .text("x"), always: [.hold(gate)]) }
            let other = try OriginServer()
            other.serve("/c", .text("x"), always: [.hold(gate)])
            // The task's state between its creation and the scheduler's next scan.
            var task = try await stage.create(stage.order("/a", suspended: true), in: session)[0]
            task.life = .running(.queued, deadline: task.createdAt + .seconds(60))
            var elsewhere = task
            elsewhere.specification.request.url = other.url("/c")
            func reasons(_ task: TaskRecord) -> [WaitingReason.Kind] {
                stage.service.waitingReasons(of: task, in: session).map(\.kind)
            }
            #expect(reasons(task).isEmpty)
            try await stage.create(stage.order("/b"), in: session)
            try await eventually { gate.waiting == 1 }
            #expect(reasons(task) == [.capacity] && reasons(elsewhere).isEmpty)
            try await stage.create(stage.order("") { $0.request.url = other.url("/c") }, in: session)
            try await eventually { gate.waiting == 2 }
            #expect(reasons(task) == [.capacity] && reasons(elsewhere) == [.capacity])
            gate.open()
        }
    }

    @Test
    func `A new request during the move of the old content is honoured`() async throws {
        let root = TemporaryFolder()
        try await ServiceStage.run(configured: { $0.filesRoots = ["root": root.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/old", .text("old"))
            stage.origin.serve("/new", .text("new"))
            // All threads that move files are busy.
            let gate = Gate()
            for _ in 0..<16 {
                stage.service.engine.disk.run {
                    gate.pass()
                } then: { _ in
                }
            }
            let task = try await stage.create(
                stage.order("/old") { $0.destination = Destination(root: "root", path: "x", replace: true) },
                in: session)[0]
            try await eventually("the content is here") {
                stage.service.live.sample(task.id)?.phase == .finalizing
            }
            var changes = TaskChanges()
            changes.request = TransferRequest(url: stage.origin.url("/new"), method: "GET")
            let changed = try await stage.service.changeTask(task.id, changes, ifRevision: nil)
            #expect(changed.state == .running)
            _ = try await stage.task(task, reaches: .active)
            gate.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded && done.result?.response?.url == stage.origin.url("/new"))
            #expect(readFile(root.file("x")) == Array("new".utf8))
        }
    }

    @Test
    func `Deletions of cancelled uploads count as transfers`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 2 }) { stage in
            let server = try DraftServer()
            let session = try await stage.session { $0.bandwidthLimit = 2000 }
            let body = TaskOrder.Body.bytes(Content.bytes(seed: 1, length: 40_000), mediaType: "a/b")
            var uploads: [TaskRecord] = []
            for _ in 1...6 {
                let task = try await stage.create(
                    stage.order("", kind: .upload, body: body) { $0.request.url = server.url("/up") }, in: session)[0]
                try await eventually("the 104 is stored") {
                    try await stage.service.task(task.number, in: session.id).progress?.uploadURL != nil
                }
                _ = try await stage.service.command(.suspend, task: task.id)
                uploads.append(task)
            }
            server.deletions.close()
            for task in uploads { _ = try await stage.service.command(.cancel(reason: nil), task: task.id) }
            try await eventually("a deletion is sent") { server.deletions.waiting > 0 }
            try await stays("no more at once than transfers", for: .milliseconds(500)) { server.deletions.waiting <= 2 }
            server.deletions.open()
            try await eventually("all are deleted") { server.deleted.count == 6 }
        }
    }

    @Test
    func `The priority decides which task is next`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 1 }
            let gate = Gate()
            stage.origin.serve("/first", .text("x"), always: [.hold(gate)])
            for name in ["low", "middle", "high"] { stage.origin.serve("/\(name)", .text("x")) }
            try await stage.create(stage.order("/first"), in: session)
            try await eventually { gate.waiting == 1 }
            try await stage.create(
                stage.order("/low") { $0.priority = 0 }, stage.order("/middle"),
                stage.order("/high") { $0.priority = 1 },
                in: session)
            gate.open()
            try await stage.origin.waitForRequests(4)
            #expect(stage.origin.requests.map(\.path) == ["/first", "/high", "/middle", "/low"])
        }
    }

    @Test
    func `An origin that responds with 429 gets no requests from any session of the app`() async throws {
        try await ServiceStage.run { stage in
            let first = try await stage.session("first") { $0.retryPolicy = .robust }
            let second = try await stage.session("second")
            stage.origin.serve("/a", .text("x"), turns: [[.status(429, [("Retry-After", "5")])]])
            stage.origin.serve("/b", .text("x"))
            let slowed = try await stage.create(stage.order("/a"), in: first)[0]
            _ = try await stage.task(slowed, reaches: .retryWait)
            let other = try await stage.create(stage.order("/b"), in: second)[0]
            _ = try await stage.completed(other)
            _ = try await stage.completed(slowed)
            let requests = stage.origin.requests
            #expect(requests.count == 3)
            #expect(requests[1].time - requests[0].time >= .milliseconds(4900))
            #expect(requests[2].time - requests[0].time >= .milliseconds(4900))
        }
    }

    @Test
    func `Below the disk's floor no transfer begins`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("x"))
            let task = try await stage.create(stage.order("/a", suspended: true), in: session)[0]
            // The janitor measures every five seconds: the next lines end before that.
            stage.service.room.note(free: -1, size: .max, writtenBefore: 0)
            try await eventually("the janitor has looked") { stage.service.room.isAboveFloor }
            stage.service.room.note(free: -1, size: .max, writtenBefore: 0)
            #expect(throws: ServiceError.insufficientStorage) { try stage.service.requireRoom() }
            let queued = try await stage.service.command(.resume, task: task.id)
            #expect(queued.phase == .queued)
            #expect(stage.service.waitingReasons(of: queued, in: session).map(\.kind) == [.disk])
            // The janitor finds room, and makes the scheduler scan the queue.
            _ = try await stage.completed(task)
        }
    }

    @Test
    func `Conditions that end stop transfers, resumable, until they are good again`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20), turns: [[.holdBody(after: 400_000, gate)]])
            let live = stage.service.hub.open(session.id)
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await stage.received(400_000, of: task)
            var bad = Conditions()
            bad.network.reachable = false
            try await stage.service.declareConditions(bad, .available)
            let queued = try await stage.task(task, reaches: .queued)
            #expect(stage.service.waitingReasons(of: queued, in: session).map(\.kind) == [.connectivity])
            #expect(queued.progress?.attempts.attempts == 0)
            let other = try await stage.create(stage.order("/a"), in: session)[0]
            try await eventually("streams tell that both wait") {
                live.buffer.withLock { events in
                    events.filter { if case .isWaitingForConnectivity = $0.payload { true } else { false } }.map(\.task)
                }
                    == [task.id, other.id]
            }
            _ = try await stage.service.command(.cancel(reason: nil), task: other.id)
            try await stays(for: .milliseconds(200)) { stage.origin.requests.count == 1 }
            try await stage.service.declareConditions(Conditions(), .available)
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(stage.origin.requests[1].fields.contains("Range"))
        }
    }

    @Test
    func `Discretionary work waits for power until its patience ends`() async throws {
        try await ServiceStage.run { stage in
            var weak = Conditions()
            weak.power.external = false
            try await stage.service.declareConditions(weak, .available)
            stage.origin.serve("/a", .text("x"))
            let session = try await stage.session("long") { $0.isDiscretionary = true }
            let hasty = try await stage.session("short") {
                $0.isDiscretionary = true
                $0.timeoutIntervalForResource = 16
            }
            let start = ContinuousClock.now
            let waiting = try await stage.create(stage.order("/a"), in: session)[0]
            let short = try await stage.create(stage.order("/a"), in: hasty)[0]
            // Power is waived after a quarter of the resource timeout.
            #expect(try await stage.completed(short).outcome == .succeeded)
            #expect(try #require(stage.origin.requests.first).time - start >= .milliseconds(3900))
            #expect(try await stage.service.task(1, in: session.id).phase == .queued)
            try await stage.service.declareConditions(Conditions(), .available)
            _ = try await stage.completed(waiting)
        }
    }

    @Test
    func `The resource timeout ends a task during its transfer`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.timeoutIntervalForResource = 1 }
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20),
                turns: [[.holdBody(after: 300_000, gate)], [.holdBody(after: 0, gate)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.result?.error?.code == .timedOut)
            // The bytes that it has written are kept for its retry.
            _ = try await stage.service.retry(done, in: session, recording: nil)
            try await eventually("the retry sends its request") { stage.origin.requests("/a").count == 2 }
            #expect(stage.origin.requests("/a")[1].fields["Range"] == "bytes=300000-")
        }
    }

    @Test
    func `The idle timeout ends the attempt, never the task`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.timeoutIntervalForRequest = 2 }
            stage.origin.serve("/a", .generated(seed: 1, length: 500_000), turns: [[.stall(after: 200_000)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.result?.progress.attempts.attempts == 2)
        }
    }

    @Test
    func `A full service is idle while it waits, and a due retry causes no repeated scans`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 1 }) { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve("/broken", .text("x"), always: [.noAnswer()])
            stage.origin.serve("/slow", .text("x"), always: [.hold(gate)])
            let broken = try await stage.create(stage.order("/broken"), in: session)[0]
            let slow = try await stage.create(stage.order("/slow"), in: session)[0]
            try await eventually { gate.waiting == 1 }
            _ = try await stage.task(broken, reaches: .queued)
            let before = await stage.service.scheduler.commits.begun
            try await stays(for: .milliseconds(500)) { gate.waiting == 1 }
            let turns = await stage.service.scheduler.commits.begun - before
            #expect(turns <= 2)
            stage.origin.serve("/broken", .text("x"))
            gate.open()
            _ = try await stage.completed(slow)
            #expect(try await stage.completed(broken).outcome == .succeeded)
        }
    }

    @Test
    func `A settlement that cannot be stored fails its own task and no other`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve("/a", .text("x"), always: [.hold(gate)])
            let tasks = try await stage.create(stage.order("/a"), stage.order("/a"), in: session)
            try await eventually { gate.waiting == 2 }
            // A duplicate question breaks the second settlement.
            for task in tasks {
                stage.service.inbox.tell(
                    .settled(
                        Settlement(
                            task: task.id,
                            .asked(
                                Question(kind: .delayedRequest), questionId: "twice",
                                deadline: stage.service.clock.now + .seconds(60), TaskProgress()))))
            }
            _ = try await stage.task(tasks[0], reaches: .awaitingAnswer)
            let failed = try await stage.completed(tasks[1])
            #expect(failed.result?.error?.code == .unknown)
            gate.open()
        }
    }

    @Test
    func `A task with a begin question starts after its answer`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("x"))
            let task = try await stage.create(stage.order("/a") { $0.confirmBeforeStart = true }, in: session)[0]
            // Promptly: no other event wakes the scheduler.
            let asked = try await stage.task(task, reaches: .awaitingAnswer)
            #expect(asked.progress?.attempts.attempts == 0)
            guard case .question(let question)? = try await stage.events(session).first?.payload else {
                throw Unexpected()
            }
            #expect(question.question.kind == .delayedRequest)
            #expect(stage.origin.requests.isEmpty)
            _ = try await stage.service.answer(
                question.questionId, app: stage.app, with: Answer(disposition: .continueLoading))
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(stage.origin.requests.count == 1)
        }
    }

    @Test
    func `A credential of an answer replaces the field of the request`() async throws {
        try await ServiceStage.run(webhook: "https://app.example/hook") { stage in
            let session = try await stage.session()
            let answer = Credential(user: "u", password: "p")
            stage.origin.serve(
                "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
            let task = try await stage.create(
                stage.order("/a") { $0.request.headers.append("Authorization", "Basic b2xkOm9sZA==") }, in: session)[0]
            _ = try await stage.task(task, reaches: .awaitingAnswer)
            guard case .question(let question)? = try await stage.events(session).last?.payload else {
                throw Unexpected()
            }
            _ = try await stage.service.answer(
                question.questionId, app: stage.app, with: Answer(disposition: .useCredential, credential: answer))
            #expect(try await stage.completed(task).outcome == .succeeded)
            #expect(stage.origin.requests.map { $0.fields["Authorization"] } == ["Basic b2xkOm9sZA==", "Basic dTpw"])
        }
    }

    @Test
    func `A client that has just left can still answer a challenge`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let challenge = Misbehaviour.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
            stage.origin.serve("/a", .text("x"), turns: [[challenge], [challenge]])
            let unattended = try await stage.create(stage.order("/a"), in: session)[0]
            #expect(try await stage.completed(unattended).outcome == .httpError)
            try await stage.service.attached(to: session.id, .wait) {}
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            _ = try await stage.task(task, reaches: .awaitingAnswer)
        }
    }

    @Test
    func `A challenge becomes a question, and the credential of the answer is used`() async throws {
        try await ServiceStage.run(webhook: "https://app.example/hook") { stage in
            let session = try await stage.session()
            let challenge = Misbehaviour.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "no")
            stage.origin.serve("/a", .text("x"), turns: [[challenge], [challenge]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            for failures in 0..<2 {
                _ = try await stage.task(task, reaches: .awaitingAnswer)
                guard case .question(let question)? = try await stage.events(session).last?.payload else {
                    throw Unexpected()
                }
                #expect(question.question.previousFailureCount == failures)
                #expect(question.question.protectionSpace?.realm == "r")
                #expect(question.question.failureResponse?.statusCode == 401)
                _ = try await stage.service.answer(
                    question.questionId, app: stage.app,
                    with: Answer(
                        disposition: .useCredential, credential: Credential(user: "u", password: "p\(failures)")))
            }
            #expect(try await stage.completed(task).outcome == .succeeded)
            let sent = stage.origin.requests.map { $0.fields["Authorization"] }
            #expect(sent[0] == nil)
            #expect(sent[1] != nil && sent[2] != nil && sent[1] != sent[2])
        }
    }

    @Test
    func `Without questions the challenge is the response`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("x"), always: [.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            #expect(try await stage.completed(task).outcome == .httpError)
        }
    }

    @Test
    func `Bandwidth is shared among the transfers of a session`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.bandwidthLimit = 400_000 }
            for name in ["a", "b"] { stage.origin.serve("/\(name)", .generated(seed: 1, length: 300_000)) }
            let start = ContinuousClock.now
            let tasks = try await stage.create(stage.order("/a"), stage.order("/b"), in: session)
            for task in tasks { _ = try await stage.completed(task) }
            // 600,000 bytes at 400,000 a second, minus the first burst of one second.
            #expect(ContinuousClock.now - start > .milliseconds(400))
        }
    }

    @Test
    func `Two thousand small downloads all arrive`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 32 }
            stage.origin.serve("/a", .generated(seed: 1, length: 1000))
            let orders = (0..<2000).map { _ in stage.order("/a") }
            _ = try await stage.service.createTasks(orders, in: session, recording: nil)
            try await eventually(within: .seconds(60)) {
                try await stage.service.session("s", app: stage.app).counts.succeeded == 2000
            }
            let page = try await stage.service.store.sessions.events(
                of: session.id, after: 0, limit: 10_000, maximumBytes: .max)
            #expect(page.events.count == 6000)
            #expect(page.isFinished)
            let app = try await stage.service.app(stage.app)
            #expect(app.unfinishedTasks == 0)
        }
    }
}
