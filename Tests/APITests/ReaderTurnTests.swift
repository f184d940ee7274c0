import Base
import Formats
import Service
import Store
import TestSupport
import Testing

@testable import API

/// The order of reads when many are queued.
@Suite struct ReaderTurnTests {
    /// Long enough for several turns of one request.
    private static let tasks = 120

    /// Creates session `s` of an app, with tasks that wait.
    private static func fill(_ fixture: RouteFixture, key: String = "dev") async throws {
        #expect(try await fixture.call("PUT", "/v1/sessions/s", key: key, json: [:]).status == 201)
        let task: WireJSON = [
            "kind": "download", "state": "suspended", "request": ["url": "https://example.com/a"],
        ]
        let tasks = WireJSON.array(Array(repeating: task, count: Self.tasks))
        let made = try await fixture.call("POST", "/v1/sessions/s/tasks/batch", key: key, json: ["tasks": tasks])
        #expect(made.status == 201)
    }

    @Test func `A short read of one app is not delayed by forty long reads of another`() async throws {
        try await RouteFixture.run { fixture in
            let made = try await fixture.call("POST", "/v1/apps", key: "admin", json: ["identifier": "other"])
            let other = try #require(try made.json["apiKey"]?.stringValue)
            try await Self.fill(fixture)
            try await Self.fill(fixture, key: other)
            // One reader is released once all requests are queued.
            let gates = (0..<Store.readers).map { _ in Gate() }
            let held = gates.map { gate in
                Task(executorPreference: fixture.service.readers(of: 0)) { gate.pass() }
            }
            try await eventually("all readers are held") { gates.allSatisfy { $0.waiting == 1 } }
            let answered = Locked(0)
            let path = "/v1/sessions/s/tasks?limit=1000"
            let many = try (0..<40).map { _ in
                try fixture.begin("GET", path) { answered.withLock { $0 += 1 } }
            }
            let before = Locked<Int?>(nil)
            let one = try fixture.begin("GET", path, key: other) {
                before.withLock { $0 = answered.withLock { $0 } }
            }
            gates[0].open()
            let items = try await one.value.json["items"]
            for gate in gates { gate.open() }
            #expect(items?.elements?.count == Self.tasks)
            #expect(try #require(before.withLock { $0 }) <= 3)
            for request in many { #expect(try await request.value.status == 200) }
            for reader in held { await reader.value }
        }
    }

    @Test func `A long page of events is read in steps, and other reads run between them`() async throws {
        try await RouteFixture.run { fixture in
            try await Self.fill(fixture)
            #expect(try await fixture.call("POST", "/v1/sessions/s/tasks/cancel", json: [:]).status == 200)
            func turns(_ limit: Int) async throws -> Int {
                let executor = CountingExecutor()
                let path = "/v1/sessions/s/events?limit=\(limit)"
                let page = try await fixture.begin("GET", path, on: executor).value
                #expect(try page.json["items"]?.elements?.count == limit)
                return executor.count
            }
            let most = 2 * Self.tasks
            let (many, one) = (try await turns(most), try await turns(1))
            #expect(many - one >= (most - 1) / 50)
        }
    }
}
