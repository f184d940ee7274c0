import Base
import Core
import Service
import TestSupport
import Testing
import Transfers

@testable import API

@Suite struct TaskRoutesTests {
    @Test func `A task is created once for its clientTaskId`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            let created = try await api.dev.post(path, api.task(client: "a"))
            #expect(created.status == 201)
            #expect(created.fields["Location"] == "/v1/sessions/s/tasks/1")
            #expect(created.json["state"].string == "suspended")
            let again = try await api.dev.post(path, api.task(client: "a"))
            #expect(again.status == 200)
            #expect(again.json["taskIdentifier"].int == 1)
            #expect(again.json["existing"].bool == true)
            let other = try await api.dev.post(path, api.task("https://example.com/b", client: "a"))
            #expect(other.status == 409)
            #expect(other.code == "client-task-conflict")
            #expect(other.pointers == ["/clientTaskId"])
        }
    }

    @Test func `A repeated task is answered while its session is invalidated, and a new one is refused`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            _ = try await api.dev.post(path, api.task(client: "a"))
            _ = try await api.dev.post("/v1/sessions/s/finish-tasks-and-invalidate")
            let again = try await api.dev.post(path, api.task(client: "a"))
            #expect(again.status == 200 && again.json["existing"].bool == true)
            let batch = try await api.dev.post(path + "/batch", ["tasks": [api.task(client: "a")]])
            #expect(batch.json["created"].int == 0)
            let mixed = try await api.dev.post(path + "/batch", ["tasks": [api.task(client: "a"), api.task()]])
            #expect(mixed.code == "session-invalidated")
            let lines = [api.task(client: "a"), api.task(client: "b")].map(\.description).joined(separator: "\n")
            let answer = try await api.dev.send(
                "POST", path, headers: [("Content-Type", "application/x-ndjson")], body: bytes(lines))
            let results = try answer.text.split(separator: "\n").map { try JSON(parsing: String($0)) }
            #expect(results.map { $0["status"].int } == [200, 409])
        }
    }

    @Test func `The trace context of a retry is that of its request, if it has one`() async throws {
        try await RouteFixture.run { fixture in
            let session = try await fixture.download(.text("a")).session
            let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            for path in ["/v1/sessions/s/tasks/retry", "/v1/sessions/s/tasks/1/retry"] {
                #expect(try await fixture.call("POST", path, headers: [("traceparent", own)]).status < 300)
            }
            #expect(try await fixture.call("POST", "/v1/sessions/s/tasks/1/retry").status == 201)
            let expected: [(Int64, String?)] = [(2, own), (3, own), (4, nil)]
            for (number, traceparent) in expected {
                #expect(try await fixture.service.task(number, in: session).specification.traceparent == traceparent)
            }
            try await eventually("the end of task 3") {
                try await fixture.service.task(3, in: session).state == .completed
            }
            #expect(try await fixture.call("POST", "/v1/sessions/s/tasks/3/retry").status == 201)
            #expect(try await fixture.service.task(5, in: session).specification.traceparent == own)
        }
    }

    @Test func `All faults are reported at once, with their positions`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            let wrong = try await api.dev.post(
                path, ["kind": "download", "request": ["url": "ftp://x/"], "priority": 2, "colour": "red"])
            #expect(wrong.status == 422)
            #expect(Set(wrong.pointers) == ["/request/url", "/priority", "/colour"])
            let upload: JSON = [
                "kind": "upload", "request": ["url": "https://example.com/"], "body": ["id": "body_none"],
            ]
            let missing = try await api.dev.post(path, upload)
            #expect(missing.status == 422)
            #expect(missing.pointers == ["/body/id"])
            let relay: JSON = ["kind": "upload", "request": ["url": "https://example.com/"], "body": ["task": 9]]
            #expect(try await api.dev.post(path, relay).pointers == ["/body/task"])
            #expect(
                try await api.dev.post(path, ["kind": "download", "resumeData": "nonsense"]).pointers == ["/resumeData"]
            )
            #expect(try await api.dev.get("/v1/sessions/s/tasks").json["items"].array?.isEmpty == true)
        }
    }

    @Test func `Commands are idempotent, end with completion, and honour If-Match`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks/1"
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            for _ in 0..<2 {
                let resumed = try await api.dev.post(path + "/resume")
                #expect(resumed.status == 200)
                #expect(resumed.json["state"].string == "running")
                #expect(resumed.json["phase"].string == "queued")
            }
            let running = try await api.dev.get(path)
            #expect(
                try await api.dev.get(path, headers: [("If-None-Match", try #require(running.etag))]).status == 200)
            for _ in 0..<2 {
                #expect(try await api.dev.post(path + "/suspend", [:]).json["state"].string == "suspended")
            }
            #expect(try await api.dev.post(path + "/cancel", headers: [("If-Match", "\"r0\"")]).status == 412)
            let cancelled = try await api.dev.post(path + "/cancel")
            #expect(cancelled.status == 202)
            #expect(cancelled.json["error"]["code"].int == -999)
            for verb in ["suspend", "resume", "cancel"] {
                let late = try await api.dev.post("\(path)/\(verb)")
                #expect(late.status == 409)
                #expect(late.code == "task-completed")
            }
            let late = try await api.dev.post(path + "/cancel", ["byProducingResumeData": true])
            #expect(late.code == "task-completed")
            let done = try await api.dev.get(path)
            #expect(
                try await api.dev.get(path, headers: [("If-None-Match", try #require(done.etag))]).status == 304)
            #expect(try await api.dev.patch(path, ["taskDescription": "late"]).status == 200)
            #expect(try await api.dev.patch(path, ["priority": 1]).code == "task-completed")
        }
    }

    @Test func `A completed task is retried as a new task`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(client: "a"))
            let path = "/v1/sessions/s/tasks/1"
            #expect(try await api.dev.post(path + "/retry").status == 422)
            _ = try await api.dev.post(path + "/cancel")
            let retried = try await api.dev.post(path + "/retry")
            #expect(retried.status == 201)
            #expect(retried.json["retryOf"].int == 1)
            #expect(retried.fields["Location"] == "/v1/sessions/s/tasks/2")
            for number in ["0", "01", "x", "99", "-1"] {
                #expect(try await api.dev.get("/v1/sessions/s/tasks/\(number)").status == 404)
            }
        }
    }

    @Test func `Members of a task change, and null removes them`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let path = "/v1/sessions/s/tasks/1"
            let changed = try await api.dev.patch(
                path,
                [
                    "priority": 0.9, "taskDescription": "x", "metadata": ["a": "1"],
                    "request": ["url": "https://example.com/new"],
                ])
            #expect(changed.status == 200)
            #expect(changed.json["priority"].double == 0.9)
            #expect(changed.json["metadata"]["a"].string == "1")
            #expect(changed.json["originalRequest"]["url"].string == "https://example.com/new")
            #expect(changed.json["revision"].int == 2)
            let cleared = try await api.dev.patch(path, ["taskDescription": nil])
            #expect(cleared.json["taskDescription"].isNull)
            #expect(try await api.dev.patch(path, ["request": ["url": "nonsense"]]).pointers == ["/request/url"])
        }
    }

    @Test func `A batch creates all tasks or none, and reports its faults with positions`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks/batch"
            let faulty = try await api.dev.post(
                path, ["tasks": [api.task(), api.task("ftp://x/"), ["kind": "download"]]])
            #expect(faulty.status == 422)
            #expect(Set(faulty.pointers) == ["/tasks/1/request/url", "/tasks/2/request"])
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(client: "a"))
            let conflict = try await api.dev.post(
                path, ["tasks": [api.task(), api.task("https://example.com/b", client: "a")]])
            #expect(conflict.status == 409)
            #expect(conflict.pointers == ["/tasks/1/clientTaskId"])
            #expect(try await api.dev.get("/v1/sessions/s/tasks").json["items"].array?.count == 1)

            let batch = try await api.dev.post(path, ["tasks": [api.task(client: "a"), api.task(), api.task()]])
            #expect(batch.status == 201)
            #expect(batch.json["created"].int == 2)
            #expect(batch.json["firstTaskIdentifier"].int == 2)
            #expect(batch.json["lastTaskIdentifier"].int == 3)
            #expect(batch.json["items"][0]["existing"].bool == true)
            let minimal = try await api.dev.post(path + "?return=minimal", ["tasks": [api.task(client: "a")]])
            #expect(minimal.json["firstTaskIdentifier"].isNull)
            #expect(!minimal.json.has("items"))
            #expect(try await api.dev.post(path + "?return=all", ["tasks": [api.task()]]).status == 422)
            #expect(try await api.dev.post(path, ["tasks": []]).status == 422)
        }
    }

    @Test func `Ten thousand tasks fit in one request`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let batch: JSON = ["tasks": .array((0..<10_000).map { api.task("https://example.com/\($0)") })]
            let answer = try await api.dev.post("/v1/sessions/s/tasks/batch?return=minimal", batch)
            #expect(answer.status == 201)
            #expect(answer.json["lastTaskIdentifier"].int == 10_000)
        }
    }

    @Test func `Lists are filtered, and commands apply to whole sessions`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            for index in 1...4 {
                var task = api.task(client: "c\(index)")
                task["group"] = .string(index < 3 ? "left" : "right")
                _ = try await api.dev.post(path, task)
            }
            #expect(try await api.dev.get(path + "?group=left").json["items"].array?.count == 2)
            #expect(
                try await api.dev.get(path + "?clientTaskId=c3").json["items"][0]["taskIdentifier"].int == 3)
            #expect(try await api.dev.get(path + "?state=sleeping").parameters == ["state"])
            let resumed = try await api.dev.post(path + "/resume", ["group": "left"])
            #expect(resumed.status == 200)
            #expect(resumed.json == ["matched": 2, "changed": 2])
            #expect(try await api.dev.get(path + "?state=running").json["items"].array?.count == 2)
            #expect(try await api.dev.post(path + "/suspend").json["changed"].int == 2)
            #expect(try await api.dev.post(path + "/cancel", ["group": "right"]).json["changed"].int == 2)
            #expect(try await api.dev.get(path + "?outcome=cancelled").json["items"].array?.count == 2)
            #expect(try await api.dev.post(path + "/retry", ["outcome": "cancelled"]).json["changed"].int == 2)
            #expect(try await api.dev.get(path).json["items"].array?.count == 6)
        }
    }

    @Test func `The tasks of all sessions are one list, and each names its session`() async throws {
        try await ServedAPI.run { api async throws in
            var sent: [JSON] = []
            for (session, state) in [("a", "suspended"), ("b", "running"), ("a", "running")] {
                try await api.session(session)
                sent.append(try await api.dev.post("/v1/sessions/\(session)/tasks", api.task(state: state)).json)
            }
            #expect(sent.map { $0["sessionIdentifier"] } == ["a", "b", "a"])
            func list(_ query: String = "") async throws -> [JSON] {
                try await api.dev.get("/v1/tasks" + query).json["items"].array ?? []
            }
            let names = try await list().map { [$0["sessionIdentifier"], $0["taskIdentifier"]] }
            #expect(names == [["a", 1], ["b", 1], ["a", 2]])
            // The wait of a running task depends on its session.
            let one = try await api.dev.get("/v1/sessions/b/tasks/1").json
            #expect(try await list("?state=running").first == one)
            let stranger = try await api.client(api.admin.post("/v1/apps", ["identifier": "stranger"]))
            #expect(try await stranger.get("/v1/tasks").json["items"].array == [])
            let page = try await api.dev.get("/v1/tasks?limit=2&order=desc")
            let next = try #require(page.json["nextCursor"].string)
            #expect(try await list("?limit=2&order=desc&cursor=\(next)") == [sent[0]])
            #expect(try await api.dev.get("/v1/sessions/a/tasks?order=desc&cursor=\(next)").parameters == ["cursor"])
            #expect(try await api.admin.get("/v1/tasks").code == "insufficient-scope")
        }
    }

    @Test func `Tasks are searched by a part of their names, together with other filters`() async throws {
        try await ServedAPI.run { api async throws in
            for session in ["a", "b"] { try await api.session(session) }
            var sealed = api.task("https://mirror.example/pub/My%20File.iso?token=hidden")
            sealed["request"]["headers"] = ["Authorization": "Bearer hidden"]
            var described = api.task("https://example.com/two")
            described["taskDescription"] = "The Debian image"
            described["group"] = "g"
            let tasks = [
                ("a", api.task("https://example.com/one", client: "Nightly-1")), ("a", described), ("b", sealed),
                ("b", api.task("https://example.com/three", state: "running")),
            ]
            for (session, task) in tasks {
                #expect(try await api.dev.post("/v1/sessions/\(session)/tasks", task).status == 201)
            }
            func found(_ query: String, in list: String = "/v1/tasks") async throws -> [String] {
                let answer = try await api.dev.get("\(list)?search=\(query)")
                #expect(answer.status == 200 && answer.json["nextCursor"] == .null)
                return (answer.json["items"].array ?? []).map { task in
                    "\(task["sessionIdentifier"].string ?? "")/\(task["taskIdentifier"].int ?? 0)"
                }
            }
            #expect(try await found("nightly") == ["a/1"])
            #expect(try await found("DEBIAN+im") == ["a/2"])
            #expect(try await found("mirror.EXAMPLE/pub") == ["b/1"])
            #expect(try await found("my%20file") == ["b/1"])
            #expect(try await found("my%2520file") == ["b/1"])
            for text in ["hidden", "token", "bearer", "nothing"] { #expect(try await found(text) == [], "\(text)") }
            #expect(try await found("example.com") == ["a/1", "a/2", "b/2"])
            #expect(try await found("example.com&order=desc") == ["b/2", "a/2", "a/1"])
            #expect(try await found("example.com&group=g") == ["a/2"])
            #expect(try await found("example.com&state=running") == ["b/2"])
            #expect(try await found("example.com&clientTaskId=Nightly-1") == ["a/1"])
            #expect(try await found("example.com", in: "/v1/sessions/a/tasks") == ["a/1", "a/2"])
            #expect(try await found("example.com&order=desc", in: "/v1/sessions/a/tasks") == ["a/2", "a/1"])
            #expect(try await found("example.com&state=completed", in: "/v1/sessions/a/tasks") == [])
            let whole = try await api.dev.get("/v1/sessions/b/tasks?search=three").json["items"].array
            #expect(try await whole == [api.dev.get("/v1/sessions/b/tasks/2").json])
            let stranger = try await api.client(api.admin.post("/v1/apps", ["identifier": "stranger"]))
            #expect(try await stranger.get("/v1/tasks?search=example.com").json["items"].array == [])
            for text in ["", String(repeating: "x", count: 257)] {
                let refused = try await api.dev.get("/v1/tasks?search=\(text)")
                #expect(refused.status == 422 && refused.parameters == ["search"])
            }
        }
    }

    @Test func `A completed task is found by the file name that its response suggested`() async throws {
        let origin = try OriginServer()
        var report = Resource.text("report")
        report.fields.append("Content-Disposition", "attachment; filename=\"Report of May.pdf\"")
        origin.serve("/a", report)
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(origin.url("/a"), state: "running"))
            _ = try await api.dev.get("/v1/sessions/s/tasks/1?wait=60")
            for list in ["/v1/tasks", "/v1/sessions/s/tasks"] {
                #expect(try await api.dev.get(list + "?search=report%20of").json["items"].array?.count == 1)
            }
        }
    }

    @Test func `A search returns the matches of a limited number of tasks, and a cursor`() async throws {
        try await ServedAPI.run(configured: { $0.searchedTasks = 3 }) { api async throws in
            try await api.session()
            let tasks = (1...10).map { api.task(client: "t\($0)") }
            #expect(try await api.dev.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]).status == 201)
            func pages(_ query: String, in list: String) async throws -> [[String]] {
                var pages: [[String]] = []
                var cursor: String?
                repeat {
                    let answer = try await api.dev.get("\(list)?\(query)" + (cursor.map { "&cursor=\($0)" } ?? ""))
                    #expect(answer.status == 200)
                    pages.append((answer.json["items"].array ?? []).compactMap { $0["clientTaskId"].string })
                    cursor = answer.json["nextCursor"].string
                } while cursor != nil
                return pages
            }
            for list in ["/v1/tasks", "/v1/sessions/s/tasks"] {
                #expect(try await pages("search=t10", in: list) == [[], [], [], ["t10"]])
                #expect(try await pages("search=t1", in: list) == [["t1"], [], [], ["t10"]])
                #expect(try await pages("search=t10&order=desc", in: list) == [["t10"], [], [], []])
                #expect(try await pages("search=t&limit=2", in: list).flatMap { $0 } == (1...10).map { "t\($0)" })
                #expect(try await pages("search=t&limit=2", in: list).allSatisfy { $0.count <= 2 })
                #expect(try await pages("limit=5", in: list).map(\.count) == [5, 5])
                let first = try await api.dev.get(list + "?search=t10")
                let next = try #require(first.json["nextCursor"].string)
                #expect(first.fields["Link"] == "<\(list)?search=t10&cursor=\(next)>; rel=\"next\"")
                #expect(try await api.dev.get("\(list)?search=t1&cursor=\(next)").parameters == ["cursor"])
            }
        }
    }

    @Test func `A wait for a task ends with its completion or its next revision`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let path = "/v1/sessions/s/tasks/1"
            #expect(try await api.dev.get(path + "?wait=0").status == 200)
            #expect(try await api.dev.get(path + "?wait=61").status == 422)
            async let newer = api.dev.get(path + "?wait=60&revision=1")
            async let completed = api.dev.get(path + "?wait=60")
            try await eventually("both wait") {
                try await api.service.hub.tasks.countOfWatches(
                    of: api.service.task(1, in: api.service.session("s", app: AppID(1)).id).id) == 2
            }
            _ = try await api.dev.patch(path, ["priority": 1])
            #expect(try await newer.json["revision"].int == 2)
            _ = try await api.dev.post(path + "/cancel")
            #expect(try await completed.json["state"].string == "completed")
        }
    }

    @Test func `All retriable tasks are retried once, and the others are listed`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            var bodies: [String] = []
            for number in 1...5 {
                let body = try await api.dev.send("POST", "/v1/bodies", body: bytes("body \(number)"))
                bodies.append(try #require(body.json["id"].string))
                let task: JSON = [
                    "kind": "upload", "request": ["url": "https://example.com/a"], "state": "suspended",
                    "body": ["id": .string(bodies[number - 1])],
                ]
                #expect(try await api.dev.post("/v1/sessions/s/tasks", task).status == 201)
            }
            _ = try await api.dev.post("/v1/sessions/s/tasks/cancel")
            for gone in [1, 3] { #expect(try await api.dev.delete("/v1/bodies/\(bodies[gone])").status == 204) }
            let first = try await api.dev.post("/v1/sessions/s/tasks/retry")
            #expect(first.status == 200)
            #expect(first.json["matched"].int == 5 && first.json["changed"].int == 3)
            #expect(first.json["errors"].array?.map { $0["taskIdentifier"].int } == [2, 4])
            #expect(first.json["errors"][0]["problem"]["code"].string == "invalid-value")
            let new = try await api.dev.get("/v1/sessions/s/tasks?state=running").json["items"].array ?? []
            #expect(new.map { $0["retryOf"].int } == [1, 3, 5])

            let second = try await api.dev.post("/v1/sessions/s/tasks/retry")
            #expect(second.json["changed"].int == 0)
            #expect(second.json["errors"].array?.count == 2)
            #expect(try await api.dev.get("/v1/sessions/s/tasks").json["items"].array?.count == 8)

            // An ended retry has a retry of its own; a single retry is idempotent.
            _ = try await api.dev.post("/v1/sessions/s/tasks/7/cancel")
            let third = try await api.dev.post("/v1/sessions/s/tasks/retry")
            #expect(third.json["changed"].int == 1)
            #expect(try await api.dev.get("/v1/sessions/s/tasks/9").json["retryOf"].int == 7)
            #expect(try await api.dev.post("/v1/sessions/s/tasks/1/retry").status == 201)
        }
    }

    @Test func `A filter accepts a list, and a plus sign in a query is a space`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            for state in ["running", "suspended", "suspended"] {
                let task: JSON = [
                    "kind": "download", "request": ["url": "https://example.com/"], "state": .string(state),
                    "group": "a b", "earliestBeginDate": "2999-01-01T00:00:00Z",
                ]
                #expect(try await api.dev.post("/v1/sessions/s/tasks", task).status == 201)
            }
            #expect(try await api.dev.post("/v1/sessions/s/tasks/3/cancel").status == 202)
            func numbers(_ query: String) async throws -> [Int?] {
                let items = try await api.dev.get("/v1/sessions/s/tasks?\(query)").json["items"].array ?? []
                return items.map { $0["taskIdentifier"].int }
            }
            #expect(try await numbers("state=running,completed") == [1, 3])
            #expect(try await numbers("state=suspended,completed&order=desc&limit=1") == [3])
            #expect(try await numbers("outcome=failed,cancelled&group=a+b") == [3])
            let wrong = try await api.dev.get("/v1/sessions/s/tasks?state=running,")
            #expect(wrong.parameters == ["state"])
            let selected = try await api.dev.post("/v1/sessions/s/tasks/resume", ["taskIdentifiers": [2, 3]])
            #expect(selected.json["matched"].int == 1 && selected.json["changed"].int == 1)
            // The body has a word or an array of words.
            let retry = "/v1/sessions/s/tasks/retry"
            #expect(try await api.dev.post(retry, ["outcome": ["failed", "httpError"]]).json["matched"] == 0)
            #expect(try await api.dev.post(retry, ["outcome": ["failed", "cancelled"]]).json["changed"] == 1)
            #expect(try await api.dev.post("/v1/sessions/s/tasks/cancel", ["state": "suspended"]).json["matched"] == 0)
            let all = try await api.dev.post("/v1/sessions/s/tasks/cancel", ["state": ["suspended", "running"]])
            #expect(all.json["matched"] == 3)
            for outcome: JSON in [[], ["lost"], "lost", ["failed", 1], 1] {
                let refused = try await api.dev.post(retry, ["outcome": outcome])
                #expect(refused.status == 422 && refused.text.contains("/outcome"), "\(outcome): \(refused.text)")
            }
        }
    }

    @Test func `The description requires the members that every task, metrics object and content of an event has`()
        async throws
    {
        try await RouteFixture.run { fixture in
            let document = try JSON(parsing: OpenAPI.json.bytes)
            func required(_ schema: String) -> Set<String> {
                Set(document["components"]["schemas"][schema]["required"].array?.compactMap(\.string) ?? [])
            }
            func read(_ path: String) async throws -> JSON {
                try JSON(parsing: String(decoding: try await fixture.call("GET", path).bytes, as: UTF8.self))
            }
            _ = try await fixture.download(.text("content"))
            let task = try await read("/v1/sessions/s/tasks/1")
            #expect(task["outcome"] == "succeeded")
            #expect(Set((task.object ?? [:]).keys) == required("SessionTask"))
            let events = try await read("/v1/sessions/s/events")["items"].array ?? []
            let content = try #require(events.first { $0["type"] == "task.didFinishDownloading" })["data"]
            #expect(content["statusCode"] == 200)
            #expect(Set((content.object ?? [:]).keys) == required("TaskDidFinishDownloadingDetails"))
            let metrics = try #require(events.first { $0["type"] == "task.didFinishCollectingMetrics" })["data"]
            let transaction = metrics["transactionMetrics"][0].object ?? [:]
            #expect(Set(transaction.keys) == required("TransactionMetrics"))
        }
    }

    @Test func `Lines are answered one by one, in order`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(client: "old"))
            let lines =
                [
                    api.task(client: "a").description, api.task("ftp://x/", client: "b").description, "{nonsense",
                    api.task("https://example.com/other", client: "old").description, "",
                    api.task(client: "old").description,
                    api.task(client: "c").description,
                ].joined(separator: "\n")
            let headers = [("Content-Type", "application/x-ndjson")]
            let answer = try await api.dev.send("POST", "/v1/sessions/s/tasks", headers: headers, body: bytes(lines))
            #expect(answer.status == 200)
            #expect(answer.fields["Content-Type"] == "application/x-ndjson")
            let results = try answer.text.split(separator: "\n").map { try JSON(parsing: String($0)) }
            #expect(results.map { $0["status"].int } == [201, 422, 400, 409, 200, 201])
            // The fifth line is empty.
            #expect(results.map { $0["line"].int } == [1, 2, 3, 4, 6, 7])
            #expect(results[0]["taskIdentifier"].int == 2)
            #expect(results[1]["problem"]["errors"][0]["pointer"].string == "/request/url")
            #expect(results[2]["problem"]["code"].string == "malformed-json")
            #expect(results[3]["problem"]["code"].string == "client-task-conflict")
            #expect(results[3]["clientTaskId"].string == "old")
            #expect(results[4]["existing"].bool == true)
            #expect(results[5]["taskIdentifier"].int == 3)
        }
    }

    @Test func `Refused lines leave no copies of bodies`() async throws {
        try await RouteFixture.run { fixture in
            _ = try await fixture.download(.generated(seed: 1, length: 300_000))
            func lines(_ clients: [String], url: String) -> [UInt8] {
                let tasks = clients.map { client -> JSON in
                    [
                        "kind": "upload", "state": "suspended", "clientTaskId": .string(client),
                        "request": ["url": .string(url)], "body": ["task": 1],
                    ]
                }
                return bytes(tasks.map(\.description).joined(separator: "\n"))
            }
            func send(_ clients: [String], url: String) async throws -> [Int?] {
                let answer = try await fixture.call(
                    "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/x-ndjson")],
                    body: lines(clients, url: url))
                let text = String(decoding: answer.bytes, as: UTF8.self)
                return try text.split(separator: "\n").map { try JSON(parsing: String($0))["status"].int }
            }
            let first = try await send((0..<5).map { "c\($0)" }, url: fixture.origin.url("/up"))
            #expect(first == Array(repeating: 201, count: 5))
            let second = try await send((0..<15).map { "c\($0)" }, url: fixture.origin.url("/other"))
            #expect(second == Array(repeating: 409, count: 5) + Array(repeating: 201, count: 10))
            try await eventually("one copy for each task") {
                filesBelow(fixture.folder.file("bodies")).count == 15
            }
        }
    }

    @Test func `Lines are committed as they arrive`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let headers = [("Content-Type", "application/x-ndjson"), ("Transfer-Encoding", "chunked")]
            let exchange = try await api.dev.begin("POST", "/v1/sessions/s/tasks", headers: headers)
            func send(_ lines: String) async throws {
                try await exchange.send(bytes("\(String(lines.utf8.count, radix: 16))\r\n\(lines)\r\n"))
            }
            let line = api.task().description + "\n"
            func created(_ count: Int) async throws {
                try await eventually("\(count) tasks") {
                    try await api.dev.get("/v1/sessions/s").json["taskCounts"]["suspended"].int ?? 0 >= count
                }
            }
            // A group is committed when it is full, and when no line follows it.
            try await send(String(repeating: line, count: 600))
            try await created(600)
            try await send(line)
            try await created(601)
            try await send(line)
            try await exchange.send(bytes("0\r\n\r\n"))
            let answer = try await exchange.answer()
            #expect(answer.text.split(separator: "\n").count == 602)
        }
    }

    @Test func `Lines are split correctly wherever the network splits them`() {
        var splitter = LineSplitter(limit: 4)
        func texts(_ lines: [LineSplitter.Line]) -> [String] {
            lines.map { line in
                "\(line.number) \(line.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "too long")"
            }
        }
        #expect(texts(splitter.take(bytes("a"))) == [])
        #expect(texts(splitter.take(bytes("b\n\r\n\ncd"))) == ["1 ab"])
        #expect(texts(splitter.take(bytes("efg"))) == [])
        #expect(texts(splitter.take(bytes("hij\nkl\nmn"))) == ["4 too long", "5 kl"])
        #expect(splitter.finish().map { texts([$0]) } == ["6 mn"])
        #expect(splitter.finish() == nil)
    }
}
