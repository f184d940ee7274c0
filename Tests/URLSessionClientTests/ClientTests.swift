import Base
import Foundation
import TestSupport
import Testing
import URLSessionClient
import Wire

/// The client against the service itself.
struct ClientTests {
    /// A service, an origin, and a client with the session `s`.
    final class House: Sendable {
        let service: ServiceProcess
        let origin: OriginServer
        let client: Client

        init(_ configuration: SessionConfiguration? = nil) async throws {
            origin = try OriginServer()
            // A free port that it keeps across restarts.
            let free = try Receiver()
            let port = free.port
            free.stop()
            service = try await ServiceProcess(["--listen", "127.0.0.1:\(port)"])
            client = Client(url: try #require(URL(string: "http://127.0.0.1:\(port)/")), key: "dev")
            _ = try await client.openSession("s", configuration: configuration)
        }

        func download(_ path: String, _ change: (inout TaskCreation) -> Void = { _ in }) async throws -> Int64 {
            var task = TaskCreation.download(TransferRequest(url: origin.url(path)))
            change(&task)
            return try await client.createTask(task, in: "s").taskIdentifier
        }
    }

    /// A Swift task that reads a stream until it is released.
    final class Reader: Sendable {
        private let log = Log()
        private let task: Task<Void, any Error>

        private actor Log {
            var events: [Event] = []
            func add(_ event: Event) { events.append(event) }
        }

        init(_ client: Client, _ session: String = "s", after seq: Int64? = nil) {
            task = Task { [log] in
                for try await event in client.stream(of: session, after: seq) { await log.add(event) }
            }
        }

        deinit { task.cancel() }

        var events: [Event] { get async { await log.events } }
        var kept: [Event] { get async { await log.events.filter { $0.seq != nil } } }
        func end() { task.cancel() }
        /// The result of the reading.
        var result: Result<Void, any Error> { get async { await task.result } }
    }

    @Test func `Cancelled calls all end, even as their responses arrive`() async throws {
        let origin = try OriginServer()
        origin.serve("/v1/sessions/s/tasks/1/content", .generated(seed: 1, length: 100))
        let client = Client(url: try #require(URL(string: origin.url("/"))), key: "dev")
        let start = ContinuousClock.now
        for _ in 0..<20 { _ = try await client.content(ofTask: 1, in: "s") }
        let usual = UInt32((ContinuousClock.now - start) / .microseconds(20))
        let (rounds, calls, ended) = (150, 6, Locked(0))
        for round in 1...rounds {
            for _ in 0..<calls {
                let call = Task {
                    _ = try? await client.content(ofTask: 1, in: "s")
                    ended.withLock { $0 += 1 }
                }
                // Threads of their own: a blocked one must not stop all Swift tasks.
                startThread {
                    usleep(UInt32.random(in: 0...4 * usual))
                    call.cancel()
                }
            }
            try await eventually("all calls of round \(round) end") { ended.withLock { $0 } == round * calls }
        }
    }

    @Test func `Streams may be abandoned at any moment`() async throws {
        let origin = try OriginServer()
        origin.serve("/healthz", .text("{}"))
        origin.serve("/v1/sessions/s/events", .text("data: {}\n\n"))
        let client = Client(url: try #require(URL(string: origin.url("/"))), key: "dev")
        let (rounds, readers, ended) = (40, 8, Locked(0))
        for round in 1...rounds {
            let before = origin.requests.count
            for number in 0..<readers {
                let reader = Task {
                    for try await _ in client.stream(of: "s") {}
                }
                Task {
                    _ = await reader.result
                    ended.withLock { $0 += 1 }
                }
                // Before, between and after the requests of this reader and of the others.
                Task {
                    _ = try? await origin.waitForRequests(before + number)
                    reader.cancel()
                }
            }
            try await eventually("all readers of round \(round) end") { ended.withLock { $0 } == round * readers }
        }
    }

    @Test func `A stream delivers stored and live events, and attaches`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let reader = Reader(house.client)
        try await eventually("it is attached") { try await house.client.session("s").attachment?.kind == "stream" }
        let number = try await house.download("/a")
        try await eventually("progress") {
            await reader.events.contains {
                $0.type == .taskDidWriteData && $0.seq == nil && $0.taskIdentifier == number
            }
        }
        #expect(await reader.kept.isEmpty)
        gate.open()
        try await eventually("the end") { await reader.kept.last?.type == .taskDidComplete }
        #expect(
            await reader.kept.map(\.type) == [
                .taskDidFinishDownloading, .taskDidFinishCollectingMetrics, .taskDidComplete,
            ])
        #expect(await reader.kept.map(\.seq) == [1, 2, 3])
        reader.end()
        try await eventually("its connection is closed") {
            try await house.client.session("s").attachment?.kind != "stream"
        }
        guard case .failure(let error) = await reader.result else { throw DeadlineExceeded("an ending") }
        #expect(error is CancellationError, "\(error)")
        let second = Reader(house.client, after: 2)
        try await eventually("the rest") { await second.kept.map(\.seq) == [3] }
    }

    @Test func `A stream resumes after a kill of the service, without a gap or a repetition`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("x"))
        let reader = Reader(house.client)
        for round in 1...3 {
            for _ in 0..<5 { _ = try await house.download("/a") }
            try await eventually("the events of round \(round)") { await reader.kept.count >= 15 * round - 8 }
            try await house.service.restart()
            try await eventually("all of round \(round)", within: .seconds(60)) {
                await reader.kept.count == 15 * round
            }
        }
        #expect(await reader.kept.compactMap(\.seq) == Array(1...45))
    }

    @Test func `A stream reports the service's refusal`() async throws {
        let house = try await House()
        for (client, session, code) in [
            (house.client, "absent", ProblemCode.notFound),
            (
                Client(url: try #require(URL(string: "http://127.0.0.1:\(house.service.port)")), key: "wrong"), "s",
                .unauthorized
            ),
        ] {
            let problem = await #expect(throws: Problem.self) {
                for try await _ in client.stream(of: session) {}
            }
            #expect(problem?.code == code)
        }
    }

    @Test func `Questions are listed and answered`() async throws {
        let house = try await House()
        house.origin.serve(
            "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        let receiver = try Receiver()
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        let number = try await house.download("/a") { $0.confirmBeforeStart = true }
        let first = try await eventually("a question") { try await house.client.questions(states: [.open]).items.first }
        #expect(first.type == .taskWillBeginDelayedRequest && first.taskIdentifier == number)
        #expect(try await house.client.questions(in: "absent").items.isEmpty)
        #expect(try await house.client.answer(Answer(.continueLoading), to: first.questionId).state == .answered)
        let problem = await #expect(throws: Problem.self) {
            try await house.client.answer(Answer(.cancel), to: first.questionId)
        }
        #expect(problem?.code == .questionAnswered)
        let second = try await eventually("a challenge") {
            try await house.client.questions(in: "s", states: [.open]).items.first
        }
        #expect(second.protectionSpace?.realm == "r" && second.type == .taskDidReceiveChallenge)
        let answer = Answer.useCredential(Credential(.password(user: "u", password: "p")))
        _ = try await house.client.answer(answer, to: second.questionId)
        #expect(try await house.client.task(number, in: "s", waiting: 60).outcome == .succeeded)
        #expect(try await house.client.question(second.questionId).disposition == .useCredential)
        #expect(try await house.client.questions(limit: 1).nextCursor != nil)
    }

    @Test func `An app is fetched, and reports the result`() async throws {
        let house = try await House()
        let receiver = try Receiver()
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        #expect(try await house.client.backgroundRefresh().minimumBackgroundFetchInterval == .never)
        let hourly = try await house.client.setMinimumBackgroundFetchInterval(.seconds(3600))
        #expect(hourly.minimumBackgroundFetchInterval == .seconds(3600) && hourly.nextFetchAt != nil)
        let launch = try await house.client.simulateFetch()
        let delivery = try await receiver.waitForDelivery(type: "app.performFetch")[0]
        #expect(delivery.id == launch.launchId)
        try await eventually("it is launched") {
            try await house.client.launches().items.first { $0.launchId == launch.launchId }?.state == .launched
        }
        #expect(try await house.client.completeFetch(launch.launchId, result: .noData).state == .completed)
        #expect(try await house.client.backgroundRefresh().history.map(\.result) == [.noData])
    }

    @Test func `A takeover of a lease fences its former holder`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("x"))
        let number = try await house.download("/a")
        _ = try await house.client.task(number, in: "s", waiting: 60)
        let old = try await house.client.attach(to: "s", ttl: 900)
        let refused = await #expect(throws: Problem.self) { try await house.client.attach(to: "s") }
        #expect(refused?.code == .sessionInUse)
        #expect(try await house.client.renewAttachment(old.epoch, to: "s").epoch == old.epoch)
        let new = try await house.client.attach(to: "s", takeover: true)
        for epoch in [old.epoch, nil] {
            let fenced = await #expect(throws: Problem.self) {
                try await house.client.acknowledge(through: new.lastSeq, in: "s", epoch: epoch)
            }
            #expect(fenced?.code == .attachmentFenced)
        }
        try await house.client.acknowledge(through: new.lastSeq, in: "s", epoch: new.epoch)
        try await house.client.detach(new.epoch, from: "s")
        #expect(try await house.client.attach(to: "s").acknowledgedSeq == new.lastSeq)
    }
}
