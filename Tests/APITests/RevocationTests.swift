import Base
import Core
import Service
import TestSupport
import Testing
import Transfers

@testable import API

@Suite struct RevocationTests {
    private struct Key {
        let client: APIClient
        let place: String
    }

    private func key(_ api: ServedAPI) async throws -> Key {
        let created = try await api.admin.post("/v1/apps/dev/keys", [:])
        return Key(client: try api.client(created), place: try #require(created.fields["Location"]))
    }

    private func isServing(_ key: Key, _ api: ServedAPI) -> Bool {
        api.server.admissions.callers.contains { caller in
            guard case .app(_, let keyIdentifier, _) = caller else { return false }
            return key.place.hasSuffix("/\(keyIdentifier)")
        }
    }

    private func isHeld(_ api: ServedAPI, _ count: Int) async throws {
        try await eventually("requests are held") { api.server.held.count == count }
    }

    @Test func `A held read ends with 401 when its key is revoked`() async throws {
        try await ServedAPI.run { api async throws in
            let key = try await key(api)
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task())
            async let events = key.client.send("GET", "/v1/sessions/s/events?wait=60", within: .seconds(20))
            async let task = key.client.send("GET", "/v1/sessions/s/tasks/1?wait=60", within: .seconds(20))
            try await isHeld(api, 2)
            #expect(try await api.admin.delete(key.place).status == 204)
            #expect(try await events.status == 401)
            let answer = try await task
            #expect(answer.status == 401)
            #expect(answer.code == "unauthorized")
            #expect(answer.fields["WWW-Authenticate"] == "Bearer")
        }
    }

    @Test func `Held reads of other keys continue when a key is revoked`() async throws {
        try await ServedAPI.run { api async throws in
            let (key, other) = (try await key(api), try await key(api))
            try await api.session()
            async let page = other.client.send("GET", "/v1/sessions/s/events?wait=1", within: .seconds(20))
            try await isHeld(api, 1)
            #expect(try await api.admin.delete(key.place).status == 204)
            #expect(try await page.status == 200)
        }
    }

    @Test func `A stream ends at once when its key is revoked`() async throws {
        try await ServedAPI.run { api async throws in
            let key = try await key(api)
            try await api.session()
            let stream = try await key.client.openStream("/v1/sessions/s/events")
            #expect(try await api.admin.delete(key.place).status == 204)
            // Before the next heartbeat, which would check the key anyway.
            try await eventually("the stream ends", within: .seconds(8)) { stream.hasEnded }
        }
    }

    @Test func `Lines of a revoked key create no tasks`() async throws {
        try await ServedAPI.run { api async throws in
            let key = try await key(api)
            try await api.session()
            // Empty lines create no task, and keep the body fast enough.
            let line = api.task().description + String(repeating: "\n", count: 16_384)
            let exchange = try await key.client.begin(
                "POST", "/v1/sessions/s/tasks",
                headers: [("Content-Type", "application/x-ndjson"), ("Transfer-Encoding", "chunked")],
                within: .seconds(20))
            func send(_ text: String) async throws {
                try await exchange.send(bytes("\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n"))
            }
            let count: @Sendable () async throws -> Int = {
                try await api.dev.get("/v1/sessions/s/tasks").json["items"].array?.count ?? 0
            }
            try await send(line)
            try await eventually("the first line is committed") {
                try await send(line)
                return try await count() > 0
            }
            #expect(try await api.admin.delete(key.place).status == 204)
            let before = try await count()
            try? await send(String(repeating: api.task().description + "\n", count: 600))
            try? await send(line)
            try? await exchange.send(bytes("0\r\n\r\n"))
            #expect(try await exchange.answer().status == 401)
            #expect(try await count() == before)
        }
    }

    @Test func `A body is refused when its key is revoked during the transfer`() async throws {
        try await ServedAPI.run { api async throws in
            for path in ["/v1/sessions", "/v1/bodies"] {
                let key = try await key(api)
                let exchange = try await key.client.begin(
                    "POST", path, headers: [("Content-Length", "20"), ("Content-Type", "application/json")],
                    body: bytes("{ "), within: .seconds(20))
                try await eventually("its key was judged") { isServing(key, api) }
                #expect(try await api.admin.delete(key.place).status == 204)
                try await exchange.send(bytes("                 }"))
                #expect(try await exchange.answer().status == 401, "\(path)")
            }
        }
    }

    @Test func `The held reads of a deleted app end`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.admin.post("/v1/apps", ["identifier": "gone"])
            let client = try api.client(created)
            _ = try await client.put("/v1/sessions/s", [:])
            async let events = client.send("GET", "/v1/sessions/s/events?wait=60", within: .seconds(20))
            try await isHeld(api, 1)
            #expect(try await api.admin.delete("/v1/apps/gone").status == 204)
            // The request may first find the key or the session missing.
            #expect([401, 404].contains(try await events.status))
        }
    }

    @Test func `A held read ends when its key expires`() async throws {
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            let end = Timestamp(milliseconds: api.service.clock.now.milliseconds + 2000)
            let created = try await api.admin.post("/v1/apps/dev/keys", ["expiresAt": .string(end.rfc3339)])
            let client = try api.client(created)
            let answer = try await client.send("GET", "/v1/sessions/s/events?wait=60", within: .seconds(20))
            #expect(answer.status == 401)
        }
    }

    @Test func `A held read ends when another node revokes its key`() async throws {
        try await ServedAPI.run(loops: true) { api async throws in
            let key = try await key(api)
            try await api.session()
            async let page = key.client.send("GET", "/v1/sessions/s/events?wait=60", within: .seconds(20))
            try await isHeld(api, 1)
            let keyIdentifier = try #require(key.place.split(separator: "/").last.map(String.init))
            let app = try await api.service.app(identifier: "dev")
            try await api.service.deleteKey(keyIdentifier, of: app.id)
            // Nodes that share a store cache no keys.
            api.server.authenticator.keyChanged(keyIdentifier)
            #expect(try await page.status == 401)
        }
    }
}
