import Base
import Core
import Formats
import HTTPServer
import Service
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct ContentRoutesTests {
    private static let path = "/v1/sessions/s/tasks/1/content"

    @Test(arguments: [1000, 300_000])
    func `A content is read completely and in ranges`(length: Int) async throws {
        try await RouteFixture.run { fixture in
            let bytes = TestSupport.Content.bytes(seed: 5, length: length)
            _ = try await fixture.download(.generated(seed: 5, length: length))
            let whole = try await fixture.call("GET", Self.path, headers: [("Accept", "image/png")])
            #expect(whole.status == 200)
            #expect(whole.bytes == bytes)
            let tag = try #require(whole.headers["ETag"])
            #expect(tag == "\"\(Digest.of(bytes).hexadecimal)\"")
            #expect(whole.headers["Repr-Digest"] == DigestField.format([.sha256: Digest.of(bytes)]))
            #expect(whole.headers["Accept-Ranges"] == "bytes")
            #expect(whole.headers["Content-Disposition"]?.hasPrefix("attachment; filename=\"file") == true)

            let same = try await fixture.call("GET", Self.path, headers: [("Accept-Encoding", "gzip")])
            #expect(same.bytes == bytes && same.headers["Content-Encoding"] == nil && same.headers["ETag"] == tag)
            let part = try await fixture.call("GET", Self.path, headers: [("Range", "bytes=10-19")])
            #expect(part.status == 206)
            #expect(part.bytes == Array(bytes[10..<20]))
            #expect(part.headers["Content-Range"] == "bytes 10-19/\(length)")
            let end = try await fixture.call(
                "GET", Self.path, headers: [("Range", "bytes=-5"), ("If-Range", tag)])
            #expect(end.bytes == Array(bytes.suffix(5)))
            let changed = try await fixture.call(
                "GET", Self.path, headers: [("Range", "bytes=-5"), ("If-Range", "\"other\"")])
            #expect(changed.status == 200)
            #expect(changed.bytes == bytes)

            let outside = try await fixture.call("GET", Self.path, headers: [("Range", "bytes=\(length)-")])
            #expect(outside.status == 416)
            #expect(outside.problem == .rangeNotSatisfiable)
            #expect(outside.headers["Content-Range"] == "bytes */\(length)")
            #expect(try await fixture.call("GET", Self.path, headers: [("If-None-Match", tag)]).status == 304)
            #expect(try await fixture.call("HEAD", Self.path, headers: [("Range", "bytes=10-19")]).status == 200)
        }
    }

    @Test func `Contents are claimed together, by filters and numbers`() async throws {
        try await RouteFixture.run { fixture in
            for _ in 1...3 { _ = try await fixture.download(.generated(seed: 5, length: 100)) }
            func claim(_ selection: String) async throws -> [WireJSON?] {
                let answer = try await fixture.call(
                    "POST", "/v1/sessions/s/tasks/claim", headers: [("Content-Type", "application/json")],
                    body: Array(selection.utf8))
                #expect(answer.status == 200, "\(selection)")
                return [try answer.json["matched"], try answer.json["changed"]]
            }
            #expect(try await claim(#"{"taskIdentifiers": [1, 3, 77]}"#) == [2, 2])
            #expect(try await fixture.call("GET", Self.path).problem == .contentExpired)
            #expect(try await fixture.call("GET", "/v1/sessions/s/tasks/2/content").status == 200)
            #expect(try await claim(#"{"outcome": "succeeded"}"#) == [3, 1])
            #expect(try await claim(#"{"outcome": "failed"}"#) == [0, 0])
            let tooMany = "{\"taskIdentifiers\": \((1...1001).map { $0 })}"
            let refused = try await fixture.call(
                "POST", "/v1/sessions/s/tasks/claim", headers: [("Content-Type", "application/json")],
                body: Array(tooMany.utf8))
            #expect(refused.problem == .invalidValue)
        }
    }

    @Test func `A claimed content gets 410, and a task without content gets 404`() async throws {
        try await RouteFixture.run { fixture in
            _ = try await fixture.download(.generated(seed: 5, length: 100))
            let claimed = try await fixture.call("POST", Self.path + "/claim")
            #expect(claimed.status == 200)
            #expect(try claimed.json["content"] == WireJSON.null)
            let gone = try await fixture.call("GET", Self.path)
            #expect(gone.status == 410)
            #expect(gone.problem == .contentExpired)
            #expect(try await fixture.call("GET", "/v1/sessions/s/tasks/2/content").problem == .notFound)
            #expect(try await fixture.call("GET", "/v1/sessions/s/tasks/0/content").status == 404)
            #expect(try await fixture.call("GET", "/v1/sessions/none/tasks/1/content").status == 404)
        }
    }
}
