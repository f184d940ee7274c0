import Base
import Core
import HTTPServer
import TestSupport
import Testing

import struct Wire.Problem
import struct Wire.ProblemCode

@testable import API

@Suite struct IdempotencyTests {
    private static let key = [("Idempotency-Key", "k-1")]

    @Test func `A repeated request gets the stored response, and another request with its key gets 422`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            let first = try await api.dev.post(path, api.task(), headers: Self.key)
            #expect(first.status == 201)
            let second = try await api.dev.post(path, api.task(), headers: Self.key)
            #expect(second.status == 201)
            #expect(second.body == first.body)
            #expect(second.fields["Idempotency-Replayed"] == "true" && first.fields["Idempotency-Replayed"] == nil)
            #expect(second.fields["Location"] == first.fields["Location"])
            #expect(second.etag == first.etag)
            let other = try await api.dev.post(path, api.task("https://example.com/b"), headers: Self.key)
            #expect(other.status == 422)
            #expect(other.code == "idempotency-mismatch")
            #expect(try await api.dev.get(path).json["items"].array?.count == 1)
        }
    }

    @Test func `Responses with secrets are replayed, and commands run once`() async throws {
        try await ServedAPI.run { api async throws in
            let first = try await api.admin.post("/v1/apps", ["identifier": "a"], headers: Self.key)
            let second = try await api.admin.post("/v1/apps", ["identifier": "a"], headers: Self.key)
            #expect(first.status == 201)
            #expect(second.body == first.body)
            let rotated = try await api.dev.post("/v1/app/webhook/secret/rotate", headers: Self.key)
            #expect(rotated.status == 200)
            let again = try await api.dev.post("/v1/app/webhook/secret/rotate", headers: Self.key)
            #expect(again.json["secret"] == rotated.json["secret"])
            let other = try await api.dev.post(
                "/v1/app/webhook/secret/rotate", headers: [("Idempotency-Key", "k-2")])
            #expect(other.json["secret"] != rotated.json["secret"])
        }
    }

    @Test func `Responses with errors are not stored`() async throws {
        try await ServedAPI.run { api async throws in
            let path = "/v1/sessions/s/finish-tasks-and-invalidate"
            #expect(try await api.dev.post(path, headers: Self.key).status == 404)
            try await api.session()
            #expect(try await api.dev.post(path, headers: Self.key).status == 202)
        }
    }

    @Test func `A batch keeps its identifiers`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(client: "old"))
            let batch: JSON = [
                "tasks": [
                    api.task("https://example.com/1"), api.task(client: "old"), api.task("https://example.com/2"),
                ]
            ]
            let path = "/v1/sessions/s/tasks/batch"
            let first = try await api.dev.post(path, batch, headers: Self.key)
            #expect(first.status == 201)
            #expect(first.json["created"].int == 2)
            let second = try await api.dev.post(path, batch, headers: Self.key)
            #expect(second.status == 201)
            #expect(second.json == first.json)
            #expect(try await api.dev.get("/v1/sessions/s/tasks").json["items"].array?.count == 3)
        }
    }

    @Test func `Lines with an Idempotency-Key are refused, and the problem names clientTaskId`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let path = "/v1/sessions/s/tasks"
            let refused = try await api.dev.send(
                "POST", path, headers: Self.key + [("Content-Type", "application/x-ndjson")],
                body: bytes(api.task().description))
            #expect(refused.status == 422 && refused.code == "invalid-value")
            #expect(refused.json["detail"].string?.contains("clientTaskId") == true)
            #expect(try await api.dev.get(path).json["items"].array?.isEmpty == true)
        }
    }

    @Test(arguments: ["", "a b", String(repeating: "x", count: 256)])
    func `An Idempotency-Key has 1 to 255 visible characters`(key: String) async throws {
        try await ServedAPI.run { api async throws in
            let answer = try await api.dev.post("/v1/app/activate", headers: [("Idempotency-Key", key)])
            #expect(answer.status == 422)
        }
    }

    @Test func `A repeated request gets 409 while the first one runs, and another request gets 422`() async throws {
        try await ServedAPI.run { api async throws in
            let keys = IdempotencyKeys(service: api.service)
            let entry = IdempotencyKeys.Entry(principal: "app/1", key: "k", fingerprint: [1])
            @Sendable func code(_ entry: IdempotencyKeys.Entry) async throws -> ProblemCode? {
                do {
                    _ = try await keys.answer(entry) { _ in .nothing }
                    return nil
                } catch let problem as Problem {
                    return problem.code
                }
            }
            let other = IdempotencyKeys.Entry(principal: "app/1", key: "k", fingerprint: [2])
            let elsewhere = IdempotencyKeys.Entry(principal: "app/2", key: "k", fingerprint: [2])
            var codes: [ProblemCode?] = []
            _ = try await keys.answer(entry) { _ in
                codes = [try await code(entry), try await code(other), try await code(elsewhere)]
                return .nothing
            }
            #expect(codes == [.idempotencyInProgress, .idempotencyMismatch, nil])
        }
    }
}
