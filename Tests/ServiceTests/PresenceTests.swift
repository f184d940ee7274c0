import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

struct PresenceTests {
    private let session = SessionID(1)

    @Test
    func `A session is attached from its first client to its last`() {
        let time = ManualClock()
        let attendance = Attendance(clock: time.clock)
        let start = time.clock.now
        #expect(attendance.presence(of: session) == Presence(isAttached: false, lastDetachedAt: start))
        attendance.attach(session, .wait)
        attendance.attach(session, .stream)
        #expect(attendance.kind(of: session) == .stream)
        time.advance(by: 1000)
        #expect(!attendance.detach(session, .stream))
        #expect(attendance.kind(of: session) == .wait)
        #expect(attendance.presence(of: session).isAttached)
        time.advance(by: 1000)
        #expect(attendance.detach(session, .wait))
        #expect(
            attendance.presence(of: session) == Presence(isAttached: false, lastDetachedAt: start + .seconds(2)))
        #expect(attendance.kind(of: session) == nil)
    }

    @Test
    func `Each client that attaches delays the next fetch`() async throws {
        try await ServiceStage.run { stage in
            let (store, app) = (stage.service.store, stage.app)
            _ = try await store.apps.setRefreshInterval(.minimum, of: app, at: stage.service.clock.now)
            func lastAttachedAt() async throws -> Timestamp? {
                try await store.database.read { db in try store.apps.readRefresh(of: app, db).lastAttachedAt }
            }
            let session = try await stage.session().id
            let service = stage.service
            let times = try await service.attached(to: session, .stream) {
                let first = try await lastAttachedAt()
                try await eventually("time passes") { service.clock.now > first ?? service.clock.now }
                let second = try await service.attached(to: session, .wait) { try await lastAttachedAt() }
                return [first, second].compactMap { $0 }
            }
            #expect(times.count == 2 && times[0] < times[1], "\(times)")
        }
    }

    @Test
    func `Sessions without clients are removed, sessions with clients are not`() {
        let time = ManualClock()
        let attendance = Attendance(clock: time.clock)
        let start = time.clock.now
        attendance.attach(session, .wait)
        attendance.attach(SessionID(2), .wait)
        time.advance(by: 1000)
        _ = attendance.detach(session, .wait)
        time.advance(by: 10_000)
        attendance.prune(olderThan: .seconds(5))
        #expect(attendance.presence(of: session).lastDetachedAt == start)
        #expect(attendance.presence(of: SessionID(2)).isAttached)
    }

    private func event(_ task: Int64) -> LiveEvent {
        LiveEvent(.isWaitingForConnectivity, of: TaskID(task), task, TaskSpecification(), at: Timestamp())
    }

    @Test
    func `Live events reach open streams, and end with their task`() {
        let hub = EventHub(clock: .system)
        hub.publish(event(1), to: session)
        #expect(!hub.hasStreams(session))
        let one = hub.open(session)
        let other = hub.open(session)
        hub.publish(event(1), to: session)
        hub.publish(event(2), to: session)
        hub.publish(event(3), to: SessionID(9))
        hub.silence(TaskID(1), in: session)
        for feed in [one, other] { #expect(feed.buffer.withLock { $0.map(\.taskIdentifier) } == [2]) }
        hub.close(one.number, of: session)
        #expect(hub.hasStreams(session))
        hub.close(other.number, of: session)
        #expect(!hub.hasStreams(session))
    }

    @Test
    func `A stream that reads slowly keeps the newest messages`() {
        let hub = EventHub(clock: .system)
        let feed = hub.open(session)
        for number in 0..<1000 { hub.publish(event(Int64(number)), to: session) }
        let kept = feed.buffer.withLock { $0.map(\.taskIdentifier) }
        #expect(kept == Array(744..<1000))
    }

    @Test
    func `Long events are dropped sooner`() {
        let hub = EventHub(clock: .system)
        let feed = hub.open(session)
        let url = String(repeating: "u", count: 8000)
        for number in 1...100 {
            let created = LiveEvent.Payload.didCreate(kind: .download, url: url)
            hub.publish(
                LiveEvent(created, of: TaskID(Int64(number)), Int64(number), TaskSpecification(), at: Timestamp()),
                to: session)
        }
        let kept = feed.buffer.withLock { $0 }
        #expect(kept.last?.taskIdentifier == 100 && kept.reduce(0) { $0 + $1.size } <= EventHub.bufferedBytes)
        hub.publish(
            LiveEvent(
                .didCreate(kind: .download, url: String(repeating: "u", count: 100_000)), of: TaskID(101), 101,
                TaskSpecification(), at: Timestamp()), to: session)
        #expect(feed.buffer.withLock { $0.map(\.taskIdentifier) } == [101])
    }

    @Test
    func `A held read ends with the first event, a wait on a task with its end`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve("/a", .text("x"), always: [.hold(gate)])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let deadline = stage.service.clock.monotonic() + 60_000
            async let page = stage.service.waitForEvents(
                of: session.id, after: nil, limit: 10, until: deadline, isGone: { false })
            async let end = stage.service.waitForTask(
                1, in: session.id, newerThan: nil, until: deadline, isGone: { false })
            try await eventually { stage.service.attendance.presence(of: session.id).isAttached }
            gate.open()
            #expect(try await page.events.count == 3)
            #expect(try await end.state == .completed)
            #expect(!stage.service.attendance.presence(of: session.id).isAttached)
            #expect(try await stage.service.task(1, in: task.session).state == .completed)
        }
    }

    @Test
    func `A wait on a task ends with the deletion of its session`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            try await stage.create(stage.order("/a", suspended: true), in: session)
            let deadline = stage.service.clock.monotonic() + 60_000
            let hub = stage.service.hub
            async let end = stage.service.waitForTask(
                1, in: session.id, newerThan: nil, until: deadline, isGone: { false })
            try await eventually("it waits") { !hub.tasks.keys.isEmpty }
            _ = try await stage.service.deleteSession(session.id)
            do {
                _ = try await end
                Issue.record("the task is still there")
            } catch DomainError.notFound {}
            #expect(stage.service.clock.monotonic() < deadline - 20_000)
        }
    }

    @Test
    func `A feed reports progress, and nothing after the end`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20),
                turns: [[.cut(after: 0)], [.holdBody(after: 300_000, gate)]])
            let feed = stage.service.openFeed(of: session.id)
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            var seen: [LiveEvent] = []
            try await eventually { () -> Bool in
                seen += await feed.live()
                return seen.contains { if case .didWriteData = $0.payload { true } else { false } }
            }
            #expect(seen.contains { if case .didCreate = $0.payload { true } else { false } })
            #expect(seen.contains { if case .willRetry = $0.payload { true } else { false } })
            gate.open()
            _ = try await stage.completed(task)
            #expect(await feed.live().isEmpty)
            #expect(try await feed.kept(after: 0, limit: 10, maximumBytes: 1 << 20).events.last?.kind == .didComplete)
        }
    }
}
