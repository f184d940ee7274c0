import Base
import HTTPServer
import TestSupport
import Testing

struct RoutingTests {
    private let echo: Route.Handler = { request in
        let parameters = request.parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let query = request.query.map { "\($0.name):\($0.value)" }
        return text((parameters + query).joined(separator: "|"))
    }

    @Test func `A path matches its route, literals before parameters`() async throws {
        let routes = [
            Route("GET", "/v1/sessions/{identifier}/tasks/{n}", echo),
            Route("GET", "/v1/sessions/{identifier}/tasks/all") { _ in text("all") },
            Route("GET", "/") { _ in text("root") },
        ]
        try await withServer(routes) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/v1/sessions/a/tasks/7").text == "identifier=a|n=7")
                #expect(try client.exchange("GET", "/v1/sessions/a/tasks/all").text == "all")
                #expect(try client.exchange("GET", "/").text == "root")
                #expect(try client.exchange("GET", "/v1/sessions//tasks/7").status == 404)
                #expect(try client.exchange("GET", "/v1/sessions/a/tasks/7/").status == 404)
            }
        }
    }

    @Test func `A last parameter may match the rest of the path`() async throws {
        let routes = [
            Route("GET", "/v1/sets/{name}/files/{path...}", echo),
            Route("GET", "/v1/sets/{name}/files/all") { _ in text("all") },
        ]
        try await withServer(routes) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/v1/sets/s/files/a").text == "name=s|path=a")
                #expect(try client.exchange("GET", "/v1/sets/s/files/a/b%2Fc/d").text == "name=s|path=a/b/c/d")
                #expect(try client.exchange("GET", "/v1/sets/s/files/all").text == "all")
                #expect(try client.exchange("GET", "/v1/sets/s/files/").status == 404)
                #expect(try client.exchange("GET", "/v1/sets/s/files").status == 404)
                #expect(try client.exchange("PUT", "/v1/sets/s/files/a/b").status == 405)
            }
        }
    }

    @Test func `Segments and query are decoded once`() async throws {
        try await withServer([Route("GET", "/x/{a}", echo)]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/x/a%2Fb%252F?q=1+2%2B3&r").text == "a=a/b%2F|q:1 2+3|r:")
                #expect(try client.exchange("GET", "/x/%2e%2e").text == "a=..")
                #expect(try client.exchange("GET", "/x/../x/b").status == 404)
                #expect(try client.exchange("GET", "/x%2Fb").status == 404)
                for bad in ["/x/%zz", "/x/%4", "/x/%00", "/x/%ff", "/x/b?c=%", "/x/b%c0%af"] {
                    #expect(try client.exchange("GET", bad).status == 422, "\(bad)")
                }
                #expect(try client.exchange("GET", "/x/%C3%A9").text == "a=é")
            }
        }
    }

    @Test func `A target in absolute form is routed by its path, and its authority replaces Host`() async throws {
        let show: Route.Handler = { request in
            text("\(request.headers.all("Host").joined(separator: ",")) \(request.rawTarget)")
        }
        try await withServer([Route("GET", "/", show), Route("GET", "/x/{a}", show)]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "http://other:1/x/a%2Fb?c=d").text == "other:1 /x/a%2Fb?c=d")
                #expect(try client.exchange("GET", "HTTPS://[::1]/x/a").text == "[::1] /x/a")
                #expect(try client.exchange("GET", "http://other").text == "other /")
                #expect(try client.exchange("GET", "http://other?c=http://d").text == "other /?c=http://d")
                #expect(try client.exchange("GET", "/x/a").text == "localhost /x/a")
                try client.send("GET http://other/x/a HTTP/1.0\r\n\r\n")
                #expect(try client.answer().text == "other /x/a")
            }
        }
    }

    @Test func `Whitespace around a field's value is not part of it`() async throws {
        let route = Route("GET", "/x") { request in
            text(["A", "B", "C"].map { request.headers[$0] ?? "none" }.joined(separator: "|"))
        }
        try await withServer([route]) { server in
            try await onThread {
                let fields = "A: \t v w \t\r\nB:v\r\nC:   \r\nX-Request-Id: abc \r\n"
                let answer = try RawClient(server.port).exchange("GET", "/x", fields)
                #expect(answer.text == "v w|v|")
                #expect(answer["X-Request-Id"] == "abc")
            }
        }
    }

    @Test func `A handler runs on the executor of its route`() async throws {
        let executor = CountingExecutor()
        let routes = [
            Route.whole("POST", "/x", executor: { _ in executor }) { request in
                await Task.yield()
                return text("x")
            },
            Route("GET", "/y") { _ in text("y") },
        ]
        try await withServer(routes) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/y").text == "y")
                #expect(executor.count == 0)
                #expect(try client.exchange("POST", "/x", body: "a").text == "x")
                #expect(executor.count >= 2)
            }
        }
    }

    @Test func `HEAD is answered by GET without the body`() async throws {
        try await withServer([Route("GET", "/x") { _ in text("hello") }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let head = try client.exchange("HEAD", "/x")
                #expect(head.status == 200)
                #expect(head["Content-Length"] == "5")
                #expect(try client.exchange("GET", "/x").text == "hello")
            }
        }
    }

    @Test func `An unknown path gets 404, and a known path with another method 405 with Allow`() async throws {
        let routes = [
            Route("GET", "/x") { _ in text("") }, Route.whole("POST", "/x") { _ in text("") },
        ]
        try await withServer(routes) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/y").status == 404)
                let answer = try client.exchange("DELETE", "/x")
                #expect(answer.status == 405)
                #expect(answer["Allow"] == "GET, HEAD, OPTIONS, POST")
                #expect(try client.exchange("get", "/x").status == 405)
                let options = try client.exchange("OPTIONS", "/x")
                #expect(options.status == 204)
                #expect(options["Allow"] == "GET, HEAD, OPTIONS, POST")
                #expect(try client.exchange("OPTIONS", "*").status == 204)
                #expect(try client.exchange("POST", "/nowhere", body: "abc").status == 404)
                #expect(client.isClosed())
            }
        }
    }

    @Test func `Every response has the request's identifier`() async throws {
        try await withServer([Route("GET", "/x") { request in text(request.requestID) }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let given = try client.exchange("GET", "/x", "X-Request-Id: a.B-1_2\r\n")
                #expect(given["X-Request-Id"] == "a.B-1_2")
                #expect(given.text == "a.B-1_2")
                let made = try client.exchange("GET", "/x", "X-Request-Id: a b\r\n")
                #expect(made["X-Request-Id"]?.count == 16)
                #expect(try client.exchange("GET", "/none")["X-Request-Id"]?.count == 16)
                #expect(made["Date"] != nil)
            }
        }
    }

    @Test func `Connection close and HTTP 1.0 end the connection`() async throws {
        try await withServer([Route("GET", "/x") { _ in text("x") }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/x", "Connection: close\r\n").text == "x")
                #expect(client.isClosed())
                let old = try RawClient(server.port)
                try old.send("GET /x HTTP/1.0\r\n\r\n")
                #expect(try old.answer().text == "x")
                #expect(old.isClosed())
            }
        }
    }

    @Test func `A line break in a header does not become a header`() async throws {
        let route = Route("GET", "/x") { _ in
            HTTPResponse(status: 200, headers: [("A", "b\r\nInjected: c"), ("D", "e"), ("Content-Length", "9")])
        }
        try await withServer([route]) { server in
            try await onThread {
                let answer = try RawClient(server.port).exchange("GET", "/x")
                #expect(answer["Injected"] == nil)
                #expect(answer["A"] == nil)
                #expect(answer["D"] == "e")
                #expect(answer["Content-Length"] == "0")
            }
        }
    }

    @Test func `A request is observed with its outcome`() async throws {
        let seen = Locked<[Observation]>([])
        let route = Route.whole("POST", "/x/{a}") { _ in text("four", status: 201) }
        try await withServer([route], seen: seen) { server in
            try await onThread { _ = try RawClient(server.port).exchange("POST", "/x/1", body: "12345") }
            #expect(await eventually { seen.read().count == 1 })
        }
        let observation = try #require(seen.read().first)
        #expect(observation.route == "/x/{a}")
        #expect(observation.status == 201)
        #expect(observation.bytesReceived == 5)
        #expect(observation.bytesSent == 4)
    }

    @Test func `500 concurrent requests all get responses`() async throws {
        let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
        let route = Route.whole("POST", "/x/{n}") { request in
            // No handler responds before all have started.
            await withCheckedContinuation { continuation in
                let all = waiting.withLock { waiting in
                    waiting.append(continuation)
                    return waiting.count == 500 ? waiting : []
                }
                for continuation in all { continuation.resume() }
            }
            guard case .bytes(let bytes) = request.body else { return text("none") }
            return text((request.parameters["n"] ?? "") + String(decoding: bytes, as: UTF8.self))
        }
        try await withServer([route]) { server in
            let answers = try await onThread {
                let clients = try (0..<500).map { _ in try RawClient(server.port) }
                for (n, client) in clients.enumerated() { try client.request("POST", "/x/\(n)", body: "-\(n)") }
                return try clients.map { try $0.answer().text }
            }
            #expect(answers == (0..<500).map { "\($0)-\($0)" })
        }
    }
}
