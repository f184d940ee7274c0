import TestSupport
import Testing

@testable import Core

@Suite struct BackgroundRefreshTests {
    static let app = "com.example.app"

    /// A refresh whose interval was set at `now`.
    static func refresh(_ interval: BackgroundRefresh.Interval = .minimum) throws -> BackgroundRefresh {
        var refresh = BackgroundRefresh()
        try refresh.handle(.setInterval(interval), identifier: app, at: now)
        return refresh
    }

    /// Runs one fetch with a duration in seconds; `nil` misses the deadline.
    static func fetch(
        _ refresh: inout BackgroundRefresh, _ result: BackgroundRefresh.Result?, from time: Timestamp,
        taking seconds: Int = 1
    ) throws {
        try refresh.handle(.begin(launchId: "l"), identifier: app, at: time)
        try refresh.handle(.sent(launchId: "l"), identifier: app, at: time)
        let end = time + .seconds(seconds)
        guard let result else {
            try refresh.handle(.expired(launchId: "l"), identifier: app, at: end)
            return
        }
        try refresh.handle(.finished(launchId: "l", result), identifier: app, at: end)
    }

    @Test func `The interval is never by default`() throws {
        #expect(BackgroundRefresh().nextFetchAt(identifier: Self.app) == nil)
        var refresh = try Self.refresh()
        #expect(refresh.nextFetchAt(identifier: Self.app) != nil)
        try refresh.handle(.setInterval(.never), identifier: Self.app, at: now)
        #expect(refresh.nextFetchAt(identifier: Self.app) == nil)
    }

    @Test(
        arguments: [(.minimum, 900), (.seconds(10), 900), (.seconds(3600), 3600), (.seconds(1e300), 315_360_000)]
            as [(BackgroundRefresh.Interval, Double)])
    func `The first fetch follows the interval, spread by at most a tenth and a tick`(
        _ interval: BackgroundRefresh.Interval, _ seconds: Double
    ) throws {
        let refresh = try Self.refresh(interval)
        for name in ["a", "b", "com.example.app"] {
            let wait = (try #require(refresh.nextFetchAt(identifier: name)) - now).seconds
            #expect(wait >= seconds && wait <= seconds * 1.1 + 60)
        }
    }

    @Test func `An attach and a fetch postpone the next fetch`() throws {
        var refresh = try Self.refresh()
        try refresh.handle(.attached, identifier: Self.app, at: .after(5000))
        #expect(try #require(refresh.nextFetchAt(identifier: Self.app)) >= .after(5900))
        try Self.fetch(&refresh, .newData, from: .after(7000))
        #expect(refresh.previousResult == .newData)
        #expect(try #require(refresh.nextFetchAt(identifier: Self.app)) >= .after(7901))
    }

    @Test func `Results lengthen the interval up to a day, and new data resets it`() throws {
        var refresh = try Self.refresh()
        var intervals: [Double] = []
        let results: [BackgroundRefresh.Result?] = [.noData, .noData, .failed, nil, .newData, .failed]
        for (index, result) in results.enumerated() {
            try Self.fetch(&refresh, result, from: .after(Double(index) * 1e5))
            intervals.append(refresh.effectiveInterval ?? 0)
        }
        #expect(intervals == [1350, 2025, 4050, 8100, 900, 1800])
        for index in 0..<50 { try Self.fetch(&refresh, .failed, from: .after(1e6 + Double(index) * 1e5)) }
        #expect(refresh.effectiveInterval == 86_400)
        var rare = try Self.refresh(.seconds(200_000))
        try Self.fetch(&rare, .failed, from: now)
        #expect(rare.effectiveInterval == 200_000)
    }

    @Test func `An app with slow responses is fetched less often`() throws {
        var refresh = try Self.refresh()
        try Self.fetch(&refresh, .newData, from: now, taking: 20)
        #expect(refresh.effectiveInterval == 1125)
        try Self.fetch(&refresh, .newData, from: .after(1e4), taking: 2)
        #expect(refresh.effectiveInterval == 900)
    }

    @Test func `One fetch is open at a time, for thirty seconds`() throws {
        var refresh = try Self.refresh()
        try refresh.handle(.begin(launchId: "l"), identifier: Self.app, at: now)
        #expect(refresh.nextFetchAt(identifier: Self.app) == nil)
        #expect(refresh.open?.deadline == nil)
        #expect(throws: Refused(state: "open", event: "begin")) {
            try refresh.handle(.begin(launchId: "m"), identifier: Self.app, at: now)
        }
        try refresh.handle(.sent(launchId: "l"), identifier: Self.app, at: .after(1))
        try refresh.handle(.sent(launchId: "l"), identifier: Self.app, at: .after(6))
        #expect(refresh.open?.deadline == .after(31))
        for event in [
            BackgroundRefresh.Event.sent(launchId: "m"), .expired(launchId: "m"), .abandoned(launchId: "m"),
            .finished(launchId: "m", .newData),
        ] {
            #expect(throws: Refused("open", event)) {
                try refresh.handle(event, identifier: Self.app, at: .after(7))
            }
        }
        #expect(throws: Refused(state: "open", event: "finished")) {
            try refresh.handle(.finished(launchId: "l", .newData), identifier: Self.app, at: .after(31.001))
        }
        #expect(try refresh.handle(.finished(launchId: "l", .newData), identifier: Self.app, at: .after(31)))
        #expect(try refresh.handle(.finished(launchId: "l", .failed), identifier: Self.app, at: .after(40)) == false)
        #expect(refresh.previousResult == .newData)
    }

    @Test func `A late completion is refused and delays the next fetch`() throws {
        var refresh = try Self.refresh()
        try Self.fetch(&refresh, nil, from: now, taking: 30)
        #expect(throws: Refused(state: "idle", event: "finished")) {
            try refresh.handle(.finished(launchId: "l", .newData), identifier: Self.app, at: .after(31))
        }
        #expect(refresh.previousResult == .failed)
        #expect(refresh.effectiveInterval == 2250)
    }

    @Test func `A fetch that was not sent does not count`() throws {
        var refresh = try Self.refresh()
        let before = refresh.nextFetchAt(identifier: Self.app)
        try refresh.handle(.begin(launchId: "l"), identifier: Self.app, at: .after(2000))
        try refresh.handle(.abandoned(launchId: "l"), identifier: Self.app, at: .after(2001))
        #expect(refresh.nextFetchAt(identifier: Self.app) == before)
        #expect(refresh.previousResult == nil)
        #expect(throws: Refused(state: "idle", event: "sent")) {
            try refresh.handle(.sent(launchId: "l"), identifier: Self.app, at: now)
        }
    }

    @Test func `Missed fetches are not repeated after downtime`() throws {
        var refresh = try Self.refresh()
        let due = try #require(refresh.nextFetchAt(identifier: Self.app))
        #expect(try refresh.handle(.becameAvailable, identifier: Self.app, at: due) == false)
        #expect(try refresh.handle(.becameAvailable, identifier: Self.app, at: due + .seconds(5000)))
        let next = try #require(refresh.nextFetchAt(identifier: Self.app))
        #expect(next == (due + .seconds(5400)))
        try Self.fetch(&refresh, .newData, from: next)
        #expect(try #require(refresh.nextFetchAt(identifier: Self.app)) < next + .seconds(1100))
        var never = try Self.refresh(.never)
        #expect(try never.handle(.becameAvailable, identifier: Self.app, at: .after(1e6)) == false)
    }

    @Test func `The same interval changes nothing, another interval resets the results`() throws {
        var refresh = try Self.refresh()
        try Self.fetch(&refresh, .failed, from: now)
        #expect(try refresh.handle(.setInterval(.minimum), identifier: Self.app, at: .after(9)) == false)
        #expect(refresh.effectiveInterval == 1800)
        try refresh.handle(.setInterval(.seconds(1000)), identifier: Self.app, at: .after(9))
        #expect(refresh.effectiveInterval == 1000)
    }

    @Test func `The fetches of many apps are spread evenly, equally on each start`() {
        var buckets = Array(repeating: 0, count: 10)
        for index in 0..<10_000 { buckets[Int(Spreading.fraction("com.example.app\(index)") * 10)] += 1 }
        #expect(buckets.allSatisfy { (800...1200).contains($0) })
    }

    @Test(arguments: 0..<10)
    func `A random walk keeps one open fetch and a valid interval`(_ seed: Int) {
        var generator = SeededGenerator(state: UInt64(seed))
        var refresh = BackgroundRefresh()
        var time = now
        for _ in 0..<500 {
            time = time + .seconds(Int.random(in: 0...40, using: &generator))
            let id = Bool.random(using: &generator) ? "l" : "m"
            let result = BackgroundRefresh.Result.allCases.randomElement(using: &generator) ?? .failed
            let events: [BackgroundRefresh.Event] = [
                .setInterval(.minimum), .setInterval(.never), .attached, .begin(launchId: id), .sent(launchId: id),
                .finished(launchId: id, result), .expired(launchId: id), .abandoned(launchId: id), .becameAvailable,
            ]
            let before = refresh
            let event = events.randomElement(using: &generator) ?? .attached
            do { _ = try refresh.handle(event, identifier: Self.app, at: time) } catch { #expect(refresh == before) }
            if let interval = refresh.effectiveInterval { #expect(interval >= 900 && interval <= 86_400) }
            if refresh.open != nil { #expect(refresh.nextFetchAt(identifier: Self.app) == nil) }
        }
    }
}
