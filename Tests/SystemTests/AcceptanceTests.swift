import Core
import TestSupport
import Testing

/// Errors of a naive implementation of Apple's background transfers, line by line. If another suite covers a line, the
/// table names its tests; the other lines have their tests below it.
///
/// Not covered:
/// - A limiter that delays each launch further (0, 60, 120, 240 s): this version has none. The calls that a receiver
///   could cause without end are limited instead: a completion that acknowledges nothing delays the next launch.
/// - Tasks that are discretionary because they were created in the background: a server's client is neither in the
///   background nor in the foreground, so `isDiscretionary` alone decides.
@Suite struct AcceptanceTests {
    /// Tests in another file of this folder that cover a line.
    struct Line: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let file: String
        let tests: [String]

        init(_ line: String, _ file: String, _ tests: String...) {
            (testDescription, self.file, self.tests) = (line, file, tests)
        }
    }

    static let shownElsewhere = [
        Line(
            "1. a task that is created suspended does nothing until it is resumed", "TaskTests",
            "A suspended task waits to be resumed"),
        Line(
            "2. a repeated PUT of a session finds every resource after a kill", "SessionTests",
            "Every resource survives a kill"),
        Line("3. the idle timeout fails no task", "ResumeTests", "The idle timeout ends the attempt, never the task"),
        Line(
            "3 and 4. the resource timeout fails a task with -1001, without its suspended time", "ResumeTests",
            "The resource timeout ends the task, without its suspended time"),
        Line(
            "6. ten tasks launch once, with the last of them; a failed one does not launch early", "LaunchTests",
            "Ten tasks launch once, after the last"),
        Line(
            "6. a challenge launches early", "QuestionTests",
            "A challenge launches the app, and its answer resumes the task"),
        Line(
            "7. an attached app gets no webhook", "LaunchTests",
            "An attached client is not launched, a detached one is after the grace period"),
        Line(
            "7. a client that vanished no longer counts as attached", "LaunchTests",
            "A disconnected long poll no longer counts as attached"),
        Line(
            "7. a client whose attachment was taken over is refused", "EventTests",
            "An attachment belongs to one client until another takes over"),
        Line(
            "8. events replay in order after a kill between the change and its delivery", "LaunchTests",
            "A kill during delivery sends the same launch again"),
        Line(
            "8. a kill at any moment loses and doubles nothing", "KillTests",
            "Downloads and uploads survive kills at any moment"),
        Line("9. didFinishDownloading precedes didComplete", "EventTests", "A download logs its events in order"),
        Line(
            "9. nothing follows didComplete, not even late progress", "NaiveTests",
            "No event of a task follows its completion on any stream"),
        Line(
            "10. content survives until its launch is completed, then for its retention", "ContentTests",
            "Content outlives the completion, until it is claimed"),
        Line(
            "11. a launch that is not completed in time is delivered again with its identifier", "LaunchTests",
            "A receiver that never completes is launched again with the same identifier"),
        Line(
            "11. neither completing a launch nor the launched app's reads cause another", "LaunchTests",
            "A launch is completed by a request, and causes no other",
            "The launched app's own reads do not supersede its launch"),
        Line(
            "15. a resumed download never mixes two versions of a resource", "ResumeTests",
            "Bytes of two versions are never mixed"),
        Line(
            "15. a partial file that another program truncated corrupts nothing", "ResumeTests",
            "A partial file that was truncated while the service was down corrupts nothing"),
        Line(
            "16. a kill during a download costs at most the unsynced bytes", "ResumeTests",
            "A kill costs at most the unsynced bytes"),
        Line(
            "17. an upload with a 104 resumes from its offset", "UploadKillTests",
            "An upload resumes after SIGKILLs, and arrives unchanged"),
        Line(
            "17. without a 104 a broken upload restarts from 0", "UploadTests",
            "A broken upload restarts from its snapshot"),
        Line(
            "18. a change or deletion of the source after creation does not change the upload", "UploadTests",
            "A source that changes after creation does not change the upload"),
        Line("19. a challenge can be passed on or cancelled", "QuestionTests", "Other answers end the task"),
        Line(
            "19. an answer for the session serves its other tasks", "QuestionTests",
            "An answer for the session serves its other tasks"),
        Line("20. a redirect to another origin drops credentials", "RedirectTests", "Secrets do not cross origins"),
        Line(
            "20. the seventeenth redirect is -1007", "RedirectTests",
            "Sixteen redirects are followed, the seventeenth fails with -1007"),
        Line(
            "21. finishing and invalidating refuses new tasks, finishes the others, and is the last event",
            "SessionTests",
            "Finishing tasks invalidates the session once they are done"),
        Line(
            "22. a force quit cancels all tasks and stops all webhooks until activation", "AppTests",
            "Force quit stops all webhooks until activation"),
        Line(
            "22. a key that is revoked is refused at once", "AppTests",
            "Keys have scopes and an expiry, and are revoked at once"),
        Line(
            "25. nothing is fetched by default, and never sooner than the interval", "RefreshTests",
            "The interval is never, the minimum or longer"),
        Line(
            "25. a late completion of a fetch counts as failed", "RefreshTests",
            "A late completion of a fetch is refused"),
        Line(
            "25. a denied status suppresses fetches", "RefreshTests",
            "A status that denies stops fetches, with an event"),
        Line(
            "26. a delayed request waits for its answer, and may be changed or cancelled", "QuestionTests",
            "A delayed request is confirmed, changed or cancelled"),
        Line(
            "27. no more transfers to a host than the session allows", "TaskTests",
            "A host has at most the session's limit of transfers at a time"),
        Line(
            "28. ten thousand tasks are created in one batch within seconds", "TaskTests",
            "Ten thousand tasks in one batch take seconds"),
        Line("a wrong length", "ResumeTests", "A wrong length ends with a clear error"),
        Line("a body without end", "StatusTests", "A content that is too large ends with -1103"),
        Line("a body that trickles", "NaiveTests", "The resource timeout ends a trickling body"),
        Line(
            "a full disk", "NaiveTests", "Below the floor of free disk space new content waits and writes are refused"),
        Line("a client that hangs up", "NaiveTests", "Held requests end within a second of their clients"),
    ]

    @Test(arguments: shownElsewhere)
    func `A line that another suite shows names existing tests`(_ line: Line) throws {
        let bytes = try #require(readFile("\(repository)/Tests/SystemTests/\(line.file).swift"), "\(line.file)")
        // The first text in backticks after the attribute is the name of the test.
        let sentences = String(decoding: bytes, as: UTF8.self).split(separator: "@Test").dropFirst().compactMap {
            $0.split(separator: "`", omittingEmptySubsequences: false).dropFirst().first.map(String.init)
        }
        for test in line.tests { #expect(sentences.contains(test), "\(line.file) has no test `\(test)`") }
    }

    @Test func `15. A download recovers from each kind of trouble`() {
        let troubles = Set(ResumeTests.troubles.map(\.name))
        #expect(troubles.isSuperset(of: ["none", "changed", "weak", "starts later"]))
    }

    @Test func `2. PUT of a live session attaches and loses nothing, and another configuration is refused`()
        async throws
    {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        let number = try await scene.download("/a")
        try await eventually("it runs") { gate.waiting == 1 }
        let again = try await scene.api.put("/v1/sessions/s", ["configuration": [:]])
        #expect(again.status == 200 && again.json["taskCounts"]["running"] == 1, "\(again.text)")
        let other = try await scene.api.put(
            "/v1/sessions/s", ["configuration": ["timeoutIntervalForRequest": 7]])
        #expect(other.status == 409, "\(other.text)")
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/a").count == 1)
        expectSound(try await scene.events())
    }

    @Test(arguments: [404, 500])
    func `5. A status of 400 and above is a response with its body, and no error`(_ status: Int) async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["statusCodes": []]])
        scene.origin.serve("/a", .text("x"), always: [.status(status, body: "no")])
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "httpError" && task["error"].isNull, "\(task)")
        #expect(task["response"]["statusCode"].int == status, "\(task)")
        #expect(try await scene.content(1).text == "no")
    }

    @Test func `14. A discretionary task runs in bad conditions once its resource timeout is near`() async throws {
        let scene = try await Scene(configuration: ["isDiscretionary": true, "timeoutIntervalForResource": 12])
        scene.origin.serve("/a", .text("x"))
        let bad: JSON = ["power": ["external": false, "lowPowerMode": true]]
        expect(try await scene.admin.put("/v1/system/conditions", bad), 200)
        let number = try await scene.download("/a")
        try await scene.waitFor("waits", task: number) { !$0["waitingFor"].isNull }
        #expect(scene.origin.requests.isEmpty)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.admin.get("/v1/system/conditions").json["power"]["external"] == false)
    }

    @Test func `23. A cancellation during completion leaves one end`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 1000))
        let count = 60
        try await withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    let task = try await scene.download("/a")
                    // Some are cancelled before their start, some in flight, some after their end.
                    if number % 3 > 0 { _ = try await scene.api.get("/v1/sessions/s/tasks/\(task)?wait=0") }
                    let answer = try await scene.api.post("/v1/sessions/s/tasks/\(task)/cancel")
                    #expect([202, 409].contains(answer.status), "\(answer.text)")
                }
            }
            try await group.waitForAll()
        }
        try await eventually("all are over") { try await scene.session()["taskCounts"]["completed"].int == count }
        let events = try await scene.events()
        expectSound(events)
        let ends = completions(events)
        #expect(ends.count == count)
        for end in ends.values { #expect(["succeeded", "cancelled"].contains(end["outcome"].string), "\(end)") }
        for (number, end) in ends where end["outcome"] == "succeeded" {
            #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 1000))
        }
    }

    @Test func `24. A reset empties cookies and keeps partial downloads resumable`() async throws {
        let scene = try await Scene(configuration: ["httpCookieAcceptPolicy": "always"])
        let gate = Gate()
        scene.origin.serve("/set", .text("x"), turns: [[.header("Set-Cookie", "a=1; Path=/; Max-Age=1000")]])
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000), turns: [[.holdBody(after: 200_000, gate)]])
        try await scene.completed(try await scene.download("/set"))
        let number = try await scene.download("/a")
        try await scene.waitFor("has 200,000 bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend"), 200)
        try await eventually("the transfer stops") { gate.waiting == 0 }
        expect(try await scene.api.post("/v1/sessions/s/reset"), 200)
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let requests = scene.origin.requests("/a")
        #expect(requests.map { $0.fields["Cookie"] } == ["a=1", nil], "\(requests)")
        #expect(requests.last?.fields["Range"] == "bytes=200000-", "\(requests)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
    }

    @Test func `28. A list of many tasks is paged, and they launch once at the end`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver { _ in .json(["completed": true]) }
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        let tasks = (0..<500).map { _ in scene.downloadOf("/a") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        var (numbers, cursor): ([Int], String?) = ([], nil)
        repeat {
            let query = cursor.map { "&cursor=\($0)" } ?? ""
            let page = try await scene.api.get("/v1/sessions/s/tasks?limit=100\(query)").json
            #expect(page["items"].array?.count ?? 0 <= 100)
            numbers += (page["items"].array ?? []).compactMap { $0["taskIdentifier"].int }
            cursor = page["nextCursor"].string
        } while cursor != nil
        #expect(numbers == Array(1...500))
        let delivery = try #require(try await receiver.waitForDelivery(within: .seconds(90)).first)
        #expect(delivery.json["data"]["taskCounts"]["succeeded"] == 500, "\(delivery.json)")
        try await eventually("it is completed") { try await scene.launches().first?["state"] == "completed" }
        #expect(receiver.deliveries.count == 1)
    }
}
