import Base
import Core
import HTTPServer
import TestSupport
import Testing
import Wire

@testable import API

@Suite struct ShownTasksTests {
    private func shown(_ number: Int64, bytes: Int = 1000) -> ShownTask {
        ShownTask(
            stamp: TaskStamp(
                task: TaskID(number), revision: 2, contentExpiresAt: nil, isContentExpired: false),
            text: JSONText(knownValid: [UInt8](repeating: 0x30, count: bytes)))
    }

    @Test func `The cache is bounded in bytes and keeps recently read tasks`() {
        let tasks = ShownTasks(maximumBytes: 64 << 10)
        let favourite = shown(0)
        tasks.keep(favourite)
        for number in 1...1000 {
            tasks.keep(shown(Int64(number)))
            #expect(tasks.task(favourite.stamp)?.stamp == favourite.stamp)
            #expect(tasks.bytes <= 64 << 10)
        }
        #expect(tasks.task(shown(1000).stamp) != nil)
        #expect(tasks.task(shown(1).stamp) == nil)
    }

    @Test func `A task that needs more than half of the cache is not kept`() {
        let tasks = ShownTasks(maximumBytes: 64 << 10)
        tasks.keep(shown(1, bytes: 30 << 10))
        tasks.keep(shown(2, bytes: 33 << 10))
        #expect(tasks.task(shown(1).stamp) != nil)
        #expect(tasks.task(shown(2).stamp) == nil)
    }

    @Test func `A completed task is rendered once, and again after each change`() async throws {
        try await RouteFixture.run { fixture in
            let done = try await fixture.download(.text("hello"))
            let stamp = try #require(done.stamp)
            let path = "/v1/sessions/s/tasks/1"
            #expect(fixture.server.shownTasks.task(stamp) == nil)

            /// The task alone and in the list, each twice: the first may be rendered, the second comes from the cache.
            func look() async throws -> WireJSON {
                let first = try await fixture.call("GET", path)
                let second = try await fixture.call("GET", path)
                #expect(first.bytes == second.bytes && first.headers["ETag"] == second.headers["ETag"])
                for list in ["/v1/sessions/s/tasks", "/v1/tasks", "/v1/sessions/s/tasks", "/v1/tasks"] {
                    #expect(try await fixture.call("GET", list).json["items"]?.elements == [try first.json])
                }
                return try first.json
            }

            let before = try await look()
            #expect(before["sessionIdentifier"]?.stringValue == "s")
            #expect(fixture.server.shownTasks.task(stamp)?.text.bytes == before.jsonBytes)
            let patch: WireJSON = ["taskDescription": "late", "metadata": ["a": "b"]]
            _ = try await fixture.call("PATCH", path, json: patch)
            let changed = try await look()
            #expect(changed["taskDescription"]?.stringValue == "late")
            #expect(changed["metadata"]?["a"]?.stringValue == "b")
            _ = try await fixture.call("POST", "/v1/sessions/s/events/ack", json: ["through": 3])
            let acknowledged = try await look()
            #expect(acknowledged["revision"] == changed["revision"])
            #expect(acknowledged["content"]?["expiresAt"] != changed["content"]?["expiresAt"])
            _ = try await fixture.call("DELETE", "/v1/sessions/s")
            #expect(try await fixture.call("GET", path).status == 404)
        }
    }

    @Test func `A waiting or running task is never cached`() async throws {
        try await RouteFixture.run { fixture in
            _ = try await fixture.call("PUT", "/v1/sessions/s", json: [:])
            let task: WireJSON = [
                "kind": "download", "state": "suspended", "request": ["url": "https://example.com/"],
            ]
            _ = try await fixture.call("POST", "/v1/sessions/s/tasks", json: task)
            _ = try await fixture.call("GET", "/v1/sessions/s/tasks/1")
            #expect(fixture.server.shownTasks.bytes == 0)
            _ = try await fixture.call("POST", "/v1/sessions/s/tasks/1/cancel")
            let cancelled = try await fixture.call("GET", "/v1/sessions/s/tasks/1").json
            #expect(cancelled["outcome"]?.stringValue == "cancelled")
        }
    }
}
