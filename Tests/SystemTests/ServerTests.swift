import Core
import Glibc
import TestSupport
import Testing

/// docs/configuration.md and docs/api.md: the process, and the rules of every route.
@Suite struct ServerTests {
    @Test func `The service prints its address, and is live and ready without a key`() async throws {
        let service = try await ServiceProcess()
        #expect(service.output == "urlsessiond listening on http://127.0.0.1:\(service.port)\n")
        for path in ["/healthz", "/readyz", "/openapi.json", "/openapi.yaml"] {
            expect(try await service.api.with(key: nil).get(path), 200)
        }
        #expect(try await service.api.get("/openapi.json").json["openapi"].string?.hasPrefix("3.1") == true)
    }

    @Test func `SIGTERM ends the process with 0 and charges no attempt`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 50_000), turns: [[.holdBody(after: 10_000, gate)]])
        let number = try await scene.download("/a")
        try await eventually("the transfer runs") { gate.waiting == 1 }
        let status = try await scene.service.terminate()
        #expect(status == .exited(0), "\(scene.service.errors)")
        #expect(!scene.service.errors.contains("could not be measured"), "What is over is not measured.")
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 50_000))
    }

    @Test func `A second instance on the same data directory refuses to start`() async throws {
        let service = try await ServiceProcess()
        let second = try await ServiceProcess.run(
            ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", service.data.file("data")])
        #expect(second.status == .exited(75))
        #expect(second.output.isEmpty)
        #expect(second.errors.contains("another") || second.errors.contains("in use"), "\(second.errors)")
        expect(try await service.api.get("/readyz"), 200)
    }

    @Test func `A data directory that cannot be locked is reported with the true reason`() async throws {
        let folder = TemporaryFolder()
        folder.makeFolder("lock")
        let words = [["serve", "--dev", "--listen", "127.0.0.1:0"], ["import", folder.file("none")]]
        for arguments in words {
            let refused = try await ServiceProcess.run(arguments + ["--data-dir", folder.path])
            #expect(refused.status == .exited(73), "\(refused.errors)")
            #expect(refused.errors.contains("\(folder.path)/lock") && refused.errors.contains("Is a directory"))
            #expect(!refused.errors.contains("in use"), "\(refused.errors)")
        }
    }

    @Test(.enabled(if: Nginx.isAvailable, "openssl is not installed: scripts/install-packages test"))
    func `check-config reads the certificate and its key, and reports their faults`() async throws {
        let folder = TemporaryFolder()
        _ = try await ChildProcess.run([
            "/bin/sh", "-c",
            """
            for name in a b; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
            -subj /CN=test -keyout \(folder.path)/$name.key -out \(folder.path)/$name.pem || exit 1; done
            """,
        ])
        func check(
            _ certificate: String, _ key: String
        ) async throws -> (status: ServiceProcess.ExitStatus, output: String, errors: String) {
            try await ServiceProcess.run([
                "check-config", "--tls-certificate", folder.file(certificate), "--tls-key", folder.file(key),
            ])
        }
        #expect(try await check("a.pem", "a.key").status == .exited(0))
        let missing = try await check("none.pem", "none.key")
        #expect(missing.status == .exited(64) && missing.output.isEmpty, "\(missing.output)")
        for name in ["none.pem", "none.key"] {
            #expect(missing.errors.contains(folder.file(name)), "\(missing.errors)")
        }
        for (certificate, key) in [("a.pem", "b.key"), ("a.key", "a.key"), ("a.pem", "a.pem")] {
            let refused = try await check(certificate, key)
            #expect(refused.status == .exited(64), "\(certificate) \(key): \(refused.errors)")
            #expect(refused.errors.contains(folder.file(certificate)), "\(refused.errors)")
        }
    }

    @Test func `check-config prints the effective settings, flags before environment before file`() async throws {
        let folder = TemporaryFolder()
        let file = folder.write(
            Array(
                #"{"max-transfers": 31, "max-transfers-per-host": 32, "transfer-threads": 33, "webhook-timeout": "7s"}"#
                    .utf8), to: "c.json")
        let result = try await ServiceProcess.run(
            ["check-config", "--config", file, "--data-dir", folder.file("data"), "--max-transfers", "51"],
            environment: ["URLSESSIOND_MAX_TRANSFERS": "41", "URLSESSIOND_MAX_TRANSFERS_PER_HOST": "42"])
        #expect(result.status == .exited(0), "\(result.errors)")
        let lines = result.output.split(separator: "\n")
        for line in [
            "max-transfers = 51", "max-transfers-per-host = 42", "transfer-threads = 33", "webhook-timeout = 7s",
        ] {
            #expect(lines.contains { $0.hasPrefix(line) }, "\(line): \(result.output)")
        }
        let standard = try await ServiceProcess.run(["check-config"])
        #expect(standard.output.split(separator: "\n").contains("webhook-timeout = 15s"), "\(standard.output)")
    }

    @Test(arguments: [["check-config"], ["help"], ["serve", "--help"], ["--version"], ["man"]])
    func `A command whose output cannot be written fails`(_ words: [String]) async throws {
        let failed = try await #require(throws: ChildProcess.Failed.self) {
            try await ChildProcess.run(
                ["/bin/sh", "-c", "exec \"$@\" > /dev/full", "sh", ServiceProcess.binary] + words)
        }
        #expect(failed.status >> 8 == 74 && failed.errors.contains("No space left on device"), "\(failed)")
    }

    @Test func `A service that cannot print its address serves all the same, and logs it`() async throws {
        let folder = TemporaryFolder()
        let port = try Socket.listen(port: 0).port
        let words = ["serve", "--dev", "--listen", "127.0.0.1:\(port)", "--data-dir", folder.file("data")]
        let service = try await ChildProcess(
            ["/bin/sh", "-c", "exec \"$@\" > /dev/full 2> '\(folder.file("log"))'", "sh", ServiceProcess.binary] + words
        )
        try await eventually("it serves") { (try? await APIClient(port: port).get("/healthz").status) == 200 }
        try await eventually("it is logged") {
            String(decoding: readFile(folder.file("log")) ?? [], as: UTF8.self).contains(
                "could not be printed to standard output")
        }
        withExtendedLifetime(service) {}
    }

    @Test(arguments: [
        ("{\n  \"listen\": \"127.0.0.1:0\",\n  \"äö\": 1 2\n}\n", "c.json:3:11: "),
        ("[]", "c.json: is not one JSON object"),
        ("", "c.json:1:1: "), (#"{"listen": "a", "listen": "b"}"#, "c.json: listen: "),
    ])
    func `A fault in the file of settings is reported with its position`(
        _ text: String, _ expected: String
    ) async throws {
        let folder = TemporaryFolder()
        let file = folder.write(Array(text.utf8), to: "c.json")
        let result = try await ServiceProcess.run(["check-config", "--config", file])
        #expect(result.status == .exited(64) && result.errors.contains(expected), "\(result.errors)")
    }

    @Test func `The first start prints the path of the operator's key, and not the key`() async throws {
        let service = try await ServiceProcess(dev: false)
        let path = service.data.file("data/admin.key")
        let line = "the operator's key was created"
        try await eventually("the log reports it") { service.errors.contains(line) }
        #expect(service.errors.contains(path))
        let key = String(decoding: try #require(readFile(path)).dropLast(), as: UTF8.self)
        #expect(key.hasPrefix("usd_admin_") && !service.errors.contains(key))
        _ = try await service.terminate()
        try await service.start()
        _ = try await service.terminate()
        #expect(!service.errors.contains(line))
    }

    @Test func `All wrong settings are reported at once`() async throws {
        let result = try await ServiceProcess.run(
            ["check-config", "--max-transfers", "many", "--no-such-flag", "1", "--log-format", "poem"])
        #expect(result.status != .exited(0))
        for name in ["max-transfers", "no-such-flag", "log-format"] {
            #expect((result.errors + result.output).contains(name), "\(name): \(result.errors)")
        }
    }

    @Test func `CORS origins are valid origins, or all`() async throws {
        for origin in ["app.example", "https://app.example/", "https://App.example", "https://a.example:x", "null"] {
            let refused = try await ServiceProcess.run(["check-config", "--cors-origin", origin])
            let isTold = refused.errors.contains("cors-origin: \(origin)")
            #expect(refused.status == .exited(64) && isTold, "\(refused.errors)")
        }
        for origin in ["*", "https://app.example", "http://127.0.0.1:3000", "http://[::1]:80"] {
            let result = try await ServiceProcess.run(["check-config", "--cors-origin", origin])
            #expect(result.status == .exited(0), "\(origin): \(result.errors)")
        }
    }

    @Test func `The public URL is a URL to which paths can be appended`() async throws {
        for url in ["x", "ftp://a.test", "http://", "http://a.test/?b", "http://a.test#b", "http://u@a.test"] {
            let refused = try await ServiceProcess.run(["check-config", "--public-url", url])
            let isTold = refused.errors.contains("public-url: ")
            #expect(refused.status == .exited(64) && isTold, "\(url): \(refused.errors)")
        }
        for url in ["https://a.example", "http://127.0.0.1:3000/base/", "http://[::1]:80"] {
            let result = try await ServiceProcess.run(["check-config", "--public-url", url])
            #expect(result.status == .exited(0), "\(url): \(result.errors)")
        }
    }

    @Test func `Development mode may reach private addresses of both families`() async throws {
        let result = try await ServiceProcess.run(["check-config", "--dev"])
        let line = result.output.split(separator: "\n").first { $0.hasPrefix("allow-egress = ") }
        let ranges = line?.split(separator: " ").last?.split(separator: ",").map(String.init) ?? []
        #expect(Set(["10.0.0.0/8", "fc00::/7"]).isSubset(of: ranges), "\(result.output)")
    }

    @Test func `Development mode listens on loopback alone`() async throws {
        let folder = TemporaryFolder()
        let result = try await ServiceProcess.run(
            ["serve", "--dev", "--listen", "0.0.0.0:0", "--data-dir", folder.file("data")])
        #expect(result.status != .exited(0))
        #expect(!result.errors.isEmpty)
    }

    @Test func `Without development mode a key is created, with mode 0600, and works`() async throws {
        let service = try await ServiceProcess(dev: false)
        let key = String(decoding: readFile(service.data.file("data/admin.key")) ?? [], as: UTF8.self)
        let trimmed = String(key.prefix { $0 != "\n" })
        expect(try await service.api.with(key: trimmed).get("/v1/apps"), 200)
        for wrong in ["dev", "dev-admin", String(trimmed.dropLast())] {
            expectProblem(try await service.api.with(key: wrong).get("/v1/apps"), 401, "unauthorized")
        }
    }

    @Test func `Unintelligible requests get a problem`() async throws {
        let scene = try await Scene()
        let api = scene.api
        let tasks = "/v1/sessions/s/tasks"
        let json = [("Content-Type", "application/json")]
        func post(_ text: String, _ headers: [(String, String)]) async throws -> APIClient.Answer {
            try await api.send("POST", tasks, headers: headers, body: Array(text.utf8))
        }
        expectProblem(try await api.get("/v1/nowhere"), 404, "not-found")
        #expect(try await api.get("/v1/nowhere").json["instance"] == "/v1/nowhere")
        expectProblem(try await api.get("/v1/sessions/unknown"), 404, "not-found")
        expectProblem(try await api.with(key: nil).get("/v1/sessions"), 401, "unauthorized")
        expectProblem(try await api.with(key: "wrong").get("/v1/sessions"), 401, "unauthorized")
        let wrongMethod = try await api.delete("/v1/sessions")
        expectProblem(wrongMethod, 405, "method-not-allowed")
        let allowed = wrongMethod.fields["Allow"] ?? ""
        #expect(allowed.contains("GET") && allowed.contains("POST"), "\(allowed)")
        expectProblem(try await post("{}", [("Content-Type", "text/plain")]), 415, "unsupported-media-type")
        expectProblem(try await post("{}", json + [("Content-Encoding", "gzip")]), 415, "unsupported-media-type")
        for text in ["{", "{\"kind\":\"download\",}", "", "{} {}", "{'a':1}", "\u{FEFF}{}"] {
            expectProblem(try await post(text, json), 400, "malformed-json")
        }
        for text in ["[]", "null", "\"a\"", "1"] { expectProblem(try await post(text, json), 422, "invalid-value") }
        expectProblem(
            try await post(#"{"kind":"download","kind":"upload"}"#, json), 422, "duplicate-member", pointer: "/kind")
        let unknown = #"{"kind":"download","request":{"url":"http://a.example/","urll":"x"}}"#
        expectProblem(try await post(unknown, json), 422, "unknown-member", pointer: "/request/urll")
        expectProblem(
            try await api.get("/v1/sessions", headers: [("Accept", "text/html")]), 406, "not-acceptable")
        let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
        #expect([400, 422].contains(try await post(deep, json).status))
    }

    @Test func `All faults of a body are reported at once`() async throws {
        let scene = try await Scene()
        let task: JSON = [
            "kind": "download", "request": ["url": "ftp://a.example/"], "priority": 7, "metadata": ["a": 1],
            "earliestBeginDate": "tomorrow",
        ]
        let answer = try await scene.api.post("/v1/sessions/s/tasks", task)
        expectProblem(answer, 422, "invalid-value", pointer: "/request/url")
        for pointer in ["/priority", "/metadata/a", "/earliestBeginDate"] {
            #expect(answer.pointers.contains(pointer), "\(answer.text)")
        }
    }

    @Test func `An oversized body is refused before it is read`() async throws {
        let scene = try await Scene()
        let large = [UInt8](repeating: 0x20, count: 1 << 20 + 1)
        let headers = [("Content-Type", "application/json")]
        expectProblem(
            try await scene.api.send("POST", "/v1/sessions", headers: headers, body: large), 413, "payload-too-large")
        let long = "/v1/sessions/" + String(repeating: "a", count: 9000)
        expect(try await scene.api.get(long), 414)
        let wide = try await scene.api.get("/v1/app", headers: [("X-Wide", String(repeating: "a", count: 40_000))])
        expect(wide, 431)
        expect(try await scene.api.get("/readyz"), 200)
    }

    @Test func `Ambiguous framings are refused and the connection is closed`() async throws {
        let service = try await ServiceProcess()
        let head =
            "POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dev\r\n"
            + "Content-Type: application/json\r\n"
        let next = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for framing in [
            "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: xchunked\r\n\r\n{}",
        ] {
            let bytes = try await service.api.raw(Array((head + framing + next).utf8))
            let text = String(decoding: bytes, as: UTF8.self)
            let answers = text.components(of: "HTTP/1.1 ")
            #expect(answers == 1, "\(framing): \(text)")
            #expect(text.hasPrefix("HTTP/1.1 400") || text.hasPrefix("HTTP/1.1 501"), "\(framing): \(text)")
        }
        #expect(try await service.api.get("/v1/sessions").json["items"].array?.isEmpty == true)
    }

    @Test func `In development mode a foreign Host gets 421`() async throws {
        let service = try await ServiceProcess()
        for host in ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.1"] {
            expectProblem(
                try await service.api.get("/v1/sessions", headers: [("Host", host)]), 421, "misdirected-request")
        }
        for host in ["localhost", "localhost:1", "127.0.0.1", "[::1]:80"] {
            expect(try await service.api.get("/v1/sessions", headers: [("Host", host)]), 200)
        }
        // The authority of a target replaces Host (RFC 9112, section 3.2.2).
        expectProblem(
            try await service.api.get("http://evil.example/v1/sessions", headers: [("Host", "localhost")]), 421,
            "misdirected-request")
        expect(
            try await service.api.get("http://localhost:1/v1/sessions", headers: [("Host", "evil.example")]), 200)
    }

    @Test func `Whitespace after the value of a field is not part of it`() async throws {
        let service = try await ServiceProcess()
        let fields = "Host: localhost \r\nAuthorization: Bearer dev\t \r\nConnection: close\r\n"
        let bytes = try await service.api.raw(Array("GET /v1/app HTTP/1.1\r\n\(fields)\r\n".utf8))
        let answer = String(decoding: bytes, as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
    }

    @Test func `A client that does not read its response delays the end at most to the limit`() async throws {
        let scene = try await Scene(["--shutdown-timeout", "1s"])
        scene.origin.serve("/a", .generated(seed: 1, length: 32 << 20))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let port = scene.service.ownPort
        let line = "GET /v1/sessions/s/tasks/\(number)/content HTTP/1.1\r\n"
        let client = try await onThread {
            let client = try Socket.connect(port: port, receiveBuffer: 65_536)
            client.setTimeout(.seconds(60))
            try client.send("\(line)Host: localhost\r\nAuthorization: Bearer dev\r\n\r\n")
            // The response is in flight.
            _ = try client.receive(limit: 1000)
            return client
        }
        let start = ContinuousClock.now
        #expect(try await scene.service.terminate() == .exited(0), "\(scene.service.errors)")
        #expect(ContinuousClock.now - start < .seconds(2))
        withExtendedLifetime(client) {}
    }

    @Test func `Every response has a request identifier`() async throws {
        let service = try await ServiceProcess()
        let given = try await service.api.get("/v1/sessions", headers: [("X-Request-Id", "my-id_1.2")])
        #expect(given.fields["X-Request-Id"] == "my-id_1.2")
        for wrong in ["a b", "a;b", String(repeating: "a", count: 129)] {
            let answer = try await service.api.get("/v1/nowhere", headers: [("X-Request-Id", wrong)])
            let identifier = try #require(answer.fields["X-Request-Id"])
            #expect(identifier != wrong && !identifier.isEmpty)
        }
        #expect(try await service.api.get("/healthz").fields.contains("X-Request-Id"))
    }

    @Test func `HEAD has the response of GET, without the body`() async throws {
        let scene = try await Scene()
        for path in ["/v1/sessions", "/v1/sessions/s", "/v1/app", "/healthz", "/v1/sessions/s/events"] {
            let get = try await scene.api.get(path)
            let head = try await scene.api.send("HEAD", path)
            #expect(head.status == get.status && head.body.isEmpty)
            #expect(head.fields["ETag"] == get.fields["ETag"])
            #expect(head.fields["Content-Type"] == get.fields["Content-Type"])
        }
        expect(try await scene.api.send("HEAD", "/v1/sessions/unknown"), 404)
    }

    @Test func `Entity tags spare reads and protect changes`() async throws {
        let scene = try await Scene()
        let path = "/v1/sessions/s"
        let first = try await scene.api.get(path)
        let etag = try #require(first.etag)
        #expect(etag.hasPrefix("\""))
        let same = try await scene.api.get(path, headers: [("If-None-Match", etag)])
        #expect(same.status == 304 && same.body.isEmpty)
        let change: JSON = ["sessionDescription": "x"]
        expectProblem(
            try await scene.api.patch(path, change, headers: [("If-Match", "\"no\"")]), 412, "precondition-failed")
        let changed = try await scene.api.patch(path, change, headers: [("If-Match", etag)])
        expect(changed, 200)
        #expect(changed.etag != etag)
        expect(try await scene.api.get(path, headers: [("If-None-Match", etag)]), 200)
        expectProblem(
            try await scene.api.patch(path, change, headers: [("If-Match", etag)]), 412, "precondition-failed")
    }

    @Test func `A change to the same values keeps the entity tag`() async throws {
        let scene = try await Scene()
        try await scene.create([
            "kind": "download", "request": ["url": .string(scene.origin.url("/a"))], "state": "suspended",
        ])
        let changes: [(String, JSON)] = [
            ("/v1/sessions/s", ["sessionDescription": "x"]), ("/v1/app", ["webhook": ["includeEvents": 3]]),
            ("/v1/sessions/s/tasks/1", ["taskDescription": "x", "priority": 0.25]),
        ]
        for (path, change) in changes {
            let old = try #require(try await scene.api.get(path).etag)
            let new = try #require(try await scene.api.patch(path, change).etag)
            #expect(new != old)
            for same in [change, [:]] { #expect(try await scene.api.patch(path, same).etag == new, "\(path)") }
        }
    }

    @Test func `A request with the same idempotency key runs once`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        let path = "/v1/sessions/s/tasks"
        let key = [("Idempotency-Key", "k-1")]
        let first = try await scene.api.post(path, scene.downloadOf("/a"), headers: key)
        expect(first, 201)
        let again = try await scene.api.post(path, scene.downloadOf("/a"), headers: key)
        expect(again, 201)
        #expect(again.json["taskIdentifier"] == first.json["taskIdentifier"])
        #expect(again.fields["Location"] == first.fields["Location"])
        expectProblem(
            try await scene.api.post(path, scene.downloadOf("/b"), headers: key), 422, "idempotency-mismatch")
        expectProblem(
            try await scene.api.post(path + "/batch", ["tasks": [scene.downloadOf("/a")]], headers: key), 422,
            "idempotency-mismatch")
        #expect(try await scene.api.get(path).json["items"].array?.count == 1)
        try await scene.service.restart()
        let later = try await scene.api.post(path, scene.downloadOf("/a"), headers: key)
        #expect(later.status == 201 && later.json["taskIdentifier"] == first.json["taskIdentifier"], "\(later.text)")
    }

    @Test func `Only successes are stored under an idempotency key, and a batch keeps its identifiers`() async throws {
        let scene = try await Scene()
        let path = "/v1/sessions/s/tasks/batch?return=minimal"
        let key = [("Idempotency-Key", "k-2")]
        expect(try await scene.api.post(path, ["tasks": [["kind": "nonsense"]]], headers: key), 422)
        let tasks: JSON = [
            "tasks": [
                scene.downloadOf("/a", ["state": "suspended"]), scene.downloadOf("/b", ["state": "suspended"]),
            ]
        ]
        let first = try await scene.api.post(path, tasks, headers: key)
        expect(first, 201)
        let again = try await scene.api.post(path, tasks, headers: key)
        #expect(again.json == first.json, "\(again.text)")
        #expect(try await scene.session()["taskCounts"]["suspended"] == 2)
    }

    @Test func `A hundred equal concurrent requests create one task`() async throws {
        let scene = try await Scene()
        let task = scene.downloadOf("/a", ["state": "suspended"])
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    try await scene.api.post("/v1/sessions/s/tasks", task, headers: [("Idempotency-Key", "k")]).status
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(statuses).isSubset(of: [201, 409]) && statuses.contains(201), "\(Set(statuses))")
        #expect(try await scene.session()["taskCounts"]["suspended"] == 1)
    }

    @Test func `Lists are returned in pages`() async throws {
        let scene = try await Scene(configuration: nil)
        for number in 0..<5 { try await scene.makeSession("page-\(number)") }
        var seen: [String] = []
        var path = "/v1/sessions?limit=2"
        for page in 1...3 {
            let answer = try await scene.api.get(path)
            expect(answer, 200)
            seen += (answer.json["items"].array ?? []).compactMap { $0["identifier"].string }
            let cursor = answer.json["nextCursor"].string
            #expect((cursor == nil) == (page == 3), "\(answer.text)")
            #expect((answer.fields["Link"]?.contains("rel=\"next\"") ?? false) == (page < 3))
            path = "/v1/sessions?limit=2&cursor=\(cursor ?? "")"
        }
        #expect(seen.sorted() == (0..<5).map { "page-\($0)" })
        for query in ["limit=0", "limit=1001", "limit=x", "limit=-1", "cursor=forged", "nonsense=1"] {
            expectProblem(try await scene.api.get("/v1/sessions?\(query)"), 422, "invalid-value")
        }
    }

    @Test func `Each segment of a path is decoded once`() async throws {
        let scene = try await Scene(configuration: nil)
        let answer = try await scene.api.put("/v1/sessions/a%3Ab%2Bc")
        expect(answer, 201)
        #expect(answer.json["identifier"] == "a:b+c")
        expect(try await scene.api.get("/v1/sessions/a:b+c"), 200)
        for path in ["/v1/sessions/a%253Ab%252Bc", "/v1/sessions/..%2Fapps", "/v1/apps/../sessions", "//v1/sessions"] {
            expect(try await scene.api.get(path), 404)
        }
        for path in ["/v1/sessions/%zz", "/v1/sessions/s/tasks/%00", "/v1/sessions?limit=%0"] {
            let answer = try await scene.api.get(path)
            expectProblem(answer, 422, "invalid-value")
        }
    }

    @Test func `A wait for a task ends with its completion, and with a newer revision`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        try await eventually("it is held") { gate.waiting == 1 }
        let early = try await scene.api.get("/v1/sessions/s/tasks/\(number)?wait=1")
        #expect(early.status == 200 && early.json["state"] == "running", "\(early.text)")
        let revision = try #require(early.json["revision"].int)
        async let newer = scene.api.get("/v1/sessions/s/tasks/\(number)?wait=30&revision=\(revision)")
        async let done = scene.api.get("/v1/sessions/s/tasks/\(number)?wait=30")
        let changed = try await scene.api.patch("/v1/sessions/s/tasks/\(number)", ["taskDescription": "new"])
        expect(changed, 200)
        #expect(try await newer.json["revision"].int ?? 0 > revision)
        gate.open()
        #expect(try await done.json["state"] == "completed")
        expectProblem(try await scene.api.get("/v1/sessions/s/tasks/1?wait=61"), 422, "invalid-value")
    }

    @Test func `Metrics need the admin key, or their own listener`() async throws {
        let scene = try await Scene()
        let metrics = try await scene.admin.get("/metrics")
        expect(metrics, 200)
        #expect(metrics.text.contains("# TYPE "))
        expect(try await scene.api.with(key: nil).get("/metrics"), 401)
        expectProblem(try await scene.api.get("/metrics"), 403, "insufficient-scope")
    }

    @Test func `Above the rate limit a key has to wait`() async throws {
        let service = try await ServiceProcess(["--rate-limit", "1"])
        var limited: APIClient.Answer?
        for _ in 0..<200 where limited == nil {
            let answer = try await service.api.get("/v1/sessions")
            if answer.status != 200 { limited = answer }
        }
        let answer = try #require(limited)
        expectProblem(answer, 429, "rate-limited")
        #expect(answer.fields["Retry-After"].flatMap { Int($0) } ?? 0 >= 1)
        expect(try await service.api.get("/healthz"), 200)
    }

    @Test func `Browsers of one origin may send requests`() async throws {
        let service = try await ServiceProcess(["--cors-origin", "https://a.example"])
        let preflight = try await service.api.with(key: nil).send(
            "OPTIONS", "/v1/sessions",
            headers: [("Origin", "https://a.example"), ("Access-Control-Request-Method", "POST")])
        #expect([200, 204].contains(preflight.status), "\(preflight.text)")
        #expect(preflight.fields["Access-Control-Allow-Origin"] == "https://a.example")
        let other = try await service.api.get("/v1/sessions", headers: [("Origin", "https://b.example")])
        #expect(!other.fields.contains("Access-Control-Allow-Origin"))
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `A database that has lost all its bytes is not mistaken for a new one`() async throws {
        let service = try await ServiceProcess()
        try await service.terminate()
        let path = service.data.file("data/urlsessiond.db")
        try #require(truncate(path, 0) == 0)
        let refused = await #expect(throws: ServiceProcess.NotListening.self) { try await service.start() }
        #expect(refused?.status == .exited(73), "\(refused?.description ?? "")")
        #expect(refused?.errors.contains("is empty, although the folder was used") == true)
        unlink(path)
        try await service.start()
    }

    @Test func `A connection serves many requests`() async throws {
        let service = try await ServiceProcess()
        let request = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        let bytes = try await service.api.raw(Array("\(request)\r\n\(request)Connection: close\r\n\r\n".utf8))
        #expect(String(decoding: bytes, as: UTF8.self).components(of: "HTTP/1.1 200") == 2)
    }
}

extension String {
    /// The number of occurrences of a text.
    func components(of text: String) -> Int { ranges(of: text).count }
}
