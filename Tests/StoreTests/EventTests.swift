import Core
import TestSupport
import Testing

@testable import Store

struct EventTests {
    @Test
    func `Events are paged in order, and the last page is marked`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        for _ in 0..<3 { try await fixture.finished(session) }
        try await fixture.create([fixture.download()], in: session)
        let first = try await fixture.store.sessions.events(of: session.id, after: nil, limit: 4)
        #expect(first.events.map(\.seq) == [1, 2, 3, 4])
        #expect(first.lastSeq == 9)
        #expect(!first.isFinished)
        let second = try await fixture.store.sessions.events(of: session.id, after: 4, limit: 100)
        #expect(second.events.map(\.seq) == [5, 6, 7, 8, 9])
        #expect(!second.isFinished)
        _ = try await fixture.claim()
        let last = try await fixture.store.tasks.read(4, in: session.id)
        try await fixture.settle(fixture.completion(last.id))
        #expect(try await fixture.store.sessions.events(of: session.id, after: 9, limit: 100).isFinished)
        #expect(try await !fixture.store.sessions.events(of: session.id, after: 9, limit: 2).isFinished)
        await #expect(throws: DomainError.cursorInvalid(incarnation: 1, lastSeq: 12)) {
            try await fixture.store.sessions.events(of: session.id, after: 13, limit: 2)
        }
    }

    @Test
    func `Acknowledgement is cumulative, idempotent and bounded`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        try await fixture.finished(session)
        func acknowledge(_ seq: Int64) async throws -> Int64 {
            try await fixture.store.sessions.acknowledge(through: seq, epoch: nil, in: session.id, at: fixture.now).0
                .acknowledgedSeq
        }
        #expect(try await acknowledge(4) == 4)
        #expect(try await acknowledge(2) == 4)
        #expect(try await acknowledge(4) == 4)
        await #expect(throws: DomainError.acknowledgementOutOfRange(lastSeq: 6)) { try await acknowledge(7) }
        #expect(
            try await fixture.store.sessions.events(of: session.id, after: nil, limit: 100).events.map(\.seq) == [5, 6])
        // Acknowledged events can still be read again.
        #expect(try await fixture.store.sessions.events(of: session.id, after: 0, limit: 100).events.count == 6)
    }

    @Test
    func `Acknowledged events expire after an hour, and a read before them is refused`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        for _ in 0..<4 { try await fixture.finished(session) }
        _ = try await fixture.store.sessions.acknowledge(through: 6, epoch: nil, in: session.id, at: fixture.now)
        fixture.advance(.seconds(3599))
        try await fixture.clean()
        #expect(try await fixture.store.sessions.events(of: session.id, after: 0, limit: 100).events.count == 12)
        fixture.advance(.seconds(1))
        // In steps smaller than the number of due rows.
        #expect(try await fixture.store.upkeep.clean(.events, at: fixture.now, rows: 4).hasMore)
        await #expect(throws: DomainError.eventsExpired(oldestSeq: 5)) {
            try await fixture.store.sessions.events(of: session.id, after: 3, limit: 100)
        }
        #expect(try await fixture.store.sessions.events(of: session.id, after: 4, limit: 100).events.first?.seq == 5)
        try await fixture.clean([.events], rows: 4)
        await #expect(throws: DomainError.eventsExpired(oldestSeq: 7)) {
            try await fixture.store.sessions.events(of: session.id, after: 0, limit: 100)
        }
        #expect(try await fixture.store.sessions.events(of: session.id, after: nil, limit: 100).events.first?.seq == 7)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Completed tasks expire a week after their acknowledgement, after their contents`() async throws {
        let fixture = try await StoreFixture(contentRetention: .seconds(8 * 24 * 3600))
        let session = try await fixture.makeSession()
        let kept = try await fixture.finished(session)
        let other = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(other.id, .failed, bytes: nil))
        let unread = try await fixture.finished(session)
        _ = try await fixture.store.sessions.acknowledge(through: 5, epoch: nil, in: session.id, at: fixture.now)
        fixture.advance(.seconds(3600))
        try await fixture.clean()
        fixture.advance(.seconds(7 * 24 * 3600))
        try await fixture.clean()
        #expect(try await fixture.store.tasks.read(kept.id).content?.isExpired == false)
        #expect(try await fixture.store.tasks.read(other.id).state == .completed)
        fixture.advance(.seconds(24 * 3600))
        try await fixture.clean()
        await #expect(throws: DomainError.notFound) { try await fixture.store.tasks.read(kept.id) }
        await #expect(throws: DomainError.notFound) { try await fixture.store.tasks.read(other.id) }
        #expect(try await fixture.store.tasks.read(unread.id).state == .completed)
        #expect(try await fixture.refresh(session).counts.succeeded == 2)
    }

    @Test
    func `The events of a deleted session cannot be read`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.sessions.events(of: session.id, after: nil, limit: 10)
        }
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.sessions.acknowledge(through: 1, epoch: nil, in: session.id, at: fixture.now)
        }
    }
}
