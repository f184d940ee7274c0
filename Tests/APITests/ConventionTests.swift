import Base
import Core
import Service
import TestSupport
import Testing
import Transfers

@testable import API

@Suite struct ConventionTests {
    @Test func `The entity tag of a revision saves reads and guards changes`() async throws {
        try await ServedAPI.run { api async throws in
            let tag = try #require(try await api.session().etag)
            #expect(tag.hasPrefix("\"r"))
            let again = try await api.dev.get("/v1/sessions/s", headers: [("If-None-Match", tag)])
            #expect(again.status == 304)
            #expect(again.etag == tag)
            let changed = try await api.dev.patch(
                "/v1/sessions/s", ["bandwidthLimit": 1000], headers: [("If-Match", tag)])
            #expect(changed.status == 200)
            #expect(changed.json["configuration"]["bandwidthLimit"].int == 1000)
            let stale = try await api.dev.patch("/v1/sessions/s", [:], headers: [("If-Match", tag)])
            #expect(stale.status == 412)
            #expect(stale.code == "precondition-failed")
            #expect(try await api.dev.patch("/v1/sessions/s", [:], headers: [("If-Match", "*")]).status == 200)
            #expect(try await api.dev.get("/v1/sessions/s", headers: [("If-None-Match", tag)]).status == 200)
            #expect(try await api.dev.put("/v1/sessions/new", [:], headers: [("If-Match", "*")]).status == 412)
        }
    }

    @Test func `The entity tag of a former resource or of another resource never matches`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session("other")
            let other = try #require(try await api.dev.get("/v1/sessions/other").etag)
            let before = try #require(try await api.session().etag)
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let task = try #require(try await api.dev.get("/v1/sessions/s/tasks/1").etag)
            #expect(try await api.dev.post("/v1/sessions/s/invalidate-and-cancel").status == 202)
            let after = try #require(try await api.session().etag)
            #expect(after != before)
            let revision = try #require(after.split(separator: "-").first)
            for tag in [before, other, "\(revision)\"", "\(revision)-000000000000\"", "W/\(after)"] {
                let refused = try await api.dev.patch("/v1/sessions/s", [:], headers: [("If-Match", tag)])
                #expect(refused.status == 412 && refused.code == "precondition-failed", "\(tag)")
            }
            #expect(try await api.dev.patch("/v1/sessions/s", [:], headers: [("If-Match", after)]).status == 200)

            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            let path = "/v1/sessions/s/tasks/1"
            #expect(try await api.dev.patch(path, ["priority": 0.5], headers: [("If-Match", task)]).status == 412)
            let own = try #require(try await api.dev.get(path).etag)
            #expect(try await api.dev.patch(path, ["priority": 0.5], headers: [("If-Match", own)]).status == 200)

            let app = try #require(try await api.dev.get("/v1/app").etag)
            let forged = "\(try #require(app.split(separator: "-").first))-000000000000\""
            #expect(try await api.dev.patch("/v1/app", [:], headers: [("If-Match", forged)]).status == 412)
            #expect(try await api.dev.patch("/v1/app", [:], headers: [("If-Match", app)]).status == 200)
        }
    }

    @Test func `Names that no URL can carry are refused`() async throws {
        try await ServedAPI.run { api async throws in
            for name in [".", ".."] {
                for path in [name, name.replacing(".", with: "%2E")] {
                    #expect(try await api.dev.put("/v1/sessions/\(path)", [:]).status == 422, "\(path)")
                }
                let named: JSON = ["identifier": .string(name)]
                #expect(try await api.dev.post("/v1/sessions", named).pointers == ["/identifier"])
                #expect(try await api.admin.post("/v1/apps", named).pointers == ["/identifier"])
            }
            #expect(try await api.dev.put("/v1/sessions/...", [:]).status == 201)
        }
    }

    @Test func `Lists continue from page to page, and forged cursors are refused`() async throws {
        try await ServedAPI.run { api async throws in
            for name in ["a", "b", "c", "d", "e"] { try await api.session(name) }
            var names: [String] = []
            var path = "/v1/sessions?limit=2"
            var pages = 0
            while true {
                let page = try await api.dev.get(path)
                #expect(page.status == 200)
                names += (page.json["items"].array ?? []).compactMap { $0["identifier"].string }
                pages += 1
                guard let next = page.json["nextCursor"].string else {
                    #expect(page.fields["Link"] == nil)
                    break
                }
                let link = try #require(page.fields["Link"])
                #expect(link == "</v1/sessions?limit=2&cursor=\(next)>; rel=\"next\"")
                path = String(link.dropFirst().prefix { $0 != ">" })
            }
            #expect(names == ["a", "b", "c", "d", "e"])
            #expect(pages == 3)

            let cursor = try #require(try await api.dev.get("/v1/sessions?limit=1").json["nextCursor"].string)
            #expect(try await api.dev.get("/v1/sessions?cursor=\(cursor)").status == 200)
            for path in [
                "/v1/sessions?cursor=AAAA", "/v1/sessions?cursor=x\(cursor.dropFirst())",
                "/v1/sessions/a/tasks?cursor=\(cursor)",
            ] {
                let forged = try await api.dev.get(path)
                #expect(forged.status == 422)
                #expect(forged.code == "invalid-value")
                #expect(forged.parameters == ["cursor"])
                #expect(forged.json["detail"].string?.contains("with the same filters and order") == true)
            }
            #expect(try await api.dev.get("/v1/sessions/a/tasks?state=running&limit=1").json["nextCursor"].isNull)
        }
    }

    @Test(arguments: ["limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "nonsense=1", "cursor="])
    func `Invalid query values get 422`(query: String) async throws {
        try await ServedAPI.run { api async throws in
            let answer = try await api.dev.get("/v1/sessions?\(query)")
            #expect(answer.status == 422)
            #expect(answer.code == "invalid-value")
        }
    }

    @Test func `A body without JSON, its media type or a length is refused`() async throws {
        try await ServedAPI.run { api async throws in
            let path = "/v1/sessions"
            let json = [("Content-Type", "application/json")]
            func post(_ headers: [(String, String)], _ text: String?) async throws -> APIClient.Answer {
                try await api.dev.send("POST", path, headers: headers, body: text.map(bytes))
            }
            #expect(try await post([("Content-Type", "text/plain")], "{}").code == "unsupported-media-type")
            #expect(try await post([], "{}").status == 415)
            #expect(try await post([("Content-Type", "application/json; charset=latin1")], "{}").status == 415)
            #expect(try await api.dev.send("PATCH", "/v1/app", headers: json).code == "length-required")
            #expect(try await post(json, "{").code == "malformed-json")
            #expect(try await post(json, "[]").code == "invalid-value")
            #expect(try await post(json, "{\"a\": 1}").code == "unknown-member")
            #expect(try await post(json, "{\"identifier\": \"a\", \"identifier\": \"b\"}").code == "duplicate-member")
            let made = try await post([("Content-Type", "Application/JSON; charset=\"UTF-8\"")], "{}")
            #expect(made.status == 201)
            #expect(made.fields["Location"] == "/v1/sessions/\(made.json["identifier"].string ?? "")")
        }
    }

    @Test func `An Accept header without a producible type gets 406`() async throws {
        try await ServedAPI.run { api async throws in
            #expect(try await api.dev.get("/v1/sessions", headers: [("Accept", "text/html")]).code == "not-acceptable")
            let refused = [("Accept", "application/json;q=0, */*;q=0.1")]
            #expect(try await api.dev.get("/v1/sessions", headers: refused).status == 406)
            for accept in ["*/*", "application/*", "text/html, application/json;q=0.1"] {
                #expect(try await api.dev.get("/v1/sessions", headers: [("Accept", accept)]).status == 200)
            }
        }
    }

    @Test func `Problems have type, title, instance and request`() async throws {
        try await ServedAPI.run { api async throws in
            let answer = try await api.dev.get("/v1/sessions/none", headers: [("X-Request-Id", "mine-1")])
            #expect(answer.status == 404)
            #expect(answer.json["type"].string == "https://urlsessiond.dev/problems/not-found")
            #expect(answer.json["status"].int == 404)
            #expect(answer.json["instance"].string == "/v1/sessions/none")
            #expect(answer.fields["X-Request-Id"] == "mine-1")
            let wrong = try await api.dev.delete("/v1/sessions")
            #expect(wrong.status == 405)
            #expect(wrong.code == "method-not-allowed")
            #expect(wrong.fields["Allow"] == "GET, HEAD, OPTIONS, POST")
            #expect(wrong.json["instance"].string == "/v1/sessions")
            let nowhere = try await api.dev.get("/nowhere?key=secret")
            #expect(nowhere.code == "not-found" && nowhere.json["instance"].string == "/nowhere")
            let large = try await api.dev.send(
                "POST", "/v1/sessions", headers: [("Content-Type", "application/json")],
                body: [UInt8](repeating: 0x20, count: 2 << 20))
            #expect(large.status == 413 && large.json["instance"].string == "/v1/sessions")
            for path in ["/v1/sessions/s%00", "/v1/sessions/s/tasks/%zz", "/v1/sessions/s/tasks/1/content?a=%"] {
                let undecodable = try await api.dev.get(path)
                #expect(undecodable.status == 422 && undecodable.code == "invalid-value", "\(undecodable.text)")
                #expect(undecodable.json["instance"].string == path.split(separator: "?").first.map(String.init))
            }
            #expect(try await api.dev.send("HEAD", "/v1/sessions").status == 200)
        }
    }

    @Test func `In development mode only this machine's names are served`() async throws {
        try await ServedAPI.run {
            $0.isDevelopment = true
        } _: { api async throws in
            let answer = try await api.dev.get("/v1/sessions", headers: [("Host", "evil.example")])
            #expect(answer.status == 421)
            #expect(answer.code == "misdirected-request")
            for host in ["localhost:\(api.dev.port)", "127.0.0.1", "[::1]:80"] {
                #expect(try await api.dev.get("/v1/sessions", headers: [("Host", host)]).status == 200)
            }
        }
    }

    @Test func `Browsers may read responses only from configured origins`() async throws {
        try await ServedAPI.run {
            $0.corsOrigins = ["https://app.example"]
        } _: { api async throws in
            let allowed = try await api.dev.get("/v1/sessions", headers: [("Origin", "https://app.example")])
            #expect(allowed.fields["Access-Control-Allow-Origin"] == "https://app.example")
            let exposed = allowed.fields["Access-Control-Expose-Headers"] ?? ""
            for name in ["Content-Disposition", "RateLimit", "Idempotency-Replayed"] {
                #expect(exposed.contains(name), "\(exposed)")
            }
            let other = try await api.dev.get("/v1/sessions", headers: [("Origin", "https://evil.example")])
            #expect(other.fields["Access-Control-Allow-Origin"] == nil)
            let preflight = try await api.dev.with(key: nil).send(
                "OPTIONS", "/v1/sessions/x",
                headers: [("Origin", "https://app.example"), ("Access-Control-Request-Method", "PUT")])
            #expect(preflight.status == 204)
            #expect(preflight.fields["Access-Control-Allow-Methods"]?.contains("PUT") == true)
        }
    }

    @Test func `A key above its rate limit gets 429 and the time to wait`() async throws {
        try await ServedAPI.run(configured: { $0.rateLimit = 1 }) { api async throws in
            let refused = try await eventually("a refusal") {
                try await withThrowingTaskGroup(of: APIClient.Answer.self) { group in
                    for _ in 0..<4 { group.addTask { try await api.dev.get("/v1/sessions") } }
                    return try await group.first { $0.status == 429 }
                }
            }
            #expect(refused.code == "rate-limited")
            #expect(refused.fields["Retry-After"] == "1")
            #expect(try await api.admin.get("/v1/apps").status == 200)
        }
    }

    @Test func `A key may send one second's requests at once, and regains them with time`() {
        let time = ManualClock()
        let limiter = RateLimiter(perSecond: 2, clock: time.clock)
        func admit(_ key: String, _ count: Int) -> [Bool] { (0..<count).map { _ in limiter.admit(key).isAdmitted } }
        #expect(admit("a", 3) == [true, true, false])
        #expect(limiter.admit("b").remaining == 1)
        time.advance(by: 500)
        #expect(admit("a", 2) == [true, false])
        time.advance(by: 60_000)
        #expect(admit("a", 3) == [true, true, false])
    }

    @Test func `Responses to a limited key report its remaining requests`() async throws {
        try await ServedAPI.run(configured: { $0.rateLimit = 1000 }) { api async throws in
            for path in ["/v1/sessions", "/v1/sessions/none"] {
                let answer = try await api.dev.get(path)
                #expect(answer.fields["RateLimit-Policy"] == "\"requests\";q=1000;w=1", "\(path)")
                #expect(answer.fields["RateLimit"]?.hasPrefix("\"requests\";r=99") == true, "\(path)")
            }
            #expect(try await api.dev.get("/healthz").fields["RateLimit"] == nil)
        }
        try await ServedAPI.run { api async throws in
            #expect(try await api.dev.get("/v1/sessions").fields["RateLimit"] == nil)
        }
    }

    @Test func `A 404 names the missing resource`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session("photos")
            #expect(try await api.dev.post("/v1/sessions/photos/tasks", api.task()).status == 201)
            for (path, detail) in [
                ("/v1/sessions/none", "There is no session \"none\"."),
                ("/v1/sessions/none/tasks", "There is no session \"none\"."),
                ("/v1/sessions/photos/tasks/17", "There is no task 17 in session \"photos\"."),
                ("/v1/sessions/photos/tasks/17?wait=1", "There is no task 17 in session \"photos\"."),
                ("/v1/sessions/photos/tasks/x/content", "There is no task x in session \"photos\"."),
                ("/v1/launches/l", "There is no launch \"l\"."), ("/v1/questions/q", "There is no question \"q\"."),
                ("/v1/credentials/c", "There is no credential \"c\"."), ("/v1/bodies/b", "There is no body \"b\"."),
                ("/v1/nowhere", "There is no route with this path."),
            ] {
                let answer = try await api.dev.get(path)
                #expect(answer.code == "not-found" && answer.json["detail"].string == detail, "\(path): \(answer.text)")
            }
            let early = try await api.dev.get("/v1/sessions/photos/tasks/1/content")
            #expect(early.status == 404 && early.code == "content-not-ready")
            #expect(early.json["detail"].string == "Task 1 has no content yet: it is suspended.")
            #expect(try await api.admin.get("/v1/apps/a").json["detail"] == "There is no app \"a\".")
            let key = try await api.admin.delete("/v1/apps/dev/keys/k")
            #expect(key.json["detail"] == "There is no key \"k\" of app \"dev\".", "\(key.text)")
        }
    }

    @Test func `Lists are ordered by creation time, from either end`() async throws {
        try await ServedAPI.run { api async throws in
            for number in 1...5 {
                try await api.session("s\(number)")
                let task = api.task(client: "\(number)")
                #expect(try await api.dev.post("/v1/sessions/s1/tasks", task).status == 201)
                #expect(
                    try await api.dev.send(
                        "POST", "/v1/bodies", headers: [("Content-Type", "text/plain")], body: bytes("\(number)")
                    ).status == 201)
                let space: JSON = [
                    "host": .string("h\(number)"), "port": 443, "protocol": "https",
                    "authenticationMethod": "HTTPBearer",
                ]
                let credential: JSON = ["protectionSpace": space, "credential": ["token": "t"]]
                #expect(try await api.dev.post("/v1/credentials", credential).status == 201)
                if number > 1 {  // The first app and its first key exist.
                    let app: JSON = ["identifier": .string("app\(number)")]
                    #expect(try await api.admin.post("/v1/apps", app).status == 201)
                    #expect(try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["events"]]).status == 201)
                }
                // Times have a resolution of milliseconds.
                let time = api.service.clock.now
                _ = try await eventually("a later millisecond") { api.service.clock.now > time ? true : nil }
            }
            for (path, name) in [
                ("/v1/apps", "identifier"), ("/v1/apps/dev/keys", "keyIdentifier"), ("/v1/tasks", "clientTaskId"),
                ("/v1/credentials", "credentialIdentifier"), ("/v1/sessions", "identifier"),
                ("/v1/sessions/s1/tasks", "clientTaskId"), ("/v1/bodies", "bodyId"),
                ("/v1/sessions/s1/tasks?state=suspended", "clientTaskId"),
            ] {
                let client = path.hasPrefix("/v1/apps") ? api.admin : api.dev
                func list(_ query: String) async throws -> [JSON] {
                    let path = path + (path.contains("?") ? "&" : "?") + query
                    let first = try await client.get(path)
                    var items = first.json["items"].array ?? []
                    var cursor = first.json["nextCursor"].string
                    while let next = cursor {
                        let more = try await client.get(path + "&cursor=\(next)")
                        items += more.json["items"].array ?? []
                        cursor = more.json["nextCursor"].string
                    }
                    return items
                }
                let all = try await list("limit=2")
                let times = all.compactMap { $0["createdAt"].string }
                try #require(times.count == 5, "\(path)")
                #expect(times == times.sorted(), "\(path)")
                let names = all.map { $0[name] }
                #expect(try await list("order=asc").map { $0[name] } == names, "\(path)")
                #expect(try await list("order=desc&limit=2").map { $0[name] } == names.reversed(), "\(path)")
                let after = try await list("createdAfter=\(times[1])")
                #expect(after.map { $0[name] } == Array(names[2...]), "\(path)")
                let offset = times[1].replacing("Z", with: "+00:00")
                #expect(try await list("createdAfter=\(offset)").map { $0[name] } == Array(names[2...]), "\(path)")
                let between = try await list("createdAfter=\(times[0])&createdBefore=\(times[4])&order=desc&limit=1")
                #expect(between.map { $0[name] } == names[1...3].reversed(), "\(path)")
            }
            #expect(try await api.dev.get("/v1/sessions?order=up").parameters == ["order"])
            #expect(try await api.dev.get("/v1/launches?createdBefore=noon").parameters == ["createdBefore"])
            #expect(try await api.dev.get("/v1/launches?order=asc").status == 200)
        }
    }

    @Test func `A form is refused, and the problem names the accepted body`() async throws {
        try await ServedAPI.run { api async throws in
            let answer = try await api.dev.send(
                "POST", "/v1/bodies", headers: [("Content-Type", "multipart/form-data; boundary=x")],
                body: bytes("--x--"))
            #expect(answer.code == "unsupported-media-type", "\(answer.text)")
            #expect(answer.json["detail"].string?.contains("--data-binary") == true)
            #expect(try await api.dev.get("/v1/bodies").json["items"].array?.count == 0)
        }
    }

    @Test func `A cursor is valid only for the list that created it`() {
        let seal = CursorSeal(key: Array(repeating: 7, count: 32))
        let cursor = seal.cursor(at: 1 << 40, of: "a")
        #expect(seal.position(in: cursor, of: "a") == 1 << 40)
        #expect(seal.position(in: cursor, of: "b") == nil)
        #expect(CursorSeal(key: Array(repeating: 8, count: 32)).position(in: cursor, of: "a") == nil)
        #expect(seal.position(in: "", of: "a") == nil)
    }

    @Test func `The more specific range decides which type is accepted`() {
        let types = ["application/json", "text/event-stream"]
        #expect(MediaTypes.choose(types, accept: []) == "application/json")
        #expect(MediaTypes.choose(types, accept: ["text/event-stream"]) == "text/event-stream")
        #expect(MediaTypes.choose(types, accept: ["text/*;q=0.5, application/json;q=0.4"]) == "text/event-stream")
        #expect(MediaTypes.choose(types, accept: ["*/*, application/json;q=0"]) == "text/event-stream")
        #expect(MediaTypes.choose(types, accept: ["image/png"]) == nil)
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST:8080", true), ("127.3.2.1:1", true), ("[::1]", true), ("evil.example", false),
        ("localhost.evil.example", false), ("10.0.0.1", false), ("", false), ("[::1", false),
    ])
    func `Some hosts name this machine`(host: String, isOurs: Bool) {
        #expect(HostField.namesThisMachine(host) == isOurs)
    }
}
