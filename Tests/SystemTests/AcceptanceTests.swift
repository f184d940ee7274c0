import Core
import TestSupport
import Testing

/// What a naive implementation of Apple's background transfers gets wrong, line by line. A line whose scene stands
/// elsewhere calls it there.
///
/// Not among them:
/// - A limiter that makes each launch wait longer (0, 60, 120, 240 s): there is none in this version. What a receiver
///   can provoke without end is bounded instead: a completion that acknowledges nothing delays the next launch.
/// - Tasks that are discretionary because they were made in the background: a server's client is neither in the
///   background nor in the foreground, so `isDiscretionary` says it alone.
@Suite struct AcceptanceTests {
    @Test func `1. a task that is made suspended does nothing until it is resumed`() async throws {
        try await TaskTests().`a suspended task waits to be resumed`()
    }

    @Test func `2. putting a live session again attaches and loses nothing, another configuration is refused`()
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

    @Test func `3. the idle timeout fails no task`() async throws {
        try await ResumeTests().`the idle timeout ends the attempt, never the task`()
    }

    @Test func `3 and 4. the resource timeout does, with -1001, and not while the task is suspended`() async throws {
        try await ResumeTests().`the resource timeout ends the task, its suspended time left out`()
    }

    @Test(arguments: [404, 500])
    func `5. a status of 400 and more is an answer, with its body and without an error`(_ status: Int) async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["statusCodes": []]])
        scene.origin.serve("/a", .text("x"), always: [.status(status, body: "no")])
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "httpError" && task["error"].isNull, "\(task)")
        #expect(task["response"]["statusCode"].int == status, "\(task)")
        #expect(try await scene.content(1).text == "no")
    }

    @Test func `6. ten tasks launch once, with the last of them; one that fails does not launch early`() async throws {
        try await LaunchTests().`ten tasks launch once, after the last`()
    }

    @Test func `6. a challenge launches early`() async throws {
        try await QuestionTests().`a challenge launches the app, and its answer goes on`()
    }

    @Test func `7. an attached app gets no webhook`() async throws {
        try await LaunchTests().`an attached client is not launched, a detached one after the grace`()
    }

    @Test func `8. events replay in order after a kill between the change and its delivery`() async throws {
        try await LaunchTests().`a kill while delivering sends the same launch again`()
    }

    @Test func `9. didFinishDownloading precedes didComplete`() async throws {
        try await EventTests().`a download tells its story in order`()
    }

    @Test func `9. nothing follows didComplete, not even late progress`() async throws {
        try await NaiveTests().`no event of a task follows its completion on any stream`()
    }

    @Test func `10. content survives until its launch is completed, then as long as it is kept`() async throws {
        try await ContentReadingTests().`content outlives the completion, and goes when it is claimed`()
    }

    @Test func `11. a launch that is not completed in time is delivered again under its identifier`() async throws {
        try await LaunchTests().`a receiver that never completes is launched again with the same identifier`()
    }

    @Test func `14. a discretionary task runs in bad conditions once its resource timeout is near`() async throws {
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

    @Test func `15. a download that goes on never mixes two versions of a resource`() async throws {
        for trouble in ResumeTests.troubles where ["none", "changed", "weak", "starts later"].contains(trouble.name) {
            try await ResumeTests().`bytes of two versions never meet`(trouble)
        }
    }

    @Test func `15. a partial file that was cut behind our back corrupts nothing`() async throws {
        try await ResumeTests().`a partial file that was cut while the service was down corrupts nothing`()
    }

    @Test func `16. a kill in the middle of a download costs what was not synced, at most`() async throws {
        try await ResumeTests().`a kill costs no more than what was not yet synced`()
    }

    @Test func `17. an upload that speaks of 104 goes on from its offset`() async throws {
        try await UploadKillTests().`An upload goes on after SIGKILLs, and arrives as it was`()
    }

    @Test func `17. without 104 a broken upload starts from 0`() async throws {
        try await UploadTests().`a broken upload starts again from its snapshot`()
    }

    @Test func `18. a source that is changed or deleted after creation is sent as it was`() async throws {
        try await UploadTests().`a source changed after creation still sends the first bytes`()
    }

    @Test(arguments: ["rejectProtectionSpace", "cancelAuthenticationChallenge"])
    func `19. a challenge can be passed on or cancelled`(_ disposition: String) async throws {
        try await QuestionTests().`other answers end the task`(disposition)
    }

    @Test func `19. an answer for the session serves its other tasks`() async throws {
        try await QuestionTests().`an answer for the session serves its other tasks`()
    }

    @Test func `20. a redirect to another origin drops credentials`() async throws {
        try await RedirectTests().`secrets do not cross origins`()
    }

    @Test func `20. the seventeenth redirect is -1007`() async throws {
        try await RedirectTests().`sixteen redirects are followed, the seventeenth is -1007`()
    }

    @Test func `21. finishing and invalidating refuses new tasks, finishes the others, and tells it last`() async throws
    {
        try await SessionTests().`finishing tasks invalidates once they are done`()
    }

    @Test func `22. a force quit cancels all tasks and silences everything until activate`() async throws {
        try await AppTests().`force quit silences everything until activate`()
    }

    @Test func `23. cancelling while a task completes leaves one end`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 1000))
        let count = 60
        try await withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    let task = try await scene.download("/a")
                    // Some are met before they start, some under way, some when they are over.
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

    @Test func `24. a reset empties cookies and keeps partial downloads resumable`() async throws {
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

    @Test func `25. nothing is fetched by default, and never sooner than the interval`() async throws {
        try await RefreshTests().`the interval is never, the minimum or longer`()
    }

    @Test func `25. a late answer to a fetch counts as failed`() async throws {
        try await RefreshTests().`a late fetch answer is refused`()
    }

    @Test func `25. a denied status suppresses fetches`() async throws {
        try await RefreshTests().`a status that denies stops fetches and is told`()
    }

    @Test func `26. a delayed request waits for its answer, and may be changed or cancelled`() async throws {
        try await QuestionTests().`a delayed request is confirmed, changed or cancelled`()
    }

    @Test func `27. no more transfers to a host than the session allows`() async throws {
        try await TaskTests().`no more transfers to a host at a time than the session allows`()
    }

    @Test func `28. ten thousand tasks are made in one batch within seconds`() async throws {
        try await TaskTests().`ten thousand tasks in one batch take seconds`()
    }

    @Test func `28. a list of many is paged, and they launch once at the end`() async throws {
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
