import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct StopTests {
    private func start(_ routes: [Route]) throws -> HTTPServer {
        try HTTPServer.start(
            on: Listener(address: "127.0.0.1", port: 0), router: Router(routes), refusal: plainRefusal, log: .none)
    }

    @Test func `Held requests are woken and get responses when the server stops`() async throws {
        let held = Locked(0)
        let server = try start([
            Route("GET", "/wait") { request in
                held.withLock { $0 += 1 }
                await withCheckedContinuation { continuation in request.clientGone.onGone { continuation.resume() } }
                return text("\(request.clientGone.reason == .serverStops)")
            }
        ])
        async let answers = onThread {
            let clients = try (0..<20).map { _ in try RawClient(server.port) }
            for client in clients { try client.request("GET", "/wait") }
            return try clients.map { try $0.answer().text }
        }
        #expect(await eventually { held.read() == 20 })
        await server.stop(within: .seconds(60))
        #expect(try await answers == [String](repeating: "true", count: 20))
    }

    @Test func `A running handler is awaited, and a new request is refused`() async throws {
        let started = Locked(false)
        let gate = Locked(false)
        let server = try start([
            Route("GET", "/slow") { _ in
                started.withLock { $0 = true }
                _ = await eventually { gate.read() }
                return text("done")
            },
            Route("GET", "/x") { _ in text("x") },
        ])
        async let answers = onThread {
            let slow = try RawClient(server.port)
            let other = try RawClient(server.port)
            #expect(try other.exchange("GET", "/x").text == "x")
            try slow.request("GET", "/slow")
            // The port is open until the handler has ended, so that a health check gets a response.
            #expect(blockingUntil { (try? RawClient(server.port).exchange("GET", "/x").status) == 503 })
            let refused = try other.exchange("GET", "/x").status
            gate.withLock { $0 = true }
            return (try slow.answer().text, refused)
        }
        #expect(await eventually { started.read() })
        let start = ContinuousClock.now
        await server.stop(within: .seconds(60))
        #expect(ContinuousClock.now - start < .seconds(30), "it goes on when the handler has ended")
        let (slow, refused) = try await answers
        #expect(slow == "done")
        #expect(refused == 503)
        #expect(throws: (any Error).self, "it no longer listens") { try RawClient(server.port) }
    }

    @Test func `New requests do not prolong the stop`() async throws {
        let (started, refused, gate) = (Locked(false), Locked(0), Locked(false))
        let server = try start([
            Route("GET", "/slow") { _ in
                started.withLock { $0 = true }
                _ = await eventually { gate.read() }
                return text("done")
            }
        ])
        let port = server.port
        async let slow = onThread { try RawClient(port).exchange("GET", "/slow").text }
        #expect(await eventually { started.read() })
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    try? await onThread {
                        while try RawClient(port).exchange("GET", "/slow").status == 503 {
                            refused.withLock { $0 += 1 }
                        }
                    }
                }
            }
            group.addTask {
                _ = await eventually { refused.read() >= 20 }
                gate.withLock { $0 = true }
            }
            let start = ContinuousClock.now
            await server.stop(within: .seconds(60))
            #expect(ContinuousClock.now - start < .seconds(30))
        }
        #expect(try await slow == "done")
        #expect(refused.read() >= 20)
    }

    @Test func `A client that does not read its response is not awaited beyond the limits`() async throws {
        let server = try start([
            Route("GET", "/x") { _ in
                HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 1, count: 32 << 20)))
            }
        ])
        let client = try await onThread {
            let client = try RawClient(server.port, receiveBuffer: 65_536)
            try client.request("GET", "/x")
            _ = try client.head()
            return Locked(client)
        }
        let start = ContinuousClock.now
        await server.stop(within: .milliseconds(50), sending: .milliseconds(50))
        #expect(ContinuousClock.now - start < .milliseconds(1900))
        _ = client
    }

    @Test func `A handler that does not end gets a default response, and its stream is cut`() async throws {
        let gate = Locked(false)
        let count = Locked(0)
        let server = try start([
            Route("GET", "/stuck") { _ in
                count.withLock { $0 += 1 }
                _ = await eventually { gate.read() }
                return text("late")
            },
            Route("GET", "/stream") { _ in
                HTTPResponse(
                    status: 200,
                    body: .stream { writer in
                        try? await writer.write([0x61])
                        count.withLock { $0 += 1 }
                        _ = await eventually { gate.read() }
                        await #expect(throws: (any Error).self) { try await writer.write([0x62]) }
                    })
            },
            Route("PUT", "/upload", body: .stream) { request in
                guard case .stream(let stream) = request.body else { return text("") }
                count.withLock { $0 += 1 }
                while (try? await stream.next()) ?? nil != nil {}
                return text("")
            },
        ])
        async let answers = onThread {
            let stuck = try RawClient(server.port)
            let stream = try RawClient(server.port)
            let upload = try RawClient(server.port)
            try stuck.request("GET", "/stuck")
            try stream.request("GET", "/stream")
            try upload.request("PUT", "/upload", "Content-Length: 1000\r\n")
            let status = try stuck.answer().status
            #expect(stream.isClosed())
            #expect(upload.isClosed())
            return status
        }
        #expect(await eventually { count.read() == 3 })
        await server.stop(within: .milliseconds(100))
        #expect(try await answers == 503)
        gate.withLock { $0 = true }
    }

    @Test func `A server that stops while clients connect and disconnect always ends`() async throws {
        for round in 0..<500 {
            let server = try start([])
            let port = server.port
            async let client: Void? = try? onThread {
                try RawClient(port).request("PUT", "/x", "Content-Length: 5\r\n")
            }
            if round.isMultiple(of: 2) { _ = await client }
            await server.stop(within: .seconds(1))
            _ = await client
        }
    }

    @Test func `A port in use is reported as an error`() async throws {
        let server = try start([])
        #expect(throws: ServerStartError.self) {
            try HTTPServer.start(
                on: Listener(address: "127.0.0.1", port: server.port), router: Router([]), refusal: plainRefusal,
                log: .none)
        }
        #expect(throws: ServerStartError.self) {
            try HTTPServer.start(
                on: Listener(address: "localhost", port: 0), router: Router([]), refusal: plainRefusal, log: .none)
        }
        await server.stop(within: .seconds(1))
    }
}
