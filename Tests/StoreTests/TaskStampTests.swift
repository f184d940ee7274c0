import Core
import TestSupport
import Testing

@testable import Store

@Suite struct TaskStampTests {
    @Test func `The stamp of a completed task changes with every visible member`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.create([fixture.download(), fixture.download()], in: session)
        let task = try #require(try await fixture.claim(1).first)
        try await fixture.settle(fixture.completion(task.id, .succeeded, bytes: [1, 2, 3]))
        var stamps: Set<TaskStamp> = []
        func look() async throws {
            let record = try await fixture.store.tasks.read(task.id)
            let stamp = try #require(record.stamp)
            #expect(stamps.insert(stamp).inserted)
            // The stamp from the query before reading equals the stamp of the read task.
            let found = try await fixture.store.tasks.list(
                in: session.id, TaskFilter(), after: 0, limit: 10, known: { $0 }
            ).compactMap(\.task)
            guard case .known(stamp) = found.first, case .read(let other) = found.last else {
                Issue.record("\(found)")
                return
            }
            #expect(other.number == 2 && other.stamp == nil)
        }
        try await look()
        var changes = TaskChanges()
        changes.metadata = ["a": "b"]
        _ = try await fixture.store.tasks.change(task.id, changes, ifRevision: nil, at: fixture.now)
        try await look()
        _ = try await fixture.store.sessions.acknowledge(through: 3, epoch: nil, in: session.id, at: fixture.now)
        try await look()
        fixture.advance(.seconds(24 * 3600))
        _ = try await fixture.clean()
        #expect(try await fixture.store.tasks.read(task.id).content?.isExpired == true)
        try await look()
    }
}
