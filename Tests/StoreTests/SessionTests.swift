import Core
import SQL
import TestSupport
import Testing

@testable import Store

struct SessionTests {
    @Test
    func `An identifier creates a session once, and reconnects afterwards`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        let first = try await fixture.store.sessions.open(
            "s", app: app, configuration: nil, description: "d", onlyCreates: false, at: fixture.now)
        let second = try await fixture.store.sessions.open(
            "s", app: app, configuration: nil, description: nil, onlyCreates: false, at: fixture.now)
        #expect(first.arrival == .created)
        #expect(second.arrival == .reconnected)
        #expect(second.session.id == first.session.id)
        #expect(second.session.sessionDescription == "d")
        #expect(second.session.incarnation == 1)
        await #expect(throws: DomainError.sessionExists) {
            try await fixture.store.sessions.open(
                "s", app: app, configuration: nil, description: nil, onlyCreates: true, at: fixture.now)
        }
    }

    @Test
    func `Apps may use the same identifier`() async throws {
        let fixture = try await StoreFixture()
        let one = try await fixture.makeSession("s")
        let other = try await fixture.makeSession("s")
        #expect(one.id != other.id)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.sessions.read("t", app: one.app)
        }
        #expect(try await fixture.store.sessions.read("s", app: other.app).id == other.id)
    }

    @Test
    func `Another configuration is refused with the names of its members`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession("s") { $0.isDiscretionary = true }
        let other = SessionConfiguration.with { $0.timeoutIntervalForRequest = 5 }
        await #expect(
            throws: DomainError.configurationMismatch(["isDiscretionary", "timeoutIntervalForRequest"])
        ) {
            try await fixture.store.sessions.open(
                "s", app: session.app, configuration: other, description: nil, onlyCreates: false, at: fixture.now)
        }
    }

    @Test
    func `An empty session becomes invalid at once, with its last event`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let (invalid, _) = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        #expect(invalid.state.phase == .invalid)
        #expect(try await fixture.kinds(session) == [.didBecomeInvalid])
        let (again, _) = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        #expect(again.lastEventSeq == 1)
        await #expect(throws: DomainError.sessionInvalidated) {
            try await fixture.create(fixture.download(), in: session)
        }
    }

    @Test
    func `An invalidating session finishes its tasks first`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession("s")
        let task = try await fixture.create(fixture.download(), in: session)
        let suspended = try await fixture.create(fixture.download(suspended: true), in: session)
        let (invalidating, _) = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        #expect(invalidating.state == .invalidating)
        await #expect(throws: DomainError.sessionInvalidated) {
            try await fixture.create(fixture.download(), in: session)
        }
        await #expect(throws: DomainError.sessionInvalidated) {
            try await fixture.store.sessions.open(
                "s", app: session.app, configuration: nil, description: nil, onlyCreates: false, at: fixture.now)
        }
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(task.id))
        #expect(try await fixture.refresh(session).state == .invalidating)
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: suspended.id, at: fixture.now)
        #expect(try await fixture.refresh(session).state.phase == .invalid)
        let kinds = try await fixture.kinds(session)
        #expect(kinds.last == .didBecomeInvalid)
        #expect(kinds.count { $0 == .didComplete } == 2)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An invalid session's identifier restarts with the next incarnation`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession("s")
        try await fixture.finished(session)
        let launch = try #require(try await fixture.openLaunch(session))
        _ = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        let next = try await fixture.store.sessions.open(
            "s", app: session.app, configuration: nil, description: nil, onlyCreates: false, at: fixture.now)
        #expect(next.arrival == .created)
        #expect(next.session.incarnation == 2)
        #expect(next.session.lastEventSeq == 0)
        #expect(next.session.openLaunch == nil)
        let task = try await fixture.create(fixture.download(), in: next.session)
        #expect(task.number == 1)
        await #expect(throws: DomainError.notFound) { try await fixture.store.sessions.read(session.id) }
        // A late completion acknowledges an invalid session without an event.
        _ = try await fixture.store.launches.answer(
            launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        #expect(try await fixture.refresh(next.session).lastEventSeq == 0)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An invalid session is deleted after a week`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        try await fixture.finished(session)
        _ = try await fixture.store.sessions.invalidate(session.id, at: fixture.now)
        fixture.advance(.seconds(6 * 24 * 3600))
        try await fixture.clean()
        #expect(try await fixture.refresh(session).state.phase == .invalid)
        fixture.advance(.seconds(24 * 3600))
        try await fixture.clean()
        await #expect(throws: DomainError.notFound) { try await fixture.store.sessions.read(session.id) }
    }

    @Test
    func `Deletion stops the transfers, releases the app's slots and leaves no rows`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession("s")
        try await fixture.create((0..<25).map { fixture.download("/\($0)") }, in: session)
        let active = try await fixture.claim(3)
        try await fixture.create([fixture.download(suspended: true)], in: session)
        try await fixture.settle(fixture.completion(active[0].id), fixture.ask(active[1].id, "q1"))
        let (gone, aftermath) = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        #expect(gone.state.phase == .invalid)
        #expect(aftermath.transfersToStop == [active[2].id])
        #expect(try await fixture.store.apps.read(session.app).unfinishedTasks == 0)
        // A late settlement changes nothing and leaves no file.
        let late = try await fixture.settle(fixture.completion(active[2].id))
        #expect(late.filesToRemove == ["partial/\(active[2].id.rawValue)"])
        #expect(try await fixture.store.apps.read(session.app).unfinishedTasks == 0)
        try await fixture.clean(rows: 10)
        let rows = try await fixture.store.database.read { db in
            try db.all(
                """
                SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM task), (SELECT count(*) FROM live), \
                (SELECT count(*) FROM event), (SELECT count(*) FROM lane), (SELECT count(*) FROM content), \
                (SELECT count(*) FROM question), (SELECT count(*) FROM acknowledgement)
                """
            ) { row in (0..<8).map { row.integer(.position($0)) } }
        }
        #expect(rows == [[0, 0, 0, 0, 0, 0, 0, 0]])
        let next = try await fixture.makeSession("s", app: session.app)
        #expect(next.incarnation == 2)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A deleted session is no longer due or claimed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let begin = fixture.now + .seconds(60)
        let created = try await fixture.create(
            [fixture.download { $0.earliestBeginDate = begin }, fixture.download(), fixture.download()], in: session)
        let claimed = try await fixture.claim(1)
        try await fixture.settle(fixture.ask(claimed[0].id, "q"))
        _ = try await fixture.store.sessions.forget(session.id, at: fixture.now)
        fixture.advance(.seconds(604_900))
        _ = try await fixture.store.tasks.expire(at: fixture.now, limit: 100)
        _ = try await fixture.store.questions.expire(at: fixture.now, limit: 100)
        #expect(try await fixture.claim().isEmpty)
        #expect(try await fixture.store.tasks.nextDueTime() == nil)
        #expect(try await fixture.store.tasks.recoverInterrupted(at: fixture.now).recovered.interrupted <= 1)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.tasks.command(.resume, task: created[0].task.id, at: fixture.now)
        }
        #expect(try await fixture.store.apps.read(session.app).unfinishedTasks == 0)
    }

    @Test
    func `Changeable members change if the client has the current revision`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession { $0.httpAdditionalHeaders.append("Authorization", "canary-a") }
        let changed = try await fixture.store.sessions.change(
            session.id, description: .some("d"), bandwidthLimit: .some(1000), ifRevision: session.revision)
        #expect(changed.sessionDescription == "d")
        let read = try await fixture.refresh(session)
        #expect(read.configuration.bandwidthLimit == 1000)
        #expect(read.configuration.httpAdditionalHeaders["authorization"] == "canary-a")
        await #expect(throws: DomainError.revisionMismatch) {
            try await fixture.store.sessions.change(
                session.id, description: .some(nil), bandwidthLimit: nil, ifRevision: session.revision)
        }
    }
}
