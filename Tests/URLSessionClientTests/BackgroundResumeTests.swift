import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing
import URLSessionClient

/// Resume data of errors, the reasons in errors, progress as a sequence, and requests and responses of metrics.
struct BackgroundResumeTests {
    typealias House = ClientTests.House

    /// A configuration whose tasks fail with the first broken attempt.
    static let once = SessionConfiguration {
        $0.retryPolicy = .custom(RetryPolicy.Settings { $0.maximumAttempts = 1 })
    }

    /// A download that fails after 2,000,000 of 3,000,000 bytes, and would succeed the next time.
    static func failedDownload(_ house: House, _ session: BackgroundSession) async throws -> BackgroundSessionTask {
        house.origin.serve("/a", .generated(seed: 3, length: 3_000_000), turns: [[.cut(after: 2_000_000)]])
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.taskDescription = "film"
        task.resume()
        try await eventually("the failure") { task.state == .completed }
        return task
    }

    static func resumeData(_ task: BackgroundSessionTask) -> Data? {
        (task.error as? URLError)?.downloadTaskResumeData
    }

    @Test func `A failed download has resume data, from which the service repeats it`() async throws {
        let house = try await House()
        let recorder = Recorder()
        let session = BackgroundSessionTests.session(house, recorder, configuration: Self.once)
        let first = try await Self.failedDownload(house, session)
        let data = try #require(Self.resumeData(first))
        let second = session.downloadTask(withResumeData: data)
        #expect(second.state == .suspended && second.taskDescription == nil)
        second.resume()
        try await eventually("the end of the second") { second.state == .completed }
        #expect(second.error == nil && recorder.all.files["film"] == Content.bytes(seed: 3, length: 3_000_000))
        #expect(second.taskDescription == "film" && second.originalRequest?.url?.path == "/a")
        let shown = try await house.client.task(try await second.number, in: "bg")
        #expect(try await shown.retryOf == first.number)
        #expect(recorder.messages.filter { $0 == "created" }.count == 2)
        #expect(recorder.messages.last == "completed film" && recorder.messages.count { $0 == "completed film" } == 1)
        #expect(try await house.client.tasks(in: "bg").items.count == 2)
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `A repeated download may be created suspended, changed, and found again`() async throws {
        let house = try await House()
        let session = BackgroundSessionTests.session(house, Recorder(), configuration: Self.once)
        let data = try #require(Self.resumeData(try await Self.failedDownload(house, session)))
        let gate = Gate()
        house.origin.serve("/a", .text("a"), always: [.hold(gate)])
        let task = try #require(session.downloadTask(withResumeData: data) as BackgroundSessionTask?)
        task.taskDescription = "another"
        task.priority = BackgroundSessionTask.highPriority
        let number = try await task.number
        try await eventually("the change") {
            let shown = try await house.client.task(number, in: "bg")
            return shown.state == .suspended && shown.taskDescription == "another" && shown.priority == 0.75
        }
        #expect(await session.allTasks == [task] && task.taskDescription == "another")
        await session.detach()
        let again = BackgroundSessionTests.session(house, Recorder(), configuration: Self.once)
        let found = try #require(await again.allTasks.first)
        #expect(found.taskIdentifier == task.taskIdentifier && found.state == .suspended)
        gate.open()
        found.resume()
        try await eventually("the end") { found.state == .completed }
        #expect(found.error == nil)
    }

    @Test func `A download that a policy forbids has no resume data, and names the policy`() async throws {
        let house = try await House()
        let session = BackgroundSessionTests.session(house, Recorder())
        let task = session.downloadTask(with: try #require(URL(string: "http://169.254.169.254/")))
        task.resume()
        try await eventually("the refusal") { task.state == .completed }
        let error = try #require(task.error as? URLError)
        #expect(error.errorCode == -1022 && error.taskError?.policy == "egress")
        #expect(error.localizedDescription.contains("egress policy") && error.downloadTaskResumeData == nil)
    }

    @Test func `Resume data of another session is refused`() async throws {
        let house = try await House()
        let session = BackgroundSessionTests.session(house, Recorder(), configuration: Self.once)
        let data = try #require(Self.resumeData(try await Self.failedDownload(house, session)))
        let other = BackgroundSessionTests.session(house, Recorder(), identifier: "other")
        let stranger = other.downloadTask(withResumeData: data)
        let refusal = await #expect(throws: URLError.self) { try await stranger.number }
        #expect(refusal?.problem?.code == .invalidValue)
        // A recreated session has the identifier of the old one, and other tasks.
        await session.detach()
        try await house.client.deleteSession("bg")
        let late = BackgroundSessionTests.session(house, Recorder()).downloadTask(withResumeData: data)
        await #expect(throws: URLError.self) { try await late.number }
        #expect(late.state == .completed && stranger.state == .completed)
    }

    @Test func `A cancelled task has resume data only if the app requested it`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .generated(seed: 3, length: 3_000_000), always: [.holdBody(after: 2_000_000, gate)])
        let recorder = Recorder()
        let session = BackgroundSessionTests.session(house, recorder)
        var tasks: [BackgroundSessionDownloadTask] = []
        for _ in 0..<2 {
            let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
            task.resume()
            try await eventually("most of it") { task.countOfBytesReceived >= 1_000_000 }
            tasks.append(task)
        }
        tasks[0].cancel()
        let data = await tasks[1].cancelByProducingResumeData()
        gate.open()
        for task in tasks { try await eventually("the end") { task.state == .completed } }
        #expect(Self.resumeData(tasks[0]) == nil)
        #expect(data != nil && Self.resumeData(tasks[1]) == data)
        #expect((tasks[1].error as? URLError)?.backgroundTaskCancelledReason == nil)
    }

    @Test func `Force quit is the reason of the cancelled tasks`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"), always: [.hold(Gate())])
        let session = BackgroundSessionTests.session(house, Recorder())
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.resume()
        try await house.origin.waitForRequests(1, path: "/a")
        _ = try await house.client.forceQuit()
        try await eventually("the end") { task.state == .completed }
        let error = try #require(task.error as? URLError)
        #expect(error.code == .cancelled && error.backgroundTaskCancelledReason == .userForceQuitApplication)
        #expect(error.networkUnavailableReason == nil && error.downloadTaskResumeData != nil)
    }

    @Test(arguments: [(0, URLError.NetworkUnavailableReason.cellular), (1, .expensive), (2, .constrained)])
    func `The reasons of errors have Apple's keys and numbers`(
        number: Int, reason: URLError.NetworkUnavailableReason
    ) {
        let network = URLError(.notConnectedToInternet, userInfo: ["NSURLErrorNetworkUnavailableReasonKey": number])
        #expect(network.networkUnavailableReason == reason && network.backgroundTaskCancelledReason == nil)
        let cancelled = URLError(.cancelled, userInfo: ["NSURLErrorBackgroundTaskCancelledReasonKey": number])
        #expect(cancelled.backgroundTaskCancelledReason?.rawValue == number)
        #expect(URLError(.cancelled).downloadTaskResumeData == nil)
    }

    @Test func `Progress is a sequence that ends with the task`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let session = BackgroundSessionTests.session(house, Recorder())
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        var seen: [BackgroundSessionTask.ProgressUpdate] = []
        var updates = task.progressUpdates.makeAsyncIterator()
        seen.append(try #require(await updates.next()))
        #expect(seen[0].completedUnitCount == 0 && seen[0].fractionCompleted == nil)
        task.resume()
        while let update = await updates.next() {
            seen.append(update)
            if update.completedUnitCount > 0 { gate.open() }
        }
        let last = try #require(seen.last)
        #expect(last.completedUnitCount == 300_000 && last.totalUnitCount == 300_000 && last.fractionCompleted == 1)
        #expect(seen.map(\.completedUnitCount) == seen.map(\.completedUnitCount).sorted())
        #expect(task.state == .completed)
        // A late reader, and one that reads nothing while the task progresses, get the newest update.
        var late: [BackgroundSessionTask.ProgressUpdate] = []
        for await update in task.progressUpdates { late.append(update) }
        #expect(late == [last])
    }

    @Test func `A slow reader gets the newest progress, and sequences end with the session`() async throws {
        let house = try await House()
        let gate = Gate()
        house.origin.serve("/a", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let session = BackgroundSessionTests.session(house, Recorder())
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        let updates = task.progressUpdates
        task.resume()
        try await eventually("progress") { task.countOfBytesReceived > 0 }
        let first = try #require(await updates.first { _ in true })
        #expect(first.completedUnitCount > 0)
        async let rest = task.progressUpdates.reduce(into: 0) { count, _ in count += 1 }
        await session.detach()
        #expect(await rest >= 1)
        // A sequence that begins after the session has the last state alone.
        #expect(await task.progressUpdates.reduce(into: 0) { count, _ in count += 1 } == 1)
        gate.open()
    }

    @Test func `Metrics have requests and responses`() async throws {
        let house = try await House()
        house.origin.serve("/new", .text("new"), always: [.header("X-Last", "yes")])
        house.origin.serve(
            "/old", .text("old"), always: [.status(302, [("Location", house.origin.url("/new")), ("X-First", "yes")])])
        let recorder = Recorder()
        let session = BackgroundSessionTests.session(house, recorder)
        var request = URLRequest(url: try BackgroundSessionTests.url(house, "/old"))
        request.httpMethod = "POST"
        let task = session.downloadTask(with: request)
        task.resume()
        try await eventually("the end") { task.state == .completed }
        let transactions = try #require(recorder.all.metrics.first).transactionMetrics
        #expect(transactions.map(\.request.url?.path) == ["/old", "/new"])
        #expect(transactions.map(\.request.httpMethod) == ["POST", "GET"])
        #expect(transactions.allSatisfy { $0.resourceFetchType == .networkLoad })
        let responses = transactions.compactMap { $0.response as? HTTPURLResponse }
        #expect(responses.map(\.statusCode) == [302, 200] && responses.map(\.url?.path) == ["/old", "/new"])
        #expect(responses.map { $0.value(forHTTPHeaderField: "X-Last") } == [nil, "yes"])
        #expect(task.currentRequest?.url?.path == "/new")
    }

    @Test func `Metrics of a transfer without a response have none`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"), always: [.noAnswer()])
        let recorder = Recorder()
        let session = BackgroundSessionTests.session(house, recorder, configuration: Self.once)
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        let transaction = try #require(recorder.all.metrics.first?.transactionMetrics.last)
        #expect(transaction.response == nil && transaction.request.url?.path == "/a")
    }
}
