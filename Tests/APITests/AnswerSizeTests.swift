import Core
import Foundation
import HTTPServer
import Service
import TestSupport
import Testing
import Wire

@testable import API

/// Limits of the size of a response, whatever its parts.
@Suite struct AnswerSizeTests {
    private static let lines = [("Content-Type", "application/x-ndjson")]
    private static let pageBytes = 4 << 20

    @Test func `After a thousand refused lines the service reads no more, and the last line reports it`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let refused = String(repeating: "x\n", count: 3000)
            let body = "\(api.task(client: "first"))\n\(refused)\(api.task(client: "last"))"
            let answer = try await api.dev.send(
                "POST", "/v1/sessions/s/tasks", headers: Self.lines, body: bytes(body))
            #expect(answer.status == 200)
            let results = try answer.text.split(separator: "\n").map { try TestSupport.JSON(parsing: String($0)) }
            #expect(results.first?["taskIdentifier"].int == 1)
            #expect(results.count == 1 + 1000 + 1)
            #expect(results.dropFirst().prefix(1000).allSatisfy { $0["problem"]["code"].string == "malformed-json" })
            #expect(results.last?["status"].int == 422)
            #expect(results.last?["problem"]["detail"].string?.contains("1000") == true)
            #expect(
                try await api.dev.get("/v1/sessions/s/tasks?clientTaskId=last").json["items"].array?.isEmpty == true)
        }
    }

    @Test func `Results that exceed memory arrive in order and leave no file`() async throws {
        try await RouteFixture.run { fixture in
            _ = try await fixture.call("PUT", "/v1/sessions/s", json: [:])
            func line(_ number: Int) -> String {
                """
                {"kind":"download","request":{"url":"https://example.com/"},"state":"suspended","clientTaskId":"\(number)"}

                """
            }
            let body = (1...1000).map(line).joined()
            let answer = try await fixture.call(
                "POST", "/v1/sessions/s/tasks", headers: Self.lines, body: bytes(body))
            #expect(answer.status == 200 && answer.bytes.count > 64 * 1024)
            let results = try answer.bytes.split(separator: UInt8(ascii: "\n")).map { try WireJSON.parse(Array($0)) }
            #expect(results.count == 1000)
            for (index, result) in results.enumerated() {
                #expect(result["clientTaskId"]?.stringValue == "\(index + 1)")
            }
            #expect(filesBelow(fixture.folder.file("partial")).isEmpty)
        }
    }

    @Test func `At most 16 KiB of an origin's header fields are kept, with the names of the others`() async throws {
        try await RouteFixture.run { fixture in
            var resource = Resource.text("x")
            resource.fields = HTTPFields([
                HTTPField(name: "X-Large", value: String(repeating: "a", count: 60_000)),
                HTTPField(name: "X-Small", value: "b"),
            ])
            for number in 0..<30 {
                resource.fields.append("X-\(number)", String(repeating: "c", count: 1000))
            }
            let task = try await fixture.download(resource)
            let answer = try await fixture.call("GET", "/v1/sessions/s/tasks/\(task.number)").json
            func check(_ response: WireJSON?) throws {
                let headers = try #require(response?["headers"]?.members)
                let size = headers.reduce(0) { $0 + $1.name.utf8.count + ($1.value.stringValue?.utf8.count ?? 0) }
                #expect(size <= 16 * 1024)
                #expect(headers.contains { $0.name == "X-Small" } && headers.contains { $0.name == "X-0" })
                #expect(!headers.contains { $0.name == "X-Large" })
                let dropped = (response?["droppedHeaders"]?.elements ?? []).compactMap(\.stringValue)
                #expect(dropped.first == "X-Large" && dropped.last == "X-29")
            }
            try check(answer["response"])
            let events = try await fixture.call("GET", "/v1/sessions/s/events").json["items"]?.elements
            try check(events?.last?["data"]?["response"])
        }
    }

    @Test func `A page of a list ends at 4 MiB, and its cursor continues the list`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            var task = api.task()
            let text = TestSupport.JSON.string(String(repeating: "m", count: 4000))
            task["metadata"] = ["a": text, "b": text]
            for _ in 0..<2 {
                let tasks = TestSupport.JSON.array(Array(repeating: task, count: 300))
                #expect(
                    try await api.dev.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": tasks]).status == 201)
            }
            var found: [Int] = []
            var cursor = ""
            while true {
                let page = try await api.dev.get("/v1/sessions/s/tasks?limit=1000\(cursor)")
                #expect(page.body.count <= Self.pageBytes)
                found += page.json["items"].array?.compactMap { $0["taskIdentifier"].int } ?? []
                guard let next = page.json["nextCursor"].string else { break }
                #expect(page.fields["Link"]?.contains(next) == true)
                cursor = "&cursor=\(next)"
            }
            #expect(found == Array(1...600))
            #expect(!cursor.isEmpty)
        }
    }

    @Test func `A page of events ends at 4 MiB and is marked as incomplete`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let task = api.task("https://example.com/" + String(repeating: "p", count: 8000))
            let tasks = TestSupport.JSON.array(Array(repeating: task, count: 350))
            #expect(try await api.dev.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": tasks]).status == 201)
            _ = try await api.dev.post("/v1/sessions/s/tasks/cancel")
            var last = 0
            var pages = 0
            while true {
                let page = try await api.dev.get("/v1/sessions/s/events?after=\(last)&limit=1000&wait=1")
                pages += 1
                #expect(page.body.count <= Self.pageBytes)
                let items = page.json["items"].array ?? []
                #expect(items.map { $0["seq"].int } == Array(last + 1..<last + 1 + items.count))
                last += items.count
                #expect(page.json["finished"].bool == (last == page.json["lastSeq"].int))
                guard last < page.json["lastSeq"].int ?? 0, !items.isEmpty else { break }
            }
            #expect(last == 700)
            #expect(pages > 1)
        }
    }
}
