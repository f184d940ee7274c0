import Core
import TestSupport
import Testing

/// docs/concepts.md "The life of a task".
@Suite struct TaskTests {
    private let tasks = "/v1/sessions/s/tasks"

    @Test func `A task is created, starts at once and shows all its members`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/dir/a.bin", .generated(seed: 1, length: 1000))
        let more: [String: JSON] = [
            "clientTaskId": "a-17", "group": "nightly", "taskDescription": "A", "metadata": ["row": "17"],
            "priority": 0.75, "countOfBytesClientExpectsToReceive": 1000,
        ]
        let answer = try await scene.api.post(tasks, scene.downloadOf("/dir/a.bin", more))
        expect(answer, 201)
        #expect(answer.fields["Location"] == "\(tasks)/1")
        #expect(answer.json["taskIdentifier"] == 1 && answer.json["state"] == "running")
        let task = try await scene.completed(1)
        for (name, value) in more { #expect(task[name] == value, "\(name): \(task)") }
        #expect(task["kind"] == "download" && task["outcome"] == "succeeded" && task["error"].isNull)
        #expect(task["countOfBytesReceived"] == 1000 && task["countOfBytesExpectedToReceive"] == 1000)
        #expect(task["progress"]["fractionCompleted"].double == 1)
        let response = task["response"]
        #expect(response["statusCode"] == 200 && response["expectedContentLength"] == 1000, "\(response)")
        #expect(response["mimeType"] == "application/octet-stream" && response["suggestedFilename"] == "a.bin")
        #expect(response["url"].string == scene.origin.url("/dir/a.bin"))
        #expect(task["originalRequest"]["url"].string == scene.origin.url("/dir/a.bin"))
        #expect(task["originalRequest"]["method"] == "GET")
        #expect(task["attempts"]["count"] == 1 && task["redirects"] == [])
        #expect(task["content"]["length"] == 1000)
        let sha256 = Content.sha256(seed: 1, length: 1000)
        #expect(task["content"]["digest"] == ["algorithm": "sha-256", "value": .string(sha256)])
        for name in ["createdAt", "startedAt", "completedAt"] {
            let time = task[name].string.flatMap { Timestamp(rfc3339: $0) }
            #expect(time != nil && task[name].string?.count == 24, "\(name): \(task)")
        }
        #expect(task["waitingFor"] == [] && task["phase"].isNull)
    }

    @Test func `A suspended task waits to be resumed`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        let number = try await scene.download("/a", ["state": "suspended"])
        expect(try await scene.api.post("\(tasks)/\(number)/suspend"), 200)
        try await stays("nothing is sent", for: .seconds(1)) { scene.origin.requests.isEmpty }
        let task = try await scene.task(number)
        #expect(task["state"] == "suspended" && task["startedAt"].isNull, "\(task)")
        for _ in 1...2 { expect(try await scene.api.post("\(tasks)/\(number)/resume"), 200) }
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        for verb in ["suspend", "resume", "cancel"] {
            expectProblem(try await scene.api.post("\(tasks)/\(number)/\(verb)"), 409, "task-completed")
        }
        expectProblem(try await scene.api.post("\(tasks)/99/resume"), 404, "not-found")
        expectProblem(try await scene.api.get("\(tasks)/x"), 404, "not-found")
    }

    @Test func `A suspended transfer keeps its bytes`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000), turns: [[.holdBody(after: 200_000, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has 200,000 bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        let suspended = try await scene.api.post("\(tasks)/\(number)/suspend")
        #expect(suspended.status == 200 && suspended.json["state"] == "suspended", "\(suspended.text)")
        try await eventually("the transfer stops") { gate.waiting == 0 }
        expect(try await scene.api.post("\(tasks)/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let again = try #require(scene.origin.requests("/a").last)
        #expect(again.fields["Range"] == "bytes=200000-" && again.fields["If-Range"] == "\"v1\"", "\(again)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
        let resumed = try await scene.event("resumed") { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed["data"]["fileOffset"] == 200_000 && resumed["data"]["expectedTotalBytes"] == 300_000)
    }

    @Test func `Cancel ends a task with -999`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        let running = try await scene.download("/a")
        let suspended = try await scene.download("/a", ["state": "suspended"])
        try await eventually("it runs") { gate.waiting == 1 }
        for number in [running, suspended] {
            let answer = try await scene.api.post("\(tasks)/\(number)/cancel")
            expect(answer, 202)
            #expect(["canceling", "completed"].contains(answer.json["state"].string))
            let task = try await scene.completed(number)
            #expect(task["outcome"] == "cancelled", "\(task)")
            #expect(task["error"]["domain"] == "NSURLErrorDomain" && task["error"]["code"] == -999, "\(task)")
            #expect(task["error"]["name"] == "cancelled")
            #expect(task["error"]["failingURL"].string == scene.origin.url("/a"), "\(task)")
            #expect([202, 409].contains(try await scene.api.post("\(tasks)/\(number)/cancel").status))
            expectProblem(try await scene.content(number), 404, "not-found")
        }
        try await eventually("the transfer ends") { gate.waiting == 0 }
        let events = try await scene.events()
        expectSound(events)
        let ends = completions(events)
        #expect(ends.count == 2)
        for end in ends.values { #expect(end["error"]["failingURL"].string == scene.origin.url("/a"), "\(end)") }
    }

    @Test func `A batch is created completely or not at all`() async throws {
        let scene = try await Scene()
        var items = (0..<5).map { scene.downloadOf("/\($0)", ["state": "suspended"]) }
        items[3] = ["kind": "download", "request": ["url": "nonsense"]]
        let refused = try await scene.api.post("\(tasks)/batch", ["tasks": .array(items)])
        expectProblem(refused, 422, "invalid-value", pointer: "/tasks/3/request/url")
        #expect(try await scene.api.get(tasks).json["items"] == [])
        items[3] = scene.downloadOf("/3", ["state": "suspended"])
        let made = try await scene.api.post("\(tasks)/batch", ["tasks": .array(items)])
        expect(made, 201)
        #expect(made.json["created"] == 5 && made.json["firstTaskIdentifier"] == 1)
        #expect(made.json["lastTaskIdentifier"] == 5)
        #expect(made.json["items"].array?.compactMap { $0["taskIdentifier"].int } == [1, 2, 3, 4, 5])
        #expect(try await scene.session()["taskCounts"]["suspended"] == 5)
        let twice = scene.downloadOf("/x", ["state": "suspended", "clientTaskId": "same"])
        let other = scene.downloadOf("/y", ["state": "suspended", "clientTaskId": "same"])
        let conflict = try await scene.api.post("\(tasks)/batch", ["tasks": [twice, other]])
        #expect([409, 422].contains(conflict.status), "\(conflict.text)")
        #expect(try await scene.session()["taskCounts"]["suspended"] == 5)
        expect(try await scene.api.post("\(tasks)/batch", ["tasks": []]), 422)
    }

    @Test func `Ten thousand tasks in one batch take seconds`() async throws {
        let scene = try await Scene()
        let items = (0..<10_000).map { scene.downloadOf("/\($0)", ["state": "suspended"]) }
        let body = JSON(dictionaryLiteral: ("tasks", .array(items))).bytes
        let start = ContinuousClock.now
        let answer = try await scene.api.send(
            "POST", "\(tasks)/batch?return=minimal", headers: [("Content-Type", "application/json")], body: body)
        expect(answer, 201)
        #expect(answer.json["created"] == 10_000 && answer.json["firstTaskIdentifier"] == 1)
        #expect(answer.json["lastTaskIdentifier"] == 10_000 && !answer.json.has("items"))
        #expect(ContinuousClock.now - start < .seconds(60))
        #expect(try await scene.session()["taskCounts"]["suspended"] == 10_000)
        let tooMany = try await scene.api.send(
            "POST", "\(tasks)/batch?return=minimal", headers: [("Content-Type", "application/json")],
            body: JSON(dictionaryLiteral: ("tasks", .array(items + [items[0]]))).bytes, within: .seconds(120))
        #expect([413, 422].contains(tooMany.status), "\(tooMany.text)")
        try await scene.service.restart()
        #expect(try await scene.session()["taskCounts"]["suspended"] == 10_000)
    }

    @Test func `Lines of tasks get a line of response each, and may be sent again`() async throws {
        let scene = try await Scene()
        var lines = (0..<500).map {
            scene.downloadOf("/\($0)", ["state": "suspended", "clientTaskId": .string("c-\($0)")]).description
        }
        lines[100] = #"{"kind":"nonsense"}"#
        lines[200] = "{"
        let body = Array((lines.joined(separator: "\n") + "\n").utf8)
        for round in 1...2 {
            let answer = try await scene.api.send(
                "POST", tasks, headers: [("Content-Type", "application/x-ndjson")], body: body)
            expect(answer, 200)
            let results = try answer.text.split(separator: "\n").map { try JSON(parsing: String($0)) }
            try #require(results.count == 500, "\(results.count) results: \(answer.text.prefix(500))")
            #expect(results[0]["status"].int == (round == 1 ? 201 : 200), "\(results[0])")
            #expect(results[0]["taskIdentifier"] == 1 && results[0]["clientTaskId"] == "c-0", "\(results[0])")
            #expect(results[499]["taskIdentifier"] == 498, "\(results[499])")
            #expect(results[100]["status"] == 422 && results[100]["problem"]["code"].string != nil, "\(results[100])")
            #expect([400, 422].contains(results[200]["status"].int), "\(results[200])")
        }
        #expect(try await scene.session()["taskCounts"]["suspended"] == 498)
    }

    @Test func `A clientTaskId creates a task once`() async throws {
        let scene = try await Scene()
        let task = scene.downloadOf("/a", ["state": "suspended", "clientTaskId": "c-1"])
        let first = try await scene.api.post(tasks, task)
        expect(first, 201)
        let again = try await scene.api.post(tasks, task)
        expect(again, 200)
        #expect(again.json["taskIdentifier"] == first.json["taskIdentifier"])
        let other = scene.downloadOf("/b", ["state": "suspended", "clientTaskId": "c-1"])
        expectProblem(try await scene.api.post(tasks, other), 409, "client-task-conflict")
        let new = scene.downloadOf("/c", ["state": "suspended", "clientTaskId": "c-2"])
        let batch = try await scene.api.post("\(tasks)/batch", ["tasks": [task, new]])
        expect(batch, 201)
        #expect(batch.json["created"] == 1, "\(batch.text)")
        #expect(batch.json["firstTaskIdentifier"] == 2 && batch.json["lastTaskIdentifier"] == 2)
        #expect(batch.json["items"][0]["existing"] == true && batch.json["items"][0]["taskIdentifier"] == 1)
        #expect(batch.json["items"][1]["existing"] != true)
        let none = try await scene.api.post("\(tasks)/batch", ["tasks": [task, new]])
        #expect(none.json["created"] == 0 && none.json["firstTaskIdentifier"].isNull, "\(none.text)")
        #expect(none.json["lastTaskIdentifier"].isNull)
        try await scene.makeSession("t")
        expect(try await scene.api.post("/v1/sessions/t/tasks", other), 201)
    }

    @Test func `Lists are filtered and paged by key`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        for number in 1...6 {
            try await scene.download(
                number == 6 ? "/nowhere" : "/a",
                [
                    "group": number % 2 == 0 ? "even" : "odd", "clientTaskId": .string("c-\(number)"),
                    "state": number <= 3 ? "suspended" : "running",
                ])
        }
        for number in 4...6 { try await scene.completed(number) }
        func numbers(_ query: String) async throws -> [Int] {
            let answer = try await scene.api.get("\(tasks)?\(query)")
            expect(answer, 200)
            return (answer.json["items"].array ?? []).compactMap { $0["taskIdentifier"].int }.sorted()
        }
        #expect(try await numbers("state=suspended") == [1, 2, 3])
        #expect(try await numbers("state=completed") == [4, 5, 6])
        #expect(try await numbers("outcome=httpError") == [6])
        #expect(try await numbers("group=even") == [2, 4, 6])
        #expect(try await numbers("group=odd&state=suspended") == [1, 3])
        #expect(try await numbers("clientTaskId=c-5") == [5])
        #expect(try await numbers("group=none") == [])
        expectProblem(try await scene.api.get("\(tasks)?state=asleep"), 422, "invalid-value")
        let page = try await scene.api.get("\(tasks)?group=even&limit=2")
        let cursor = try #require(page.json["nextCursor"].string)
        #expect(page.json["items"].array?.count == 2)
        #expect(try await numbers("group=even&limit=2&cursor=\(cursor)").count == 1)
    }

    @Test func `Commands for a whole session return the number of matches`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), always: [.hold(gate)])
        for number in 1...4 { try await scene.download("/a", ["group": number < 3 ? "x" : "y"]) }
        try await eventually("they run") { gate.waiting == 4 }
        let suspended = try await scene.api.post("\(tasks)/suspend", ["group": "x"])
        expect(suspended, 200)
        #expect(suspended.json == ["matched": 2, "changed": 2], "\(suspended.text)")
        #expect(try await scene.session()["taskCounts"]["suspended"] == 2)
        let all = try await scene.api.post("\(tasks)/suspend", [:])
        #expect(all.json["changed"] == 2, "\(all.text)")
        let resumed = try await scene.api.post("\(tasks)/resume", ["group": "y"])
        #expect(resumed.json == ["matched": 2, "changed": 2], "\(resumed.text)")
        let cancelled = try await scene.api.post("\(tasks)/cancel", ["state": "suspended"])
        #expect(cancelled.json == ["matched": 2, "changed": 2], "\(cancelled.text)")
        gate.open()
        let session = try await scene.settled()
        #expect(session["taskCounts"]["cancelled"] == 2 && session["taskCounts"]["succeeded"] == 2, "\(session)")
        let retried = try await scene.api.post("\(tasks)/retry", ["outcome": "cancelled"])
        #expect(retried.json == ["matched": 2, "changed": 2], "\(retried.text)")
        try await eventually("they succeed") { try await scene.session()["taskCounts"]["succeeded"] == 4 }
    }

    @Test func `Commands for a whole session accept up to a thousand task identifiers`() async throws {
        let scene = try await Scene()
        let later = scene.downloadOf("/a", ["earliestBeginDate": "2999-01-01T00:00:00Z", "group": "x"])
        let batch: JSON = ["tasks": .array(Array(repeating: later, count: 1002))]
        expect(try await scene.api.post("\(tasks)/batch?return=minimal", batch), 201)
        func tell(_ command: String, _ numbers: some Sequence<Int>, _ more: [String: JSON] = [:]) async throws
            -> APIClient.Answer
        {
            var selection = more
            selection["taskIdentifiers"] = .array(numbers.map { .integer($0) })
            return try await scene.api.post("\(tasks)/\(command)", .object(selection))
        }
        func count(_ state: String) async throws -> Int? { try await scene.session()["taskCounts"][state].int }
        let all: JSON = ["matched": 1000, "changed": 1000]
        #expect(try await tell("suspend", 1...1000).json == all)
        #expect(try await (count("suspended"), count("running")) == (1000, 2))
        // Numbers without a task are skipped, and the other members of the selection apply as well.
        #expect(try await tell("resume", [1, 2, 1001, 5000]).json == ["matched": 3, "changed": 2])
        #expect(try await tell("suspend", [1, 2], ["group": "y"]).json == ["matched": 0, "changed": 0])
        #expect(try await tell("suspend", [1, 2, 3], ["state": "running"]).json == ["matched": 2, "changed": 2])
        #expect(try await tell("resume", 1...1000).json == all)
        #expect(try await tell("cancel", 1...1000).json == all)
        try await eventually("they are cancelled") { try await count("cancelled") == 1000 }
        #expect(try await count("running") == 2)
        // Retries begin at once, and end soon.
        #expect(try await tell("retry", 1...1000).json == all)
        try await eventually("the last of them ends", within: .seconds(60)) { try await count("httpError") == 1000 }
        let counts = try await scene.session()["taskCounts"]
        for command in ["suspend", "resume", "cancel", "retry"] {
            for numbers in [Array(1...1001), []] {
                let refused = try await tell(command, numbers)
                expectProblem(refused, 422, "invalid-value", pointer: "/taskIdentifiers")
                #expect(refused.json["errors"][0]["detail"].string?.contains("1000") == true, "\(refused.text)")
            }
        }
        #expect(try await scene.session()["taskCounts"] == counts)
    }

    @Test func `A completed task can be retried as a new one`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.status(404)]])
        let number = try await scene.download("/a", ["metadata": ["row": "1"], "state": "suspended"])
        expect(try await scene.api.post("\(tasks)/\(number)/retry"), 422)
        expect(try await scene.api.post("\(tasks)/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "httpError")
        let retried = try await scene.api.post("\(tasks)/\(number)/retry")
        expect(retried, 201)
        #expect(retried.json["retryOf"].int == number && retried.json["metadata"]["row"] == "1")
        let again = try #require(retried.json["taskIdentifier"].int)
        #expect(again != number && retried.fields["Location"] == "\(tasks)/\(again)")
        #expect(try await scene.completed(again)["outcome"] == "succeeded")
    }

    @Test func `Resume data starts one new task`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000), turns: [[.holdBody(after: 200_000, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has 200,000 bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        let cancelled = try await scene.api.post("\(tasks)/\(number)/cancel", ["byProducingResumeData": true])
        expect(cancelled, 200)
        let data = try #require(cancelled.json["resumeData"].string, "\(cancelled.text)")
        #expect(try await scene.completed(number)["outcome"] == "cancelled")
        let task = try await scene.create(["kind": "download", "resumeData": .string(data)])
        let continued = try #require(task["taskIdentifier"].int)
        #expect(try await scene.completed(continued)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/a").last?.fields["Range"] == "bytes=200000-")
        #expect(try await scene.content(continued).body == Content.bytes(seed: 1, length: 300_000))
        let events = try await scene.events()
        let resumed = events.first { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumed?["taskIdentifier"].int == continued && resumed?["data"]["fileOffset"] == 200_000)
        expectProblem(
            try await scene.api.post(tasks, ["kind": "download", "resumeData": .string(data)]), 409,
            "resume-data-spent")
        #expect(
            [409, 422].contains(try await scene.api.post(tasks, ["kind": "download", "resumeData": "forged"]).status))
    }

    @Test func `A download that cannot resume returns the reason`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        let plain = Resource(.generated(seed: 1, length: 300_000))
        scene.origin.serve("/a", plain, turns: [[.holdBody(after: 200_000, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        let cancelled = try await scene.api.post("\(tasks)/\(number)/cancel", ["byProducingResumeData": true])
        expect(cancelled, 200)
        #expect(cancelled.json["resumeData"].isNull && cancelled.json["notResumableReason"].string?.isEmpty == false)
    }

    @Test func `A task can be changed, a completed one only in its description and metadata`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/b", .generated(seed: 2, length: 10))
        let number = try await scene.download("/a", ["state": "suspended"])
        let path = "\(tasks)/\(number)"
        let changed = try await scene.api.patch(
            path,
            [
                "priority": 0.9, "taskDescription": "new", "metadata": ["a": "b"],
                "request": ["url": .string(scene.origin.url("/b"))],
            ])
        expect(changed, 200)
        #expect(changed.json["priority"].double == 0.9 && changed.json["taskDescription"] == "new")
        #expect(changed.json["metadata"] == ["a": "b"])
        for (name, value) in [("state", "running"), ("kind", "upload"), ("countOfBytesReceived", 7)] as [(String, JSON)]
        {
            expectProblem(
                try await scene.api.patch(path, .object([name: value])), 422, "unknown-member", pointer: "/\(name)")
        }
        expectProblem(try await scene.api.patch(path, ["priority": 1.5]), 422, "invalid-value", pointer: "/priority")
        expect(try await scene.api.post("\(path)/resume"), 200)
        try await scene.completed(number)
        #expect(try await scene.content(number).body == Content.bytes(seed: 2, length: 10))
        let events = try await scene.events()
        let late = try await scene.api.patch(path, ["taskDescription": "late", "metadata": [:]])
        expect(late, 200)
        #expect(late.json["taskDescription"] == "late")
        expectProblem(try await scene.api.patch(path, ["priority": 0.1]), 409, "task-completed")
        #expect(try await scene.events() == events)
    }

    @Test func `A new URL keeps the bytes if the validator matches`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/old", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        scene.origin.serve("/new", .generated(seed: 1, length: 300_000))
        let number = try await scene.download("/old")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"] == 200_000 }
        expect(try await scene.api.post("\(tasks)/\(number)/suspend"), 200)
        let request: JSON = ["request": ["url": .string(scene.origin.url("/new"))]]
        expect(try await scene.api.patch("\(tasks)/\(number)", request), 200)
        expect(try await scene.api.post("\(tasks)/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/new").first?.fields["Range"] == "bytes=200000-")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
    }

    @Test func `A higher priority starts first`() async throws {
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 1])
        let gate = Gate()
        scene.origin.serve("/first", .text("x"), turns: [[.hold(gate)]])
        for path in ["/low", "/middle", "/high"] { scene.origin.serve(path, .text("x")) }
        try await scene.download("/first")
        try await eventually("the first runs") { gate.waiting == 1 }
        try await scene.download("/low", ["priority": 0.1])
        try await scene.download("/middle")
        let last = try await scene.download("/high", ["priority": 0.9])
        let queued = try await scene.waitFor("is queued", task: last) { $0["phase"] == "queued" }
        #expect(queued["waitingFor"][0]["detail"].string?.isEmpty == false, "\(queued)")
        gate.open()
        try await scene.settled()
        #expect(scene.origin.requests.map(\.path) == ["/first", "/high", "/middle", "/low"])
    }

    @Test func `A host has at most the session's limit of transfers at a time`() async throws {
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 2])
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 1000), always: [.hold(gate)])
        let tasks = (0..<12).map { _ in scene.downloadOf("/a") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        try await eventually("two run") { gate.waiting == 2 }
        try await stays("no more than two run", for: .seconds(1)) { gate.waiting == 2 }
        gate.open()
        try await scene.settled()
        #expect(scene.origin.requests.count == 12)
        #expect(scene.origin.inFlight.peak == 2)
    }

    @Test func `A task begins no earlier than its date`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"))
        let start = wallMilliseconds()
        let soon = try await scene.download("/a", ["earliestBeginDate": .string(timestamp(secondsFromNow: 2))])
        let late = try await scene.download("/a", ["earliestBeginDate": "2099-01-01T00:00:00Z"])
        let past = try await scene.download("/a", ["earliestBeginDate": "2001-01-01T00:00:00Z"])
        try await scene.completed(past)
        let delayed = try await scene.waitFor("is delayed", task: late) { $0["phase"] == "delayed" }
        #expect(delayed["state"] == "running" && delayed["waitingFor"][0]["kind"].string != nil, "\(delayed)")
        #expect(delayed["waitingFor"][0]["until"].string != nil, "\(delayed)")
        try await scene.completed(soon)
        #expect(wallMilliseconds() - start >= 1900)
        expect(try await scene.api.patch("/v1/sessions/s/tasks/\(late)", ["earliestBeginDate": nil]), 200)
        #expect(try await scene.completed(late)["outcome"] == "succeeded")
    }

    @Test func `Invalid URLs are refused`() async throws {
        let scene = try await Scene()
        for url in [
            "", "a", "/a", "//a.example/b", "a.example/x", "file:///etc/passwd", "ftp://a.example/", "gopher://a/",
            "http://", "http:///x", "http://a.example:99999/", "http://a.example/\r\nX: y", "http://a b/",
            "http://127.0.0.1\\@a.example/", "http://a.example/\u{0}", "http://a\u{0}.example/",
            "http://a.example/\u{7F}",
            "http://a.example/\u{1}?b", "http://a%00.example/",
            "http://a.example/" + String(repeating: "a", count: 8192),
        ] {
            let answer = try await scene.api.post(tasks, ["kind": "download", "request": ["url": .string(url)]])
            expectProblem(answer, 422, "invalid-value", pointer: "/request/url")
        }
        expect(try await scene.api.post(tasks, ["kind": "download"]), 422)
        expect(try await scene.api.post(tasks, ["kind": "download", "request": [:]]), 422)
        expect(try await scene.api.post(tasks, ["request": ["url": "http://a.example/"]]), 422)
    }

    @Test func `Requests that cannot be sent are refused`() async throws {
        let scene = try await Scene()
        func post(_ request: [String: JSON], _ more: [String: JSON] = [:]) async throws -> APIClient.Answer {
            var request = request
            request["url"] = "http://a.example/"
            return try await scene.api.post(
                tasks, scene.downloadOf("/", ["request": .object(request)].merging(more) { $1 }))
        }
        for value in ["a\r\nX-B: c", "a\nb", "a\u{0}b"] {
            expect(try await post(["headers": .object(["X-A": .string(value)])]), 422)
        }
        for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection", "a b", "", "a:"] {
            expect(try await post(["headers": .object([name: "x"])]), 422)
        }
        for method in ["GET\r\nX", "", "G T"] { expect(try await post(["method": .string(method)]), 422) }
        for (name, value) in [
            ("priority", 2), ("priority", -0.1), ("priority", "high"), ("maximumContentLength", -1),
            ("maximumContentLength", 1.5), ("clientTaskId", ""), ("metadata", ["a": ["b": "c"]]),
            ("state", "completed"),
            ("earliestBeginDate", "2026-13-01T00:00:00Z"), ("earliestBeginDate", "2026-01-01T00:00:00"),
            ("acceptableStatusCodes", ["abc"]), ("acceptableStatusCodes", ["299-200"]), ("failOnHTTPError", "yes"),
            ("expectedDigest", ["algorithm": "sha-256", "value": "abc"]),
            ("expectedDigest", ["algorithm": "crc32", "value": "00000000"]),
        ] as [(String, JSON)] {
            let answer = try await post([:], [name: value])
            #expect(answer.status == 422, "\(name) \(value): \(answer.text)")
            #expect(answer.pointers.contains { $0.hasPrefix("/\(name)") }, "\(name) \(value): \(answer.text)")
        }
        expect(try await scene.api.post(tasks, ["kind": "upload", "request": ["url": "http://a.example/"]]), 422)
        #expect(try await scene.api.get(tasks).json["items"] == [])
    }

    @Test func `Secrets are not returned`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"))
        let request: JSON = [
            "url": .string(scene.origin.url("/a?token=canary-4")),
            "headers": [
                "Authorization": "Bearer canary-1", "Cookie": "a=canary-2", "X-Mine": "canary-3", "X-Open": "open",
            ],
            "sensitiveHeaders": ["X-Mine"],
        ]
        let number = try await scene.download("/a", ["request": request])
        try await scene.completed(number)
        let sent = try #require(scene.origin.requests.first)
        #expect(sent.fields["Authorization"] == "Bearer canary-1" && sent.fields["X-Mine"] == "canary-3")
        let texts = [
            try await scene.api.get("\(tasks)/\(number)").text,
            try await scene.api.get("/v1/sessions/s/events?after=0").text,
            scene.service.errors,
        ]
        for canary in 1...3 { #expect(texts.allSatisfy { !$0.contains("canary-\(canary)") }, "\(canary): \(texts)") }
        #expect(!scene.service.errors.contains("canary-4"))
        #expect(texts[0].contains("open"))
        try await scene.service.terminate()
        for file in filesBelow(scene.service.data.file("data")) {
            let text = String(decoding: readFile(scene.service.data.file("data/\(file)")) ?? [], as: UTF8.self)
            for canary in 1...3 { #expect(!text.contains("canary-\(canary)"), "\(file)") }
        }
    }
}
