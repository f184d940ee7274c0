import Base
import Core
import HTTPServer
import TestSupport
import Testing

@testable import API

@Suite struct BodyMemoryTests {
    private static let batch = "/v1/sessions/s/tasks/batch"
    private static let json = ("Content-Type", "application/json")

    private static func begin(
        _ client: APIClient, _ path: String, length: Int, more: [(String, String)] = [], sent: Int = 0
    ) async throws -> APIClient.Exchange {
        try await client.begin(
            "POST", path, headers: [json, ("Content-Length", "\(length)")] + more, body: spaces(sent),
            within: .seconds(20))
    }

    private static func spaces(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x20, count: count) }

    @Test func `An over-long body is refused before it is read, and its client reads the response`() async throws {
        try await ServedAPI.run { api async throws in
            let exchange = try await Self.begin(api.dev, "/v1/sessions", length: 5_000_000, sent: 2_000_000)
            let answer = try await exchange.answer()
            #expect(answer.status == 413 && answer.code == "payload-too-large")
            #expect(answer.fields["Connection"] == "close")
            let expecting = try await Self.begin(
                api.dev, "/v1/sessions", length: 4_000_000, more: [("Expect", "100-continue")])
            #expect(try await expecting.answer().status == 413)
        }
    }

    @Test func `An over-long body in chunks is refused at the limit`() async throws {
        try await ServedAPI.run { api async throws in
            let exchange = try await api.dev.begin(
                "POST", "/v1/sessions", headers: [Self.json, ("Transfer-Encoding", "chunked")], within: .seconds(20))
            let chunk = bytes("10000\r\n") + Self.spaces(65_536) + bytes("\r\n")
            for _ in 0..<60 { try? await exchange.send(chunk) }
            let answer = try await exchange.answer()
            #expect(answer.status == 413)
            #expect(answer.fields["X-Request-Id"] != nil)
        }
    }

    @Test func `Bodies reserve memory as they arrive, and an app leaves room for others`() async throws {
        let configure: @Sendable (inout APISettings) -> Void = {
            $0.sharedBodyBytes = 8 << 20
            $0.batchLimit = 4 << 20
        }
        try await ServedAPI.run(configured: configure) { api async throws in
            try await api.session()
            let late = try await Self.begin(api.dev, Self.batch, length: 3_000_000, sent: 1)
            try await eventually("its byte exists") { api.server.bodies.left == (8 << 20) - 1 }
            let first = try await Self.begin(api.dev, Self.batch, length: 3_000_000, sent: 2_900_000)
            try await eventually("its bytes exist") { api.server.bodies.left == (8 << 20) - 2_900_001 }
            let refused = try await Self.begin(api.dev, Self.batch, length: 2_000_000).answer()
            #expect(refused.status == 503 && refused.fields["Retry-After"] != nil)
            #expect(try await api.session("t").status == 201)
            let other = try api.client(try await api.admin.post("/v1/apps", ["identifier": "other"]))
            let others = try await Self.begin(other, Self.batch, length: 1 << 20, sent: 1 << 20).answer()
            #expect(others.status == 404, "it was read: the app has no such session")
            try? await late.send(Self.spaces(2_900_000))
            #expect(try await late.answer().status == 503, "it is over the app's share")
            try await first.send(Self.spaces(100_000))
            #expect(try await first.answer().status == 400, "spaces are no JSON")
            try await eventually("nothing is held") { api.server.bodies.left == 8 << 20 }
        }
    }

    @Test func `Lines reserve memory as they arrive, and an app leaves room for others`() async throws {
        let configure: @Sendable (inout APISettings) -> Void = {
            $0.sharedBodyBytes = 2 << 20
            $0.bodyLimit = 1 << 20
        }
        try await ServedAPI.run(configured: configure) { api async throws in
            try await api.session()
            func lines() async throws -> APIClient.Exchange {
                try await api.dev.begin(
                    "POST", "/v1/sessions/s/tasks",
                    headers: [("Content-Type", "application/x-ndjson"), ("Content-Length", "1500000")],
                    body: Self.spaces(900_000), within: .seconds(20))
            }
            let first = try await lines()
            try await eventually("its unfinished line is held") { api.server.bodies.left == (2 << 20) - 900_000 }
            let second = try await lines()
            try await second.send(Self.spaces(600_000))
            let answer = try await second.answer()
            #expect(answer.status == 200 && answer.text.contains("rate-limited"), "\(answer.text)")
            let other = try api.client(try await api.admin.post("/v1/apps", ["identifier": "other"]))
            let others = try await Self.begin(other, Self.batch, length: 1 << 18, sent: 1 << 18).answer()
            #expect(others.status == 404, "it was read: the app has no such session")
            try await first.send(Self.spaces(600_000))
            #expect(try await first.answer().text.contains("payload-too-large"))
            try await eventually("nothing is held") { api.server.bodies.left == 2 << 20 }
        }
    }

    @Test func `A slow body is refused at the deadline`() async throws {
        try await ServedAPI.run(configured: { $0.bodyDeadline = .milliseconds(300) }) { api async throws in
            let exchange = try await Self.begin(api.dev, "/v1/sessions", length: 1000, sent: 1)
            let isAnswered = Locked(false)
            async let status = {
                defer { isAnswered.withLock { $0 = true } }
                return try await exchange.answer().status
            }()
            try await eventually("it is answered") {
                try? await exchange.send(Self.spaces(1))
                return isAnswered.withLock { $0 }
            }
            #expect(try await status == 408)
        }
    }

    @Test func `The deadline of a body is earlier than the end of a silent connection`() {
        let settings = APISettings(adminKeyHash: [], cursorKey: [])
        // libmicrohttpd's clock has seconds, and deadlines are checked four times a second.
        #expect(ServerLimits().inactivity >= settings.bodyDeadline + .seconds(2))
    }

    @Test func `A caller may hold at most as much as it leaves for others`() {
        let budget = MemoryBudget(bytes: 900)
        let first = budget.share(of: "a")
        #expect(first.hasRoom(for: 450) && !first.hasRoom(for: 451))
        #expect(first.hold(300))
        let again = budget.share(of: "a")
        #expect(again.hold(150))
        #expect(!again.hold(151))
        #expect(budget.left == 450)
        let second = budget.share(of: "b")
        #expect(second.hold(225))
        #expect(!second.hold(226))
        #expect(first.hold(0))
        #expect(budget.left == 525)
        withExtendedLifetime([first, again, second]) {}
    }

    @Test func `A share is released with its last reference`() {
        let budget = MemoryBudget(bytes: 100)
        do {
            let share = budget.share(of: "a")
            #expect(share.hold(50))
            #expect(budget.left == 50)
            withExtendedLifetime(share) {}
        }
        #expect(budget.left == 100)
    }
}
