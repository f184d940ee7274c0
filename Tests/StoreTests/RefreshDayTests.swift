import Base
import Core
import TestSupport
import Testing

@testable import Store

/// Background refresh over days that take a moment: the test advances the clock from one due time to the next.
@Suite struct RefreshDayTests {
    private struct Fetch {
        var app: AppID
        var at: Timestamp
    }

    /// Runs a store until a time. Due fetches are sent at once and completed after some seconds; `answer` returns the
    /// result, `nil` for no completion.
    private static func run(
        _ stage: LaunchStage, until end: Timestamp, taking seconds: Int = 2,
        answer: (AppID, Int) -> BackgroundRefresh.Result?
    ) async throws -> [Fetch] {
        var fetches: [Fetch] = []
        while let next = try await stage.store.apps.nextFetchTime(), next <= end {
            stage.advance(to: next)
            _ = try await stage.store.apps.beginDueFetches(at: stage.now, limit: 1000)
            let sent = try await stage.claim(limit: 1000)
            #expect(!sent.isEmpty, "due at \(next.rfc3339), and nothing was sent")
            guard !sent.isEmpty else { break }
            for launch in sent {
                #expect(launch.kind == .performFetch && launch.expiresAt == stage.now + .seconds(30))
                fetches.append(Fetch(app: launch.app, at: stage.now))
            }
            let results = sent.map { launch in
                (launch, answer(launch.app, fetches.filter { $0.app == launch.app }.count))
            }
            let begun = stage.now
            for (launch, result) in results where result == nil { try await stage.report(launch, .succeeded(nil)) }
            stage.advance(to: begun + .seconds(seconds))
            for (launch, result) in results {
                if let result { try await stage.report(launch, .succeeded(.fetched(result))) }
            }
            if results.contains(where: { $0.1 == nil }) {
                stage.advance(to: begun + .seconds(30))
                _ = try await stage.store.launches.expire(at: stage.now, limit: 1000) { 0 }
            }
        }
        return fetches
    }

    private static func gaps(_ fetches: [Fetch], of app: AppID, from start: Timestamp) -> [Double] {
        let times = [start] + fetches.filter { $0.app == app }.map(\.at)
        return zip(times, times.dropFirst()).map { ($1 - $0).seconds }
    }

    @Test func `A day of many apps keeps every interval, spreads the fetches, and wakes on common ticks`() async throws
    {
        let stage = try await LaunchStage()
        var apps = [stage.app]
        for number in 1..<60 { apps.append(try await LaunchStage.addApp("com.example.app\(number)", to: stage.store)) }
        for app in apps { _ = try await stage.store.apps.setRefreshInterval(.seconds(3600), of: app, at: stage.now) }
        let start = stage.now
        let fetches = try await Self.run(stage, until: start + .seconds(86_400)) { _, _ in .newData }
        for app in apps {
            let gaps = Self.gaps(fetches, of: app, from: start)
            // An hour, up to a tenth more, and up to a tick.
            #expect(gaps.allSatisfy { (3600...4020).contains($0) }, "\(gaps)")
            #expect((21...23).contains(gaps.count))
        }
        #expect(fetches.allSatisfy { $0.at.milliseconds % 60_000 == 0 })
        let first = Set(fetches.prefix(60).map(\.at))
        #expect((4...8).contains(first.count), "sixty apps of one interval fell on \(first.count) moments")
    }

    @Test func `Failures, slow responses and silence lengthen the interval, and new data shortens it again`()
        async throws
    {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        let start = stage.now
        let answers: [BackgroundRefresh.Result?] = [.newData, .noData, .noData, .failed, nil, .newData, .newData]
        let fetches = try await Self.run(stage, until: start + .seconds(40_000)) { _, number in
            number <= answers.count ? answers[number - 1] : .noData
        }
        let gaps = Self.gaps(fetches, of: stage.app, from: start)
        // Each gap follows from the previous result: new data 900, no data × 1.5, failed or silent × 2.
        for (gap, interval) in zip(gaps, [900.0, 900, 1350, 2025, 4050]) {
            #expect(gap >= interval && gap <= interval * 1.1 + 90, "\(gap) for \(interval)")
        }
        #expect(gaps[5] >= 8100, "silence counts as failed")
        #expect(gaps[6] >= 900 && gaps[6] <= 900 * 1.25 * 1.1 + 90, "new data brings it back at once")
        let history = try await stage.store.apps.refresh(of: stage.app).history
        #expect(
            history.map(\.result).reversed().prefix(7) == [
                .newData, .noData, .noData, .failed, .failed, .newData, .newData,
            ])
        #expect(history.reversed()[4].duration == .seconds(30))
        #expect(zip(history.reversed(), fetches).allSatisfy { (0...2).contains(($0.at - $1.at).seconds) })
        #expect(history.count == fetches.count)
    }

    @Test func `Every app is fetched at least daily, and no more often than its interval`() async throws {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        let start = stage.now
        let fetches = try await Self.run(stage, until: start + .seconds(20 * 86_400)) { _, _ in nil }
        let gaps = Self.gaps(fetches, of: stage.app, from: start)
        // A day, its tenth, a tick, and the half minute of silence.
        #expect(gaps.suffix(5).allSatisfy { (86_400...95_200).contains($0) }, "\(gaps)")
        let history = try await stage.store.apps.refresh(of: stage.app).history
        #expect(history.count == min(50, fetches.count) && history.allSatisfy { $0.result == .failed })
    }

    @Test func `An attached app is not fetched within an interval, and fetches missed in an outage are not repeated`()
        async throws
    {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.seconds(3600), of: stage.app, at: stage.now)
        let session = try await stage.startTask(in: "a").0
        // The app attaches every half hour for half a day: no fetch.
        for _ in 0..<24 {
            stage.advance(by: .seconds(1800))
            _ = try await stage.store.sessions.clientAttached(to: session, .wait, at: stage.now)
            #expect(try #require(try await stage.store.apps.nextFetchTime()) > stage.now + .seconds(3599))
        }
        // After a week of downtime one fetch follows, at its time.
        let before = stage.now
        stage.advance(by: .seconds(7 * 86_400))
        _ = try await stage.store.apps.recoverRefresh(startedAt: stage.now, at: stage.now)
        let up = stage.now
        let fetches = try await Self.run(stage, until: up + .seconds(4 * 3600)) { _, _ in .newData }
        #expect((2...4).contains(fetches.count), "\(fetches.map { ($0.at - before).seconds })")
        #expect(fetches.allSatisfy { $0.at > up })
    }

    @Test func `A fetch that falls due after the start of a node is not skipped by the start of another one`()
        async throws
    {
        let stage = try await LaunchStage()
        _ = try await stage.store.apps.setRefreshInterval(.seconds(3600), of: stage.app, at: stage.now)
        let (start, due) = (stage.now, try #require(try await stage.store.apps.nextFetchTime()))
        stage.advance(by: due - start + .seconds(1))
        _ = try await stage.store.apps.recoverRefresh(startedAt: start, at: stage.now)
        #expect(try await stage.store.apps.nextFetchTime() == due)
        _ = try await stage.store.apps.recoverRefresh(startedAt: stage.now, at: stage.now)
        #expect(try #require(try await stage.store.apps.nextFetchTime()) > stage.now)
    }

    enum Obstacle: String, CaseIterable {
        case never = "The interval is never."
        case denied = "Background refresh is denied."
        case restricted = "Background refresh is restricted."
        case forceQuit = "The app was force-quit and has not been activated."
        case noWebhook = "The app has no webhook."
        case paused = "The webhook is paused."
        case disabled = "The webhook is disabled."

        func arise(on stage: LaunchStage) async throws {
            switch self {
            case .never: break
            case .denied: try await stage.change { $0.backgroundRefreshStatus = .denied }
            case .restricted:
                // The stricter of the two applies.
                try await stage.change { $0.backgroundRefreshStatus = .denied }
                _ = try await stage.store.apps.setConditions(Conditions(), .restricted, at: stage.now)
            case .forceQuit: try await stage.change { $0.isForceQuit = true }
            case .noWebhook: try await stage.webhook { $0.url = nil }
            case .paused: try await stage.webhook { $0.state = .paused }
            case .disabled: try await stage.webhook { $0.state = .disabled }
            }
        }
    }

    @Test(arguments: Obstacle.allCases)
    func `The reason for no fetch is reported, and a simulated fetch works under never alone`(
        _ obstacle: Obstacle
    ) async throws {
        let stage = try await LaunchStage()
        if obstacle != .never {
            _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        }
        try await obstacle.arise(on: stage)
        let overview = try await stage.store.apps.refresh(of: stage.app)
        #expect(overview.why == obstacle.rawValue && overview.nextFetchAt == nil)
        #expect(try await stage.store.apps.nextFetchTime() == nil)
        if obstacle == .never {
            _ = try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
            #expect(try await stage.claim().map(\.kind) == [.performFetch])
        } else {
            await #expect(throws: DomainError.refreshUnavailable(why: obstacle.rawValue)) {
                try await stage.store.apps.simulateFetch(of: stage.app, at: stage.now)
            }
        }
    }
}
