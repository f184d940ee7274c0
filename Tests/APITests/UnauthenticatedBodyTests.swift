import Base
import Core
import TestSupport
import Testing

@testable import API

@Suite struct UnauthenticatedBodyTests {
    private static let batch = "/v1/sessions/s/tasks/batch"

    @Test(arguments: [batch, "/v1/sessions", "/v1/sessions/s/tasks", "/v1/apps"])
    func `A wrong key is refused at the head, before the body arrives`(_ path: String) async throws {
        try await ServedAPI.run { api async throws in
            let exchange = try await api.dev.with(key: "wrong").begin(
                "POST", path, headers: [("Content-Length", "1000000"), ("Content-Type", "application/json")],
                within: .seconds(10))
            let answer = try await exchange.answer()
            #expect(answer.status == 401)
            #expect(answer.code == "unauthorized")
            #expect(answer.fields["Connection"] == "close")
        }
    }

    @Test func `The announced lengths of unauthenticated bodies reserve no memory`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            // Together they announce all the memory for bodies.
            var open: [APIClient.Exchange] = []
            for _ in 0..<8 {
                open.append(
                    try await api.dev.with(key: nil).begin(
                        "POST", Self.batch,
                        headers: [("Content-Length", "\(32 << 20)"), ("Content-Type", "application/json")]))
            }
            for _ in 0..<8 {
                open.append(
                    try await api.dev.begin(
                        "POST", Self.batch,
                        headers: [("Content-Length", "\(32 << 20)"), ("Content-Type", "application/json")]))
            }
            let padding = String(repeating: " ", count: 2 << 20)
            let answer = try await api.dev.send(
                "POST", Self.batch, headers: [("Content-Type", "application/json")],
                body: bytes("{\"tasks\": [\(padding)]}"), within: .seconds(20))
            #expect(answer.status != 503, "\(answer.text)")
            #expect(answer.status == 422)
            for exchange in open { exchange.abort() }
        }
    }
}
