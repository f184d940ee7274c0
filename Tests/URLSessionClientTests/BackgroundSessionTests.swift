import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

@testable import URLSessionClient

/// The classes in Apple's shape against the service itself.
struct BackgroundSessionTests {
    typealias House = ClientTests.House

    /// A new session.
    static func session(
        _ house: House, _ delegate: any BackgroundSessionDelegate, identifier: String = "bg",
        configuration: SessionConfiguration = SessionConfiguration()
    ) -> BackgroundSession {
        BackgroundSession(
            identifier: identifier, configuration: configuration, client: house.client, delegate: delegate)
    }

    static func url(_ house: House, _ path: String) throws -> URL { try #require(URL(string: house.origin.url(path))) }

    @Test func `A download is created by resume, logged in order, and its file exists during the call`()
        async throws
    {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a.bin", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        let task = session.downloadTask(with: try Self.url(house, "/a.bin"))
        task.taskDescription = "a"
        task.priority = BackgroundSessionTask.highPriority
        #expect(task.state == .suspended && task.originalRequest?.url?.path == "/a.bin")
        #expect(house.origin.requests.isEmpty)
        task.resume()
        let shown = try await house.client.task(try await task.number, in: "bg")
        #expect(shown.taskDescription == "a" && shown.priority == 0.75 && shown.state == .running)
        #expect(shown.clientTaskId == String(task.taskIdentifier))
        try await eventually("progress") { recorder.all.peak > 0 }
        #expect(task.progress.totalUnitCount == 300_000 && task.countOfBytesExpectedToReceive == 300_000)
        gate.open()
        try await eventually("the end") { recorder.messages.last == "completed a" }
        #expect(recorder.messages == ["created", "downloaded a", "metrics", "completed a"])
        #expect(recorder.all.files["a"] == Content.bytes(seed: 1, length: 300_000) && recorder.all.peak == 300_000)
        #expect(recorder.all.places.allSatisfy { !FileManager.default.fileExists(atPath: $0.path) })
        #expect(task.state == .completed && task.error == nil && task.countOfBytesReceived == 300_000)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200 && task.progress.isFinished)
        #expect(task.suggestedFilename == "a.bin")
        let metrics = try #require(recorder.all.metrics.first)
        #expect(metrics.transactionMetrics.first?.requestStartDate != nil && metrics.taskInterval.duration > 0)
        try await eventually("all events are acknowledged") {
            try await house.client.session("bg").acknowledgedSeq == 3
        }
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `An upload sends its file with the request's method and returns the response`() async throws {
        let house = try await House()
        var resource = Resource.text("x")
        resource.uploadAnswer = .echo
        house.origin.serve("/in", resource)
        let (recorder, folder) = (Recorder(), TemporaryFolder())
        let session = Self.session(house, recorder)
        let bytes = Content.bytes(seed: 2, length: 100_000)
        let file = URL(filePath: folder.write(bytes, to: "body"))
        var request = URLRequest(url: try Self.url(house, "/in"))
        request.httpMethod = "POST"
        request.setValue("text/x-test", forHTTPHeaderField: "Content-Type")
        let task = session.uploadTask(with: request, fromFile: file)
        task.resume()
        _ = try await task.number
        try FileManager.default.removeItem(at: file)
        try await eventually("the end") { recorder.messages.last == "completed " }
        let sent = try #require(house.origin.requests("/in").last)
        #expect(sent.method == "POST" && "\(sent.fields)".contains("text/x-test") && sent.bodyLength == 100_000)
        #expect(recorder.all.answers == bytes)
        #expect(recorder.messages == ["created", "metrics", "data", "completed "])
        #expect(task.countOfBytesSent == 100_000 && task.countOfBytesExpectedToSend == 100_000)
        #expect(recorder.all.sent == 100_000)
        #expect(task.progress.isFinished)
    }

    /// A delegate that kills the service with the first piece of a response.
    final class Breaking: BackgroundSessionDataDelegate {
        let service: ServiceProcess
        let pieces = Mutex<[Data]>([])
        let isOver = Mutex(false)
        init(_ service: ServiceProcess) { self.service = service }

        func urlSession(_ session: BackgroundSession, dataTask: BackgroundSessionDataTask, didReceive data: Data) {
            let isFirst = pieces.withLock { pieces in
                pieces.append(data)
                return pieces.count == 1
            }
            if isFirst { service.signal(SIGKILL) }
        }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
        ) {
            isOver.withLock { $0 = true }
        }
    }

    @Test func `A long response is delivered once, in pieces, across a kill of the service`() async throws {
        let house = try await House()
        let response = Content.bytes(seed: 3, length: 9_000_000)
        var resource = Resource.text("x")
        resource.uploadAnswer = .status(200, body: response)
        house.origin.serve("/in", resource)
        let (delegate, folder) = (Breaking(house.service), TemporaryFolder())
        let session = Self.session(house, delegate)
        var request = URLRequest(url: try Self.url(house, "/in"))
        request.httpMethod = "POST"
        session.uploadTask(with: request, fromFile: URL(filePath: folder.write([1], to: "body"))).resume()
        try await house.service.waitForExit()
        try await house.service.start()
        try await eventually("the end") { delegate.isOver.withLock { $0 } }
        let pieces = delegate.pieces.withLock { $0 }
        #expect(pieces.count == 3 && pieces.flatMap { Array($0) } == response)
    }

    @Test func `An upload reports how much of its file is sent`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/in", .text("x"), always: [.hold(gate)])
        let (recorder, folder) = (Recorder(), TemporaryFolder())
        let session = Self.session(house, recorder)
        let file = URL(filePath: folder.write(Content.bytes(seed: 2, length: 300_000), to: "body"))
        var request = URLRequest(url: try Self.url(house, "/in"))
        request.httpMethod = "PUT"
        let task = session.uploadTask(with: request, fromFile: file)
        task.resume()
        try await eventually("progress") { recorder.all.sent > 0 }
        #expect(recorder.all.expectedToSend == 300_000 && task.progress.totalUnitCount == 300_000)
        gate.open()
        try await eventually("the end") { recorder.messages.last == "completed " }
        #expect(task.progress.fractionCompleted == 1)
    }

    @Test func `A task with the name of a completed one has its events again`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("content"))
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        func make() throws -> BackgroundSessionDownloadTask {
            let task = session.downloadTask(with: try Self.url(house, "/a"), clientTaskId: "one")
            task.taskDescription = "a"
            task.resume()
            return task
        }
        let first = try make()
        try await eventually("the end") { recorder.messages.last == "completed a" }
        let again = try make()
        try await eventually("the end, again") { again.state == .completed && recorder.messages.count == 7 }
        let told = ["created", "downloaded a", "metrics", "completed a", "created", "downloaded a", "completed a"]
        #expect(recorder.messages == told)
        #expect(again.taskIdentifier == first.taskIdentifier && again.error == nil)
        #expect((again.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(recorder.all.files["a"] == Array("content".utf8) && house.origin.requests("/a").count == 1)
        // Its completion may be a message that a new process has missed: then it is delivered once.
        await session.detach()
        let next = Recorder()
        let reopened = Self.session(house, next)
        let third = reopened.downloadTask(with: try Self.url(house, "/a"), clientTaskId: "one")
        third.taskDescription = "a"
        third.resume()
        try await eventually("reported again") { next.messages.last == "completed a" }
        #expect(third.state == .completed && next.messages == ["created", "downloaded a", "completed a"])
        await reopened.detach()
    }

    @Test func `A task that cannot be created completes with the reason`() async throws {
        let house = try await House()
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        session.downloadTask(with: try #require(URL(string: "gopher://127.0.0.1/"))).resume()
        try await eventually("the refusal") { recorder.all.errors.count == 1 }
        let refusal = try #require(recorder.all.errors[0] as? URLError)
        #expect(refusal.code == .unsupportedURL && refusal.problem?.code == .invalidValue)
        let absent = session.uploadTask(
            with: URLRequest(url: try Self.url(house, "/in")), fromFile: URL(filePath: "/absent/file"))
        absent.resume()
        await #expect { try await absent.number } throws: { error in
            (error as? URLError)?.code == .fileDoesNotExist && error.localizedDescription.hasPrefix("/absent/file: ")
        }
        let cancelled = session.downloadTask(with: try Self.url(house, "/never"))
        cancelled.cancel()
        try await eventually("the cancel") { recorder.all.errors.count == 3 }
        #expect((cancelled.error as? URLError)?.code == .cancelled && cancelled.state == .completed)
        #expect(cancelled.error?.localizedDescription == "The task was cancelled.")
        #expect(house.origin.requests.isEmpty)
    }

    @Test func `A download that was cancelled by producing resume data resumes in another task`() async throws {
        let house = try await House()
        let gate = Gate()
        let bytes = Content.bytes(seed: 3, length: 3_000_000)
        house.origin.serve("/a", .generated(seed: 3, length: 3_000_000), turns: [[.holdBody(after: 2_000_000, gate)]])
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        let first = session.downloadTask(with: try Self.url(house, "/a"))
        first.resume()
        try await eventually("most of it") { recorder.all.peak >= 1_000_000 }
        let data = try #require(await first.cancelByProducingResumeData())
        gate.open()
        try await eventually("the end of the first") { first.state == .completed }
        #expect((first.error as? URLError)?.code == .cancelled)
        let second = session.downloadTask(withResumeData: data)
        second.resume()
        try await eventually("the end of the second") { second.state == .completed }
        #expect(second.error == nil && recorder.all.files[""] == bytes)
        #expect(recorder.messages.contains("resumed behind the beginning of 3000000"))
        #expect(await first.cancelByProducingResumeData() == nil)
    }

    @Test func `A recreated session delivers missed messages once, and finds its tasks`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .text("a"))
        house.origin.serve("/b", .text("b"), always: [.hold(gate)])
        let first = Recorder()
        let session = Self.session(house, first)
        let (a, b) = (
            session.downloadTask(with: try Self.url(house, "/a")), session.downloadTask(with: try Self.url(house, "/b"))
        )
        (a.taskDescription, b.taskDescription) = ("a", "b")
        a.resume()
        b.resume()
        try await eventually("the first one") { first.messages.contains("completed a") }
        _ = try await b.number
        await session.detach()
        gate.open()
        try await eventually("the second one") {
            try await house.client.task(try await b.number, in: "bg").state == .completed
        }
        #expect(!first.messages.contains("completed b"))

        let second = Recorder()
        let again = Self.session(house, second)
        try await eventually("the missed events") { second.messages.last == "finished events" }
        #expect(second.messages == ["downloaded b", "metrics", "completed b", "finished events"])
        let third = again.downloadTask(with: try Self.url(house, "/a"))
        _ = try await third.number
        #expect(await again.allTasks == [third] && third.state == .suspended)
        await again.detach()
        let other = Self.session(house, Recorder())
        let tasks = await other.allTasks
        #expect(tasks.map(\.taskIdentifier) == [third.taskIdentifier] && tasks[0].state == .suspended)
        tasks[0].cancel()
        try await eventually("the end") { tasks[0].state == .completed }
        #expect(second.messages.filter { $0 == "finished events" }.count == 1)
    }

    @Test func `Tasks are created when an unavailable service returns`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        _ = try await session.downloadTask(with: try Self.url(house, "/a")).number
        try await house.service.kill()
        for _ in 0..<20 { session.downloadTask(with: try Self.url(house, "/a")).resume() }
        try await house.service.start()
        try await eventually("all of them", within: .seconds(60)) {
            recorder.messages.filter { $0 == "completed " }.count == 20
        }
        #expect(recorder.messages.filter { $0 == "downloaded " }.count == 20)
    }

    @Test func `A named task is created once`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let session = Self.session(house, Recorder())
        let request = URLRequest(url: try Self.url(house, "/a"))
        let first = session.downloadTask(with: request, clientTaskId: "cover-17")
        let number = try await first.number
        await session.detach()
        let second = Self.session(house, Recorder()).downloadTask(with: request, clientTaskId: "cover-17")
        #expect(second.taskIdentifier == first.taskIdentifier)
        #expect(try await second.number == number)
    }

    @Test func `Challenges reach the delegate, again if the credential was refused`() async throws {
        let house = try await House()
        house.origin.serve(
            "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        // Without a webhook questions are asked only while the app is attached, which takes a moment.
        let receiver = try Receiver()
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        let recorder = Recorder(judge: { challenge in
            let password = challenge.previousFailureCount == 0 ? "wrong" : "p"
            return (.useCredential, Credential(user: "u", password: password, persistence: .none))
        })
        let session = Self.session(house, recorder)
        let task = session.downloadTask(with: try Self.url(house, "/a"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(recorder.messages.filter { $0.hasPrefix("challenge") } == ["challenge 0", "challenge 1"])
        #expect(recorder.all.challenges.first?.protectionSpace.authenticationMethod == .basic)
    }

    @Test func `An unanswered question is asked again after a relaunch`() async throws {
        let house = try await House()
        house.origin.serve(
            "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        // Without a webhook questions are asked only while the app is attached, which takes a moment.
        let receiver = try Receiver()
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        let silent = Recorder(judge: { _ in nil })
        let session = Self.session(house, silent)
        session.downloadTask(with: try Self.url(house, "/a")).resume()
        try await eventually("the question") { silent.messages.contains("challenge 0") }
        try await eventually("it is acknowledged") { try await house.client.session("bg").acknowledgedSeq == 1 }
        await session.detach()
        let recorder = Recorder(judge: { _ in (.rejectProtectionSpace, nil) })
        let again = Self.session(house, recorder)
        try await eventually("the end") { recorder.messages.contains("completed ") }
        #expect(recorder.messages.filter { $0.hasPrefix("challenge") } == ["challenge 0"])
        withExtendedLifetime(again) {}
    }

    /// A delegate that confirms delayed requests, and redirects them.
    final class Diverting: BackgroundSessionDelayedRequestDelegate {
        let other: URL
        let responses = Mutex<[URL?]>([])
        init(to other: URL) { self.other = other }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest,
            completionHandler: @escaping @Sendable (BackgroundSession.DelayedRequestDisposition, URLRequest?) -> Void
        ) {
            completionHandler(.useNewRequest, URLRequest(url: other))
        }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
        ) {
            responses.withLock { $0.append(task.response?.url) }
        }
    }

    @Test func `A delegate that confirms delayed requests is called before one`() async throws {
        let house = try await House()
        house.origin.serve("/old", .text("old"))
        house.origin.serve("/new", .text("new"))
        let delegate = Diverting(to: try Self.url(house, "/new"))
        let session = Self.session(house, delegate)
        let task = session.downloadTask(with: try Self.url(house, "/old"))
        let date = Date(timeIntervalSinceNow: 0.5)
        task.earliestBeginDate = date
        #expect(abs(try #require(task.earliestBeginDate).timeIntervalSince(date)) < 0.001)
        task.resume()
        try await eventually("the end") { !delegate.responses.withLock { $0 }.isEmpty }
        #expect(delegate.responses.withLock { $0 } == [try Self.url(house, "/new")])
        #expect(house.origin.requests("/old").isEmpty)
    }

    @Test func `A session is invalid when its tasks have finished, and its last message says so`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        session.downloadTask(with: try Self.url(house, "/a")).resume()
        session.finishTasksAndInvalidate()
        try await eventually("the end") { recorder.messages.last == "invalid" }
        #expect(recorder.messages == ["created", "downloaded ", "metrics", "completed ", "invalid"])
        try await eventually("its delegate is released") { session.delegate == nil }

        let cancelling = Recorder()
        house.origin.serve("/slow", .text("a"), always: [.hold(Gate())])
        let other = Self.session(house, cancelling, identifier: "other")
        let task = other.downloadTask(with: try Self.url(house, "/slow"))
        task.resume()
        _ = try await task.number
        other.invalidateAndCancel()
        try await eventually("the end") { cancelling.messages.last == "invalid" }
        #expect((task.error as? URLError)?.code == .cancelled)
    }

    @Test func `didCreateTask configures the task before the method returns that made it`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        final class Configuring: BackgroundSessionTaskDelegate {
            func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask) {
                task.taskDescription = "configured"
            }
        }
        let session = BackgroundSession(identifier: "bg", client: house.client, delegate: Configuring())
        let task = session.downloadTask(with: try Self.url(house, "/a"))
        #expect(task.taskDescription == "configured")
        #expect(try await house.client.task(try await task.number, in: "bg").terms.taskDescription == "configured")
        await session.detach()
    }

    @Test func `A service's URL without http ends the session at once`() async throws {
        let recorder = Recorder()
        let client = Client(url: try #require(URL(string: "localhost:8080")), key: "dev")
        let session = BackgroundSession(identifier: "bg", client: client, delegate: recorder)
        let task = session.downloadTask(with: try #require(URL(string: "http://127.0.0.1:1/a")))
        task.resume()
        try await eventually("the end") { recorder.messages.last == "invalid with an error" }
        #expect((recorder.all.errors.last as? ClientError) == .badURL("localhost:8080"))
        // A task that is created after the end does not run.
        guard session.facts.withLock({ !$0.warnings.contains(.taskOfEndedSession) }) else { return }
        let error = try #require(task.error as? URLError)
        #expect(error.code == .badURL && error.failingURL?.path == "/a")
    }

    @Test func `The end of a session is its last message`() async throws {
        let house = try await House()
        let recorder = Recorder()
        let client = Client(url: try #require(URL(string: house.client.base)), key: "wrong")
        let session = BackgroundSession(identifier: "bg", client: client, delegate: recorder)
        for _ in 0..<100 { session.downloadTask(with: try Self.url(house, "/a")).resume() }
        try await eventually("the end") { recorder.messages.contains("invalid with an error") }
        #expect(recorder.messages.count { $0.hasPrefix("completed") } == 100)
        #expect(recorder.messages.last == "invalid with an error")
        session.downloadTask(with: try Self.url(house, "/a")).resume()
        #expect(session.facts.withLock { $0.warnings } == [.taskOfEndedSession])
    }

    @Test(arguments: [429, 502, 503, 504])
    func `A status of an unavailable service is retried`(status: Int) async throws {
        var patience = Patience(limit: 1)
        try await patience.wait(after: ClientError.status(status))
        #expect(patience.hasWaited)
        await #expect(throws: ClientError.status(500)) { try await patience.wait(after: ClientError.status(500)) }
    }

    @Test func `A full disk of the service is waited for, a refusal is not`() async throws {
        var patience = Patience(limit: 1)
        try await patience.wait(after: Problem(.insufficientStorage, ""))
        await #expect(throws: Problem.self) { try await patience.wait(after: Problem(.notFound, "")) }
    }

    @Test func `A session continues when the app cancels the operations of its queue`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let (recorder, queue) = (Recorder(), OperationQueue())
        queue.maxConcurrentOperationCount = 1
        let session = BackgroundSession(
            identifier: "bg", client: house.client, delegate: recorder, delegateQueue: queue)
        queue.isSuspended = true
        session.downloadTask(with: try Self.url(house, "/a")).resume()
        try await eventually("a message") { queue.operationCount == 1 }
        queue.cancelAllOperations()
        queue.isSuspended = false
        try await eventually("the end") { recorder.messages.last == "completed " }
        await session.detach()
    }

    @Test func `A detached session leaves no part of a content`() async throws {
        let house = try await House()
        house.origin.serve("/a", Resource(.large(LargeContent(seed: 9, length: 64 << 20))))
        let folder = TemporaryFolder()
        let place = URL(filePath: folder.path, directoryHint: .isDirectory)
        let session = BackgroundSession(
            identifier: "bg", client: house.client, temporaryDirectory: place, delegate: Recorder())
        session.downloadTask(with: try Self.url(house, "/a")).resume()
        try await eventually("a part") { filesBelow(folder.path).contains { $0.contains(".part-") } }
        // The rest waits for the service.
        try await house.service.kill()
        await session.detach()
        #expect(entries(of: folder.path).isEmpty)
    }

    @Test func `Descriptions are stored in the order of their changes`() async throws {
        let house = try await House()
        let session = Self.session(house, Recorder())
        for number in 1...20 { session.sessionDescription = "\(number)" }
        await session.facts.withLock { $0.describing }?.value
        #expect(try await house.client.session("bg").sessionDescription == "20")
        await session.detach()
    }

    @Test func `A response that cannot be read ends the session instead of losing messages`() async throws {
        let event = Event { ($0.seq, $0.type, $0.taskIdentifier) = (1, .taskDidComplete, 7) }
        let service = try Receiver { request in
            var answer = Receiver.Answer.status(200)
            switch request.target.prefix(while: { $0 != "?" }) {
            case "/v1/sessions/bg": answer.body = Session { $0.identifier = "bg" }.jsonBytes
            case "/v1/questions": answer.body = Page<Question>(items: [], nextCursor: nil).jsonBytes
            case "/v1/sessions/bg/events":
                answer.body = Array("data: ".utf8) + event.jsonBytes + Array("\n\n".utf8)
            default: answer.body = Array(#"{"taskIdentifier":"7"}"#.utf8)
            }
            return answer
        }
        let recorder = Recorder()
        let client = Client(url: try #require(URL(string: "http://127.0.0.1:\(service.port)")), key: "k")
        let session = BackgroundSession(identifier: "bg", client: client, delegate: recorder)
        try await eventually("the end") { recorder.messages == ["invalid with an error"] }
        guard case ClientError.unreadableAnswer(let text)? = recorder.all.errors.first as? ClientError else {
            throw DeadlineExceeded("the reason")
        }
        #expect(text.hasPrefix("/taskIdentifier: This must be a whole number"), "\(text)")
        withExtendedLifetime(session) {}
    }

    @Test func `A folder cannot be uploaded`() async throws {
        let house = try await House()
        let session = Self.session(house, Recorder())
        let task = session.uploadTask(
            with: URLRequest(url: try Self.url(house, "/in")), fromFile: FileManager.default.temporaryDirectory)
        let error = await #expect(throws: URLError.self) { try await task.number }
        #expect(error?.code == .fileIsDirectory)
        await session.detach()
    }

    @Test func `A session with another configuration is invalid at once`() async throws {
        let house = try await House()
        _ = try await house.client.openSession("bg", configuration: SessionConfiguration { $0.isDiscretionary = true })
        let recorder = Recorder()
        let configuration = BackgroundSessionConfiguration.background(withIdentifier: "bg")
        configuration.client = house.client
        configuration.timeoutIntervalForResource = 60
        let session = BackgroundSession(configuration: configuration, delegate: recorder)
        try await eventually("the end") { recorder.messages == ["invalid with an error"] }
        #expect((recorder.all.errors[0] as? Problem)?.code == .configurationMismatch)
        #expect(session.configuration.timeoutIntervalForResource == 60)
    }

    @Test func `Suspending and resuming a task and its progress are equivalent`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .generated(seed: 4, length: 100_000), always: [.holdBody(after: 1000, gate)])
        let recorder = Recorder()
        let session = Self.session(house, recorder)
        let task = session.downloadTask(with: try Self.url(house, "/a"))
        task.resume()
        let number = try await task.number
        task.progress.pause()
        try await eventually("it is suspended here") { task.state == .suspended }
        try await eventually("it is suspended") { try await house.client.task(number, in: "bg").state == .suspended }
        task.resume()
        #expect(!task.progress.isPaused)
        try await eventually("it runs") { try await house.client.task(number, in: "bg").state == .running }
        task.progress.cancel()
        try await eventually("the end") { task.state == .completed }
        #expect((task.error as? URLError)?.code == .cancelled)
        gate.open()
    }
}
