import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct StreamTests {
    /// Reads a whole body and returns its length and sum.
    private let sum: Route.Handler = { request in
        guard case .stream(let stream) = request.body else { return text("no stream", status: 500) }
        var count = 0
        var sum = 0
        do {
            while let bytes = try await stream.next() {
                count += bytes.count
                for byte in bytes { sum &+= Int(byte) }
            }
        } catch { return text("\(error)", status: 500) }
        return text("\(count) \(sum)")
    }

    @Test func `50 MiB pass through a streaming handler in small pieces`() async throws {
        let largest = Locked(0)
        let route = Route("PUT", "/x", body: .stream) { request in
            guard case .stream(let stream) = request.body else { return text("") }
            var count = 0
            while let bytes = try? await stream.next() {
                count += bytes.count
                largest.withLock { $0 = max($0, bytes.count) }
            }
            return text("\(count)")
        }
        try await withServer([route]) { server in
            let answer = try await onThread {
                let client = try RawClient(server.port)
                let block = [UInt8](repeating: 1, count: 1 << 20)
                try client.request("PUT", "/x", "Content-Length: \(50 << 20)\r\n")
                for _ in 0..<50 { try client.send(block) }
                return try client.answer().text
            }
            #expect(answer == "\(50 << 20)")
            #expect(largest.read() < 400_000)
        }
    }

    @Test func `A slow reader causes backpressure to the client`() async throws {
        let gate = Locked(false)
        let route = Route("PUT", "/x", body: .stream) { request in
            guard case .stream(let stream) = request.body else { return text("") }
            _ = try? await stream.next()
            _ = await eventually { gate.read() }
            var count = 0
            while let bytes = try? await stream.next() { count += bytes.count }
            return text("more: \(count > 0)")
        }
        try await withServer([route]) { server in
            let (sent, answer) = try await onThread {
                let client = try RawClient(server.port)
                var limit = timeval(tv_sec: 0, tv_usec: 300_000)
                setsockopt(client.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
                try client.request("PUT", "/x", "Transfer-Encoding: chunked\r\n")
                try client.send("\(String(64 << 20, radix: 16))\r\n")
                var sent = 0
                let block = [UInt8](repeating: 1, count: 1 << 20)
                while sent < 64 << 20 {
                    let count = Glibc.send(client.descriptor, block, block.count, Int32(MSG_NOSIGNAL))
                    guard count > 0 else { break }
                    sent += count
                }
                let paused = sent
                gate.withLock { $0 = true }
                limit.tv_sec = 60
                setsockopt(client.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
                try client.send([UInt8](repeating: 1, count: (64 << 20) - sent))
                try client.send("\r\n0\r\n\r\n")
                return (paused, try client.answer().text)
            }
            #expect(sent < 32 << 20)
            #expect(answer == "more: true")
        }
    }

    @Test func `A truncated body is an error, not an end`() async throws {
        let outcome = Locked("")
        let route = Route("PUT", "/x", body: .stream) { request in
            guard case .stream(let stream) = request.body else { return text("") }
            do {
                while try await stream.next() != nil {}
                outcome.withLock { $0 = "whole" }
            } catch { outcome.withLock { $0 = "\(error)" } }
            return text("")
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("PUT", "/x", "Content-Length: 1000\r\n")
                try client.send("abc")
            }
            #expect(await eventually { outcome.read() == "cutOff" })
        }
    }

    @Test func `A handler may respond before the body, within it and without reading it`() async throws {
        let hasBegun = Locked(false)
        let routes = [
            Route("PUT", "/before", body: .stream) { _ in text("no", status: 401) },
            Route("PUT", "/later", body: .stream) { _ in
                _ = await eventually { hasBegun.read() }
                return text("no", status: 403)
            },
            Route("PUT", "/middle", body: .stream) { request in
                if case .stream(let stream) = request.body { _ = try? await stream.next() }
                return text("enough", status: 409)
            },
        ]
        try await withServer(routes) { server in
            try await onThread {
                for (path, status) in [("/before", 401), ("/later", 403), ("/middle", 409)] {
                    let client = try RawClient(server.port)
                    try client.request("PUT", path, "Content-Length: 3000000\r\n")
                    for _ in 0..<30 {
                        try? client.send([UInt8](repeating: 1, count: 100_000))
                        if path == "/later" { hasBegun.withLock { $0 = true } }
                    }
                    #expect(try client.answer().status == status, "\(path)")
                }
                let client = try RawClient(server.port)
                try client.request("PUT", "/later", "Expect: 100-continue\r\nContent-Length: 3000000\r\n")
                #expect(try client.answer().status == 403)
                let empty = try RawClient(server.port)
                #expect(try empty.exchange("PUT", "/before", body: "").status == 401)
                #expect(try empty.exchange("PUT", "/middle").status == 409)
            }
        }
    }

    @Test func `100-continue is sent when the handler reads the body`() async throws {
        try await withServer([Route("PUT", "/x", body: .stream, sum)]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("PUT", "/x", "Expect: 100-continue\r\nContent-Length: 3\r\n")
                #expect(try client.head() == ["HTTP/1.1 100 Continue"])
                try client.send("abc")
                #expect(try client.answer().text == "3 294")
                #expect(try client.exchange("PUT", "/x", body: "ab").text == "2 195")
            }
        }
    }

    @Test func `Events reach the client as they are written`() async throws {
        let gate = Locked(0)
        let route = Route("GET", "/events") { _ in
            HTTPResponse(
                status: 200, headers: [("Content-Type", "text/event-stream")],
                body: .stream { writer in
                    for n in 0..<5 {
                        _ = await eventually { gate.read() >= n }
                        try? await writer.write(Array("event \(n)".utf8))
                    }
                })
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/events")
                #expect(try client.head()[0] == "HTTP/1.1 200 OK")
                for n in 0..<5 {
                    #expect(try client.chunk() == "event \(n)")
                    gate.withLock { $0 = n + 1 }
                }
                #expect(try client.chunk() == "")
                try client.request("GET", "/events")
                #expect(try client.answer().text == "event 0event 1event 2event 3event 4")
            }
        }
    }

    @Test func `The head of a stream is sent before its first byte`() async throws {
        let (gate, ended) = (Locked(false), Locked(false))
        let route = Route("GET", "/events") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { _ in
                    _ = await eventually { gate.read() }
                    ended.withLock { $0 = true }
                })
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/events")
                // The producer waits for the gate: the head arrives before its first byte.
                #expect(try client.head()[0] == "HTTP/1.1 200 OK")
                #expect(!ended.read())
                gate.withLock { $0 = true }
                #expect(try client.answerChunks() == "")
            }
        }
    }

    @Test func `A large stream is complete, and a client that does not read causes backpressure`() async throws {
        let written = Locked(0)
        let route = Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    for n in 0..<800 {
                        try? await writer.write([UInt8](repeating: UInt8(truncatingIfNeeded: n), count: 40_000))
                        written.withLock { $0 += 1 }
                    }
                })
        }
        try await withServer([route]) { server in
            let (client, paused) = try await onThread {
                let client = try RawClient(server.port, receiveBuffer: 65_536)
                try client.request("GET", "/x")
                #expect(blockingUntil { written.read() > 0 }, "it begins")
                return (Locked(client), settledValue(for: 500) { written.read() })
            }
            #expect(paused < 400)
            let body = try await onThread { try client.withLock { try $0.answer().body } }
            #expect(body.count == 32_000_000)
            #expect(
                stride(from: 0, to: body.count, by: 997).allSatisfy {
                    body[$0] == UInt8(truncatingIfNeeded: $0 / 40_000)
                })
        }
    }

    @Test func `A client that disconnects ends an idle stream within a second`() async throws {
        let ended = Locked<[Int64]>([])
        let route = Route("GET", "/events") { request in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try? await writer.write(Array("hello".utf8))
                    await request.clientGone.wait()
                    ended.withLock { $0.append(Clock.system.monotonic()) }
                })
        }
        try await withServer([route]) { server in
            let left = try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/events")
                try client.read(until: "hello")
                #expect(settledValue(for: 300) { ended.read().count } == 0, "it ended by itself")
                return Clock.system.monotonic()
            }
            #expect(await eventually { ended.read().count == 1 })
            // A quarter of a second on an idle machine; the handler itself would end after two minutes.
            #expect((ended.read().first ?? .max) - left < 30_000)
        }
    }

    @Test func `A client that disconnects wakes a held request within a second`() async throws {
        let ended = Locked<[Int64]>([])
        let seen = Locked<[Observation]>([])
        let started = Locked(false)
        let route = Route("GET", "/wait") { request in
            started.withLock { $0 = true }
            await request.clientGone.wait()
            ended.withLock { $0.append(Clock.system.monotonic()) }
            return text("nobody")
        }
        try await withServer([route], seen: seen) { server in
            let left = try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/wait")
                #expect(blockingUntil { started.read() }, "it is held")
                return Clock.system.monotonic()
            }
            #expect(await eventually { ended.read().count == 1 })
            // A quarter of a second on an idle machine.
            #expect((ended.read().first ?? .max) - left < 30_000)
            #expect(await eventually { seen.read().count == 1 })
        }
    }

    @Test func `HEAD of a stream sends its head alone and runs no producer`() async throws {
        let runs = Locked(0)
        let route = Route("GET", "/events") { _ in
            HTTPResponse(status: 200, body: .stream { _ in runs.withLock { $0 += 1 } })
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let head = try client.exchange("HEAD", "/events")
                #expect(head.status == 200)
                #expect(head["Content-Length"] == nil)
                #expect(head["Connection"] == "close")
                #expect(try client.rest() == [])
            }
        }
        #expect(runs.read() == 0)
    }

    @Test func `Clients that disconnect at any moment leave no state behind`() async throws {
        let running = Locked(0)
        func counted(_ handler: @escaping Route.Handler) -> Route.Handler {
            { request in
                running.withLock { $0 += 1 }
                defer { running.withLock { $0 -= 1 } }
                return await handler(request)
            }
        }
        let routes = [
            Route("PUT", "/x", body: .stream, counted(sum)),
            Route.whole("POST", "/x", counted { _ in text("x") }),
            Route(
                "GET", "/wait",
                counted { request in
                    await request.clientGone.wait()
                    return text("")
                }),
            Route("GET", "/events") { request in
                HTTPResponse(
                    status: 200,
                    body: .stream { writer in
                        running.withLock { $0 += 1 }
                        defer { running.withLock { $0 -= 1 } }
                        while (try? await writer.write([UInt8](repeating: 1, count: 3000))) != nil {
                            try? await Task.sleep(for: .milliseconds(1))
                        }
                    })
            },
        ]
        let seen = Locked<[Observation]>([])
        try await withServer(routes, seen: seen) { server in
            try await onThread {
                let body = String(repeating: "a", count: 20_000)
                let requests = [
                    "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n\(body)",
                    "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n\(body)\r\n0\r\n\r\n",
                    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n\(body)",
                    "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", "GET /events HTTP/1.1\r\nHost: a\r\n\r\n",
                ].map { Array($0.utf8) }
                for round in 0..<600 {
                    let client = try RawClient(server.port)
                    let request = requests[round % requests.count]
                    let cut = round % 3 == 0 ? request.count : Int.random(in: 0...request.count)
                    try? client.send(Array(request[..<cut]))
                    if round % 4 == 0 { usleep(UInt32.random(in: 0...3000)) }
                    if round % 7 == 0 {
                        var now = linger(l_onoff: 1, l_linger: 0)  // A reset instead of an orderly end.
                        setsockopt(client.descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
                    }
                }
                #expect(try RawClient(server.port).exchange("POST", "/x", body: "a").text == "x")
            }
            #expect(await eventually { running.read() == 0 })
        }
        #expect(running.read() == 0)
    }
}

extension RawClient {
    /// All chunks of a body, after its head was read.
    func answerChunks() throws -> String {
        var text = ""
        while true {
            let next = try chunk()
            if next.isEmpty { return text }
            text += next
        }
    }
}
