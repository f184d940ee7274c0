import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct DeadlineTests {
    private let routes = [
        Route("GET", "/x") { _ in text("x") },
        Route.whole("POST", "/x") { _ in text("x") },
        Route("PUT", "/x", body: .stream) { request in
            guard case .stream(let stream) = request.body else { return text("") }
            while (try? await stream.next()) ?? nil != nil {}
            return text("x")
        },
    ]

    private var short: ServerLimits {
        var limits = ServerLimits()
        limits.headDeadline = .milliseconds(300)
        limits.bodyDeadline = .milliseconds(300)
        limits.streamGrace = .milliseconds(300)
        return limits
    }

    /// Sends `head`, then one byte at a time; returns the status and the time of closing.
    ///
    /// - Parameter first: The target of an earlier request on the same connection.
    private func trickle(
        _ head: String, after first: String? = nil, _ server: HTTPServer
    ) async throws -> (status: Int, milliseconds: Int64) {
        try await onThread {
            let client = try RawClient(server.port)
            if let first { #expect(try client.exchange("GET", first).status == 200) }
            let start = Clock.system.monotonic()
            try client.send(head)
            while Clock.system.monotonic() - start < 60_000 {
                do { try client.send("a") } catch { break }
                var poller = pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0)
                if poll(&poller, 1, 50) > 0 { break }
            }
            let status = (try? client.answer().status) ?? 0
            #expect(client.isClosed())
            return (status, Clock.system.monotonic() - start)
        }
    }

    @Test func `A slow head, a slow body and a slow stream end at their deadlines`() async throws {
        try await withServer(routes, limits: short) { server in
            for head in [
                "GET /x HTTP/1.1\r\nHost: a\r\nA: ", "GE",
                "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n",
                "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
            ] {
                let (status, time) = try await trickle(head, server)
                #expect(status == 408, "\(head)")
                #expect(time >= 250 && time < 45_000)
            }
        }
    }

    @Test func `The head of a later request has the deadline of the first`() async throws {
        try await withServer(routes, limits: short) { server in
            let (status, time) = try await trickle("GET /x HTTP/1.1\r\nHost: a\r\nA: ", after: "/x", server)
            #expect(status == 408)
            #expect(time >= 250 && time < 20_000, "the time for silence is longer")
        }
    }

    @Test func `A silent body reaches its deadline before the library closes the connection`() {
        let limits = ServerLimits()
        // The library's clock has seconds, and deadlines are checked four times a second.
        #expect(limits.inactivity >= limits.bodyDeadline + .seconds(2))
    }

    @Test func `A body with a deadline may be slow until then`() async throws {
        let route = Route("POST", "/x", body: .stream) { request in
            guard case .stream(let stream) = request.body else { return text("") }
            stream.end(within: .milliseconds(1500))
            while (try? await stream.next()) ?? nil != nil {}
            // The deadline applies to the body, not to the handler.
            try? await Task.sleep(for: .milliseconds(2000))
            return text("x")
        }
        try await withServer([route], limits: short) { server in
            let (status, time) = try await trickle(
                "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n", server)
            #expect(status == 408)
            #expect(time >= 1400 && time < 45_000)
            let answer = try await onThread { try RawClient(server.port).exchange("POST", "/x", body: "a").text }
            #expect(answer == "x")
        }
    }

    @Test func `An idle connection is closed, a busy one is not`() async throws {
        var limits = short
        limits.inactivity = .seconds(3)
        try await withServer(routes, limits: limits) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let start = Clock.system.monotonic()
                // Longer than the idle limit, without a pause of that length.
                while Clock.system.monotonic() - start < 4000 {
                    try #require(try client.exchange("GET", "/x").text == "x")
                }
                let last = Clock.system.monotonic()
                #expect(client.isClosed())
                let idle = Clock.system.monotonic() - last
                #expect(idle >= 900 && idle < 45_000)
            }
        }
    }

    @Test func `A held request may outlast the deadlines of heads and bodies`() async throws {
        var limits = short
        limits.inactivity = .seconds(1)
        let beyond = limits.inactivity + .milliseconds(1500)
        let slow = Route.whole("POST", "/slow") { _ in
            // The test lets every deadline pass.
            try? await Task.sleep(for: beyond)
            return text("slow")
        }
        try await withServer([slow], limits: limits) { server in
            let answer = try await onThread { try RawClient(server.port).exchange("POST", "/slow", body: "a").text }
            #expect(answer == "slow")
        }
    }

    @Test func `A response that the client does not read ends the connection`() async throws {
        var limits = ServerLimits()
        limits.inactivity = .seconds(1)
        let failed = Locked(false)
        let route = Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    do { while true { try await writer.write([UInt8](repeating: 1, count: 65_536)) } } catch {
                        failed.withLock { $0 = true }
                    }
                })
        }
        try await withServer([route], limits: limits) { server in
            let client = try await onThread {
                let client = try RawClient(server.port, receiveBuffer: 65_536)
                try client.request("GET", "/x")
                return Locked(client)
            }
            #expect(await eventually { failed.read() })
            _ = client
        }
    }

    @Test func `A response that the client reads slowly is sent whole`() async throws {
        var limits = ServerLimits()
        limits.inactivity = .seconds(1)
        let length = 8 << 20
        let route = Route("GET", "/x") { _ in
            HTTPResponse(status: 200, body: .bytes([UInt8](repeating: 1, count: length)))
        }
        try await withServer([route], limits: limits) { server in
            let count = try await onThread {
                let client = try RawClient(server.port, receiveBuffer: 65_536)
                try client.request("GET", "/x", "Connection: close\r\n")
                var (count, bytes) = (0, [UInt8](repeating: 0, count: 65_536))
                let start = Clock.system.monotonic()
                while true {
                    // 320 bytes in each millisecond, as long as a server needs that takes a full buffer for silence.
                    let isSlow = Clock.system.monotonic() - start < 4000
                    if isSlow { _ = blockingUntil { count < 320 * (Clock.system.monotonic() - start) } }
                    let some = recv(client.descriptor, &bytes, isSlow ? 16_384 : bytes.count, 0)
                    if some <= 0 { return count }
                    count += some
                }
            }
            #expect(count > length)
        }
    }

    @Test func `A connection beyond the limit is closed`() async throws {
        var limits = ServerLimits()
        limits.connections = 5
        try await withServer(routes, limits: limits) { server in
            try await onThread {
                let clients = try (0..<5).map { _ in try RawClient(server.port) }
                for client in clients { #expect(try client.exchange("GET", "/x").text == "x") }
                #expect(try RawClient(server.port).isClosed())
                #expect(try clients[0].exchange("GET", "/x", "Connection: close\r\n").text == "x")
                #expect(clients[0].isClosed())
                #expect(blockingUntil { (try? RawClient(server.port).exchange("GET", "/x").text) == "x" })
            }
        }
    }
}
