import Base
import Core
import Formats
import HTTPServer
import Service
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct BodyRoutesTests {
    private static func digest(_ bytes: [UInt8]) -> String { DigestField.format([.sha256: Digest.of(bytes)]) }

    @Test(arguments: [0, 10, 200_000])
    func `A body is stored with its length and digest`(length: Int) async throws {
        try await RouteFixture.run { fixture in
            let bytes = TestSupport.Content.bytes(seed: 1, length: length)
            let answer = try await fixture.call(
                "POST", "/v1/bodies", headers: [("Repr-Digest", Self.digest(bytes)), ("Content-Type", "image/png")],
                body: bytes)
            #expect(answer.status == 201)
            let body: StoredBody = try answer.read()
            #expect(body.length == Int64(length))
            #expect(body.digest == Wire.ContentDigest(algorithm: .sha256, value: Digest.of(bytes).hexadecimal))
            #expect(body.expiresAt != nil)
            #expect(answer.headers["Location"] == "/v1/bodies/\(body.id)")
            #expect(answer.headers["Upload-Complete"] == "?1")
            let read = try await fixture.call("GET", "/v1/bodies/\(body.id)")
            #expect(read.bytes == answer.bytes)
            let record = try await fixture.service.body(body.id, app: fixture.app)
            #expect(record.mediaType == "image/png")
            #expect(try await fixture.call("DELETE", "/v1/bodies/\(body.id)").status == 204)
            #expect(try await fixture.call("GET", "/v1/bodies/\(body.id)").status == 404)
        }
    }

    @Test func `A body with a wrong digest is not stored`() async throws {
        try await RouteFixture.run { fixture in
            for field in ["Content-Digest", "Repr-Digest"] {
                let answer = try await fixture.call(
                    "POST", "/v1/bodies", headers: [(field, Self.digest([1]))], body: [2])
                #expect(answer.status == 422)
                #expect(answer.problem == .digestMismatch)
            }
            let malformed = try await fixture.call(
                "POST", "/v1/bodies", headers: [("Content-Digest", "sha-256=:zz:")], body: [2])
            #expect(malformed.problem == .invalidValue)
            #expect(filesBelow(fixture.folder.file("bodies")).isEmpty)
            #expect(filesBelow(fixture.folder.file("partial")).isEmpty)
        }
    }

    @Test(arguments: [3, 100_000])
    func `The digest that was sent at the creation of a draft is checked at its completion`(first: Int) async throws {
        try await RouteFixture.run { fixture in
            let bytes = TestSupport.Content.bytes(seed: 3, length: first + 3)
            func complete(_ digest: String, _ more: [(String, String)] = []) async throws -> Answered {
                let created = try await fixture.call(
                    "POST", "/v1/bodies", headers: [("Upload-Complete", "?0"), ("Repr-Digest", digest)],
                    body: Array(bytes[..<first]))
                #expect(created.status == 201)
                let place = try #require(created.headers["Location"])
                func append(_ range: Range<Int>, complete: String, _ more: [(String, String)] = []) async throws
                    -> Answered
                {
                    let fields = [
                        ("Content-Type", "application/partial-upload"), ("Upload-Offset", "\(range.lowerBound)"),
                        ("Upload-Complete", complete),
                    ]
                    return try await fixture.call("PATCH", place, headers: fields + more, body: Array(bytes[range]))
                }
                #expect(try await append(first..<first + 1, complete: "?0").status == 204)
                return try await append(first + 1..<first + 3, complete: "?1", more)
            }
            #expect(try await complete(Self.digest(bytes)).status == 200)
            #expect(try await complete(Self.digest(bytes), [("Repr-Digest", Self.digest(bytes))]).status == 200)
            #expect(try await complete(Self.digest([1])).problem == .digestMismatch)
            #expect(
                try await complete(Self.digest([1]), [("Repr-Digest", Self.digest(bytes))]).problem == .digestMismatch)
            try await eventually("only the complete bodies are left") {
                filesBelow(fixture.folder.file("bodies")).count == 2
            }
        }
    }

    @Test func `Bodies are listed with their uses, by filters and in pages`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            var bodies: [String] = []
            for number in 1...5 {
                let fields = number == 5 ? [("Upload-Complete", "?0")] : []
                let answer = try await api.dev.send(
                    "POST", "/v1/bodies", headers: fields, body: [UInt8](repeating: 1, count: number))
                bodies.append(try #require(answer.json["id"].string))
            }
            let task: TestSupport.JSON = [
                "kind": "upload", "request": ["url": "https://example.com/a"], "state": "suspended",
                "body": ["id": .string(bodies[1])],
            ]
            #expect(try await api.dev.post("/v1/sessions/s/tasks", task).status == 201)
            func list(_ query: String) async throws -> [String?] {
                let answer = try await api.dev.get("/v1/bodies\(query)")
                return answer.json["items"].array?.map { $0["id"].string } ?? [answer.code]
            }
            #expect(try await list("") == bodies)
            #expect(try await list("?state=complete") == Array(bodies.prefix(4)))
            #expect(try await list("?state=partial") == [bodies[4]])
            #expect(try await list("?inUse=true") == [bodies[1]])
            #expect(try await list("?inUse=false&state=complete") == [bodies[0], bodies[2], bodies[3]])
            #expect(try await list("?state=partial,complete") == bodies)
            #expect(try await list("?state=broken") == ["invalid-value"])
            #expect(try await list("?state=partial,broken") == ["invalid-value"])
            let page = try await api.dev.get("/v1/bodies?limit=2")
            let next = try #require(page.json["nextCursor"].string)
            #expect(try await list("?limit=2&cursor=\(next)") == Array(bodies[2...3]))
            let all = try await api.dev.get("/v1/bodies").json["items"].array ?? []
            #expect(all.map { $0["countOfBytesStored"].int } == [1, 2, 3, 4, 5])
            #expect(all.map { $0["uses"].int } == [0, 1, 0, 0, 0])
            #expect(all.map { $0["complete"].bool } == [true, true, true, true, false])
            // The bodies of another app are not listed.
            let other = try await api.admin.post("/v1/apps", ["identifier": "other"])
            #expect(try await api.client(other).get("/v1/bodies").json["items"].array?.isEmpty == true)
        }
    }

    @Test func `A request without framing gets 411`() async throws {
        try await RouteFixture.run { fixture in
            let answer = try await fixture.call("POST", "/v1/bodies")
            #expect(answer.status == 411)
            #expect(answer.problem == .lengthRequired)
        }
    }

    @Test func `A repeated Idempotency-Key gets the stored response for the same bytes only`() async throws {
        try await RouteFixture.run { fixture in
            let key = [("Idempotency-Key", "k")]
            let first = try await fixture.call("POST", "/v1/bodies", headers: key, body: [1, 2])
            #expect(first.status == 201)
            let again = try await fixture.call("POST", "/v1/bodies", headers: key, body: [1, 2])
            #expect(again.status == 201)
            #expect(again.bytes == first.bytes)
            let other = try await fixture.call("POST", "/v1/bodies", headers: key, body: [1, 3])
            #expect(other.problem == .idempotencyMismatch)
        }
    }

    @Test(arguments: [0, 5, 100_000])
    func `A draft accepts appends until it is complete`(first: Int) async throws {
        try await RouteFixture.run { fixture in
            let bytes = TestSupport.Content.bytes(seed: 2, length: first + 70_000)
            let created = try await fixture.call(
                "POST", "/v1/bodies", headers: [("Upload-Complete", "?0"), ("Upload-Length", "\(bytes.count)")],
                body: Array(bytes[..<first]))
            #expect(created.status == 201)
            #expect(created.headers["Upload-Complete"] == "?0")
            let place = try #require(created.headers["Location"])
            #expect(try created.json["length"] == WireJSON.null)

            let state = try await fixture.call("HEAD", place)
            #expect(state.headers["Upload-Offset"] == "\(first)")
            #expect(state.headers["Upload-Complete"] == "?0")
            #expect(state.headers["Upload-Length"] == "\(bytes.count)")
            #expect(state.headers["Cache-Control"] == "no-store")

            func append(_ range: Range<Int>, complete: String, _ more: [(String, String)] = []) async throws -> Answered
            {
                try await fixture.call(
                    "PATCH", place,
                    headers: [
                        ("Content-Type", "application/partial-upload"), ("Upload-Offset", "\(range.lowerBound)"),
                        ("Upload-Complete", complete),
                    ] + more, body: Array(bytes[range]))
            }
            let wrong = try await append(first + 1..<first + 2, complete: "?0")
            #expect(wrong.status == 409)
            #expect(wrong.problem == .uploadOffsetMismatch)
            #expect(wrong.headers["Upload-Offset"] == "\(first)")

            let spoiled = try await append(
                first..<first + 50_000, complete: "?0", [("Content-Digest", Self.digest([7]))])
            #expect(spoiled.problem == .digestMismatch)
            #expect(try await fixture.call("HEAD", place).headers["Upload-Offset"] == "\(first)")

            let part = try await append(first..<first + 10, complete: "?0")
            #expect(part.status == 204)
            #expect(part.headers["Upload-Offset"] == "\(first + 10)")
            let short = try await append(first + 10..<first + 20, complete: "?1")
            #expect(short.problem == .invalidValue)

            let last = try await append(
                first + 10..<bytes.count, complete: "?1", [("Repr-Digest", Self.digest(bytes))])
            #expect(last.status == 200)
            let body: StoredBody = try last.read()
            #expect(body.length == Int64(bytes.count))
            #expect(body.digest?.value == Digest.of(bytes).hexadecimal)
            let late = try await append(bytes.count..<bytes.count, complete: "?1")
            #expect(late.status == 409)
            #expect(late.headers["Upload-Complete"] == "?1")
        }
    }

    @Test func `A finished draft with another digest is deleted`() async throws {
        try await RouteFixture.run { fixture in
            let created = try await fixture.call(
                "POST", "/v1/bodies", headers: [("Upload-Complete", "?0")], body: [1])
            let place = try #require(created.headers["Location"])
            let answer = try await fixture.call(
                "PATCH", place,
                headers: [
                    ("Content-Type", "application/partial-upload"), ("Upload-Offset", "1"), ("Upload-Complete", "?1"),
                    ("Repr-Digest", Self.digest([9])),
                ], body: [2])
            #expect(answer.problem == .digestMismatch)
            #expect(try await fixture.call("HEAD", place).status == 404)
        }
    }

    @Test func `An append without its type or its offset is refused`() async throws {
        try await RouteFixture.run { fixture in
            let created = try await fixture.call("POST", "/v1/bodies", headers: [("Upload-Complete", "?0")], body: [])
            let place = try #require(created.headers["Location"])
            let untyped = try await fixture.call("PATCH", place, headers: [("Upload-Offset", "0")], body: [1])
            #expect(untyped.status == 415)
            let placeless = try await fixture.call(
                "PATCH", place, headers: [("Content-Type", "application/partial-upload")], body: [1])
            #expect(placeless.problem == .invalidValue)
        }
    }
}
