import Core
import HTTPServer
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct CredentialRoutesTests {
    private static func creation(_ host: String, method: String = "HTTPBasic") -> WireJSON {
        [
            "protectionSpace": [
                "host": .string(host), "port": 443, "protocol": "https", "realm": "r",
                "authenticationMethod": .string(method),
            ],
            "credential": ["user": "me", "password": "hush"],
        ]
    }

    @Test func `Concurrent replacements of a credential are all confirmed`() async throws {
        try await RouteFixture.run { fixture in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<32 {
                    group.addTask {
                        try await fixture.call("POST", "/v1/credentials", json: Self.creation("a.example")).status
                    }
                }
                for try await status in group { #expect(status == 201) }
            }
        }
    }

    @Test func `Credentials are written, listed and deleted, never read`() async throws {
        try await RouteFixture.run { fixture in
            let created = try await fixture.call("POST", "/v1/credentials", json: Self.creation("A.example"))
            #expect(created.status == 201)
            #expect(!String(decoding: created.bytes, as: UTF8.self).contains("hush"))
            let place = try #require(created.headers["Location"])
            let read = try await fixture.call("GET", place)
            #expect(read.bytes == created.bytes)
            let stored: StoredCredential = try read.read()
            #expect(stored.user == "me")
            #expect(stored.protectionSpace.host == "a.example")
            _ = try await fixture.call("POST", "/v1/credentials", json: Self.creation("b.example"))

            #expect(try await fixture.call("DELETE", "/v1/credentials").problem == .invalidValue)
            #expect(try await fixture.call("DELETE", "/v1/credentials?host=a.example&port=80").status == 204)
            let list = try await fixture.call("GET", "/v1/credentials?limit=1")
            #expect(try list.json["items"]?.elements?.count == 1)
            #expect(try list.json["nextCursor"]?.stringValue != nil)
            #expect(try await fixture.call("DELETE", "/v1/credentials?host=A.example&realm=r").status == 204)
            #expect(try await fixture.call("GET", place).status == 404)
            #expect(try await fixture.call("GET", "/v1/credentials").json["items"]?.elements?.count == 1)
        }
    }

    @Test func `A host has no port, and an IPv6 address one form`() async throws {
        try await RouteFixture.run { fixture in
            let refused = try await fixture.call("POST", "/v1/credentials", json: Self.creation("a.example:80"))
            #expect(refused.problem == .invalidValue)
            let created = try await fixture.call("POST", "/v1/credentials", json: Self.creation("0:0:0:0:0:0:0:A"))
            let stored: StoredCredential = try created.read()
            #expect(stored.protectionSpace.host == "::a")
            #expect(try await fixture.call("DELETE", "/v1/credentials?host=0:0::a").status == 204)
            #expect(try await fixture.call("GET", "/v1/credentials").json["items"]?.elements?.count == 0)
        }
    }

    @Test func `A credential has to fit its protection space`() async throws {
        try await RouteFixture.run { fixture in
            let answer = try await fixture.call(
                "POST", "/v1/credentials", json: Self.creation("a.example", method: "HTTPBearer"))
            #expect(answer.status == 422)
            #expect(try answer.json["errors"]?[0]?["pointer"] == "/credential")
        }
    }
}
