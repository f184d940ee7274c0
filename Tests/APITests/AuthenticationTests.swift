import Core
import TestSupport
import Testing

@testable import API

@Suite struct AuthenticationTests {
    @Test func `A request without a valid key gets 401 and a challenge`() async throws {
        try await ServedAPI.run { api async throws in
            for client in [api.dev.with(key: nil), api.dev.with(key: "wrong"), api.dev.with(key: APIKey.make().key)] {
                let answer = try await client.get("/v1/sessions")
                #expect(answer.status == 401)
                #expect(answer.code == "unauthorized")
                #expect(answer.fields["WWW-Authenticate"] == "Bearer")
                #expect(answer.fields["Content-Type"] == "application/problem+json")
            }
            let basic = try await api.dev.with(key: nil).get("/v1/sessions", headers: [("Authorization", "Basic ZGV2")])
            #expect(basic.status == 401)
            let two = ["dev", "dev"].map { ("Authorization", "Bearer \($0)") }
            #expect(try await api.dev.with(key: nil).get("/v1/sessions", headers: two).status == 401)
            #expect(try await api.dev.with(key: nil).get("/v1/sessions", headers: [two[0]]).status == 200)
        }
    }

    @Test func `Apps are created with a key and a secret that are shown once`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.admin.post("/v1/apps", ["identifier": "com.example"])
            #expect(created.status == 201)
            #expect(created.fields["Location"] == "/v1/apps/com.example")
            let key = try #require(created.json["apiKey"].string)
            #expect(key.hasPrefix("usd_"))
            #expect(key.split(separator: "_").last?.utf8.count == 43)
            #expect(created.json["webhook"]["secret"].string?.hasPrefix("whsec_") == true)

            let own = try await api.dev.with(key: key).get("/v1/app")
            #expect(own.status == 200)
            #expect(own.json["identifier"].string == "com.example")
            #expect(!own.json.has("apiKey"))
            #expect(!own.json["webhook"].has("secret"))
            #expect(try await api.admin.post("/v1/apps", ["identifier": "com.example"]).code == "app-exists")
        }
    }

    @Test func `A revoked key is refused at once`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["sessions:read"]])
            #expect(created.status == 201)
            let client = try api.client(created)
            #expect(try await client.get("/v1/sessions").status == 200)
            let place = try #require(created.fields["Location"])
            #expect(try await api.admin.delete(place).status == 204)
            #expect(try await client.get("/v1/sessions").status == 401)
            #expect(try await api.admin.delete(place).status == 404)
        }
    }

    @Test func `A key expires at its expiry time`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.admin.post("/v1/apps/dev/keys", ["expiresAt": "2020-01-01T00:00:00Z"])
            let client = try api.client(created)
            #expect(try await client.get("/v1/sessions").status == 401)
        }
    }

    @Test func `A request beyond the key's scope or kind gets 403`() async throws {
        try await ServedAPI.run { api async throws in
            #expect(try await api.dev.get("/v1/apps").code == "insufficient-scope")
            #expect(try await api.admin.get("/v1/sessions").code == "insufficient-scope")
            let created = try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["sessions:read"]])
            let reader = try api.client(created)
            #expect(try await reader.get("/v1/sessions").status == 200)
            #expect(try await reader.put("/v1/sessions/x", [:]).status == 403)
            #expect(try await reader.get("/v1/app").status == 403)
        }
    }

    @Test func `Every resource of another app gets 404`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session("mine")
            let created = try await api.admin.post("/v1/apps", ["identifier": "other"])
            let other = try api.client(created)
            for path in ["", "/tasks", "/tasks/1", "/events"] {
                #expect(try await other.get("/v1/sessions/mine\(path)").code == "not-found")
            }
            #expect(try await other.post("/v1/sessions/mine/tasks", api.task()).status == 404)
            #expect(try await other.delete("/v1/sessions/mine").status == 404)
            #expect(try await other.get("/v1/sessions").json["items"].array?.isEmpty == true)
        }
    }

    @Test func `The keys of a deleted app stop working`() async throws {
        try await ServedAPI.run { api async throws in
            let created = try await api.admin.post("/v1/apps", ["identifier": "gone"])
            let client = try api.client(created)
            #expect(try await client.get("/v1/app").status == 200)
            #expect(try await api.admin.delete("/v1/apps/gone").status == 204)
            #expect(try await client.get("/v1/app").status == 401)
        }
    }

    @Test(arguments: ["/v1/apps/dev/keys/first", "/v1/apps/dev"])
    func `A literal key is valid while its record exists`(_ deleted: String) async throws {
        try await ServedAPI.run { api async throws in
            #expect(try await api.dev.get("/v1/app").status == 200)
            #expect(try await api.admin.delete(deleted).status == 204)
            for path in ["/v1/app", "/v1/sessions"] {
                #expect(try await api.dev.get(path).code == "unauthorized", "\(path)")
            }
        }
    }

    @Test func `A client can read the identifier of its key`() {
        let made = APIKey.make()
        #expect(APIKey.identifier(in: made.key) == made.keyIdentifier)
        #expect(APIKey.identifier(in: "usd_x") == nil)
        #expect(APIKey.identifier(in: "abc_" + String(repeating: "x", count: 60)) == nil)
    }
}
