import Core
import TestSupport
import Testing

@testable import Store

/// The store's handling of a session without progress.
struct StallTests {
    private let fixture: StoreFixture
    private let session: SessionRecord
    private let start: Timestamp

    init() async throws {
        fixture = try await StoreFixture()
        session = try await fixture.makeSession { $0.stallInterval = 10 }
        start = fixture.now
    }

    /// Lets the session's interval end, and evaluates the stall.
    @discardableResult
    private func judge() async throws -> Aftermath {
        fixture.advance(.seconds(10))
        return try await fixture.store.sessions.judgeStalls(moving: [], watchedSince: start, at: fixture.now, limit: 10)
    }

    private func run() async throws -> TaskID {
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        return task.id
    }

    private func askRule() async throws {
        _ = try await fixture.store.launches.askRules(of: [session.id], at: fixture.now)
    }

    private func acknowledge(_ seq: Int64) async throws {
        _ = try await fixture.store.sessions.acknowledge(through: seq, epoch: nil, in: session.id, at: fixture.now)
    }

    @Test func `A stall has an event, and launches with its reason`() async throws {
        _ = try await run()
        let early = try await fixture.store.sessions.judgeStalls(
            moving: [], watchedSince: start, at: fixture.now, limit: 10)
        #expect(!early.hasDueLaunches)
        #expect(try await fixture.kinds(session) == [])
        let aftermath = try await judge()
        #expect(aftermath.hasDueLaunches)
        #expect(try await fixture.kinds(session) == [.didStall])
        let launch = try #require(try await fixture.openLaunch(session))
        #expect(try await Launches.reasons(of: launch, fixture.store) == .tasksStalled)
        // Only once: without progress no further interval ends.
        try await judge()
        #expect(try await fixture.kinds(session) == [.didStall])
        #expect(try await Launches.count(of: fixture.store) == 1)
        try await expectSoundLedger(fixture)
    }

    @Test func `An acknowledged stall causes no launch`() async throws {
        _ = try await run()
        fixture.setAttached(true, session.id)
        try await judge()
        #expect(try await fixture.openLaunch(session) == nil)
        try await acknowledge(1)
        fixture.setAttached(false, session.id)
        fixture.advance(LaunchRule.grace)
        try await askRule()
        #expect(try await fixture.openLaunch(session) == nil)
        #expect(try await Launches.count(of: fixture.store) == 0)
    }

    @Test func `The completion of a stall's launch settles the stall`() async throws {
        _ = try await run()
        try await judge()
        let launch = try #require(try await fixture.openLaunch(session))
        _ = try await fixture.store.launches.answer(
            launch, app: session.app, with: .completed(through: nil), epoch: nil, at: fixture.now)
        #expect(try await fixture.refresh(session).acknowledgedSeq >= 1)
        fixture.advance(.seconds(3600))
        try await askRule()
        try await judge()
        #expect(try await fixture.openLaunch(session) == nil)
        #expect(try await Launches.count(of: fixture.store) == 1)
    }

    @Test func `An attaching client supersedes a stall's launch, which is repeated if the client acknowledges nothing`()
        async throws
    {
        _ = try await run()
        try await judge()
        let first = try #require(try await fixture.openLaunch(session))
        fixture.setAttached(true, session.id)
        _ = try await fixture.store.sessions.clientAttached(to: session.id, .wait, at: fixture.now)
        #expect(try await fixture.openLaunch(session) == nil)
        fixture.setAttached(false, session.id)
        fixture.advance(LaunchRule.grace)
        try await askRule()
        let second = try #require(try await fixture.openLaunch(session))
        #expect(second != first)
        #expect(try await Launches.reasons(of: second, fixture.store) == .tasksStalled)
    }

    @Test func `A stall joins the open launch`() async throws {
        let asking = try await run()
        _ = try await run()
        try await fixture.settle(fixture.ask(asking, "q"))
        let launch = try #require(try await fixture.openLaunch(session))
        #expect(try await Launches.reasons(of: launch, fixture.store) == .authenticationRequired)
        let aftermath = try await judge()
        #expect(try await fixture.kinds(session) == [.didReceiveChallenge, .didStall])
        #expect(try await fixture.openLaunch(session) == launch)
        #expect(try await Launches.reasons(of: launch, fixture.store) == [.authenticationRequired, .tasksStalled])
        #expect(try await Launches.count(of: fixture.store) == 1)
        #expect(aftermath.sessions[session.id] == 2)
        try await expectSoundLedger(fixture)
    }
}
