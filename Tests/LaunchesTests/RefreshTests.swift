import Base
import Core
import Launches
import Store
import TestSupport
import Testing

@Suite struct RefreshTests {
    @Test func `The response completes a simulated fetch`() async throws {
        let stage = try await Stage(answers: [.json(["result": "newData"])])
        try await stage.running { launches in
            let launch = try await launches.simulateFetch(of: stage.app)
            let delivery = try await stage.receiver.waitForDelivery(type: "app.performFetch")[0]
            #expect(delivery.json["data"]["launchId"].string == launch.launchId)
            #expect(delivery.json["data"]["deadline"].string == (stage.now + .seconds(30)).rfc3339)
            #expect(delivery.json["data"]["previousResult"].isNull)
            let record = try await stage.waitForLaunch("completed")
            #expect(record.result == .newData)
            let overview = try await launches.refresh(of: stage.app)
            #expect(overview.history.map(\.result) == [.newData])
            #expect(overview.history.map(\.launchId) == [launch.launchId])
            #expect(overview.nextFetchAt == nil)
        }
    }

    @Test func `A fetch is completed by a request, and a repetition gets the same response`() async throws {
        let stage = try await Stage()
        try await stage.running { launches in
            let id = try await launches.simulateFetch(of: stage.app).launchId
            await #expect(throws: DomainError.refreshUnavailable(why: "A fetch is open already.")) {
                try await launches.simulateFetch(of: stage.app)
            }
            try await stage.waitForLaunch("launched")
            _ = try await launches.answer(id, app: stage.app, with: .fetched(.noData), epoch: nil)
            _ = try await launches.answer(id, app: stage.app, with: .fetched(.noData), epoch: nil)
            #expect(try await stage.onlyLaunch().result == .noData)
        }
    }

    @Test func `A late completion is refused, and the fetch counts as failed`() async throws {
        let stage = try await Stage()
        try await stage.running { launches in
            _ = try await launches.setRefreshInterval(.minimum, of: stage.app)
            let id = try await launches.simulateFetch(of: stage.app).launchId
            try await stage.waitForLaunch("launched")
            stage.clock.advance(by: 30_001)
            await #expect(throws: DomainError.fetchLate) {
                _ = try await launches.answer(id, app: stage.app, with: .fetched(.newData), epoch: nil)
            }
            stage.bell.ring()
            let launch = try await stage.waitForLaunch("exhausted")
            #expect(launch.result == .failed)
            let next = try await launches.refresh(of: stage.app).nextFetchAt
            // Twice the interval from now on, plus the phase.
            #expect(next.map { $0 >= stage.now + .seconds(1800) } == true)
        }
    }

    @Test func `A fetch is not retried after a status, and once after a failed connection`() async throws {
        // The first connection is new, so that libcurl itself repeats no request.
        let stage = try await Stage(answers: [.close, .json(["result": "noData"]), .status(500)])
        try await stage.running { launches in
            _ = try await launches.simulateFetch(of: stage.app)
            try await eventually("a retry") { try await stage.onlyLaunch().attempts.count == 1 }
            stage.advance(by: 6)
            #expect(try await stage.waitForLaunch("completed").result == .noData)
            _ = try await launches.simulateFetch(of: stage.app)
            #expect(try await stage.waitForLaunch("exhausted").result == .failed)
            let all = stage.receiver.deliveries
            #expect(all.count == 3)
            #expect(all[0].body == all[1].body)
            #expect(all[2].json["data"]["previousResult"].string == "noData")
        }
    }

    @Test func `A fetch fails after two failed connections, within one deadline`() async throws {
        let stage = try await Stage(answers: [.close])
        try await stage.running { launches in
            _ = try await launches.simulateFetch(of: stage.app)
            try await eventually("a retry") { try await stage.onlyLaunch().attempts.count == 1 }
            let deadline = try await stage.onlyLaunch().expiresAt
            stage.advance(by: 6)
            #expect(try await stage.waitForLaunch("exhausted").result == .failed)
            #expect(stage.receiver.deliveries.count == 2)
            #expect(try await stage.onlyLaunch().expiresAt == deadline)
            let data = stage.receiver.deliveries[1].json["data"]
            #expect(data["completionURL"].string?.hasPrefix("https://public.example/v1/launches/lnch_") == true)
            stage.advance(by: 3600)
            try await stays("no third", for: .milliseconds(200)) { stage.receiver.deliveries.count == 2 }
        }
    }

    @Test func `A fetch is sent after its interval, and waits for good conditions`() async throws {
        let stage = try await Stage(answers: [.json(["result": "newData"])])
        var conditions = Conditions()
        conditions.network.expensive = true
        _ = try await stage.store.apps.setConditions(conditions, .available, at: stage.now)
        try await stage.running { launches in
            let overview = try await launches.setRefreshInterval(.seconds(1000), of: stage.app)
            let next = try #require(overview.nextFetchAt)
            #expect(next >= stage.now + .seconds(1000))
            stage.clock.advance(by: (next - stage.now).milliseconds)
            launches.refreshChanged()
            try await stays("no fetch", for: .milliseconds(200)) { stage.receiver.deliveries.isEmpty }
            let why = try await launches.refresh(of: stage.app).why
            #expect(why == "It is due. Discretionary work waits for an inexpensive network.")
            // A loaded machine has the same effect.
            var limited = Conditions()
            limited.maximumLoad = 0.5
            stage.load.withLock { $0 = 0.6 }
            _ = try await stage.store.apps.setConditions(limited, .available, at: stage.now)
            launches.refreshChanged()
            try await stays("no fetch", for: .milliseconds(200)) { stage.receiver.deliveries.isEmpty }
            #expect(
                try await launches.refresh(of: stage.app).why
                    == "It is due. Discretionary work waits for the load to fall.")
            stage.load.withLock { $0 = 0.5 }
            launches.refreshChanged()
            try await stage.waitForLaunch("completed")
            let after = try await launches.refresh(of: stage.app)
            #expect(after.nextFetchAt.map { $0 >= stage.now + .seconds(1000) } == true)
        }
    }

    @Test func `Fetches that were due during downtime are not repeated`() async throws {
        let stage = try await Stage(answers: [.json(["result": "newData"])])
        _ = try await stage.store.apps.setRefreshInterval(.minimum, of: stage.app, at: stage.now)
        stage.clock.advance(by: 10_000_000)
        try await stage.running { launches in
            try await eventually("a new time") {
                try await launches.refresh(of: stage.app).nextFetchAt.map { $0 >= stage.now } ?? false
            }
            try await stays("no fetch", for: .milliseconds(200)) { stage.receiver.deliveries.isEmpty }
        }
    }

    @Test func `A denied app is notified and fetches no more`() async throws {
        let stage = try await Stage()
        try await stage.running { launches in
            _ = try await launches.setRefreshInterval(.minimum, of: stage.app)
            try await stage.change { $0.backgroundRefreshStatus = .denied }
            let delivery = try await stage.receiver.waitForDelivery()[0]
            #expect(delivery.type == "app.backgroundRefreshStatusDidChange")
            #expect(delivery.json["data"]["backgroundRefreshStatus"].string == "denied")
            try await stage.waitForLaunch("completed")
            let overview = try await launches.refresh(of: stage.app)
            #expect(overview.status == .denied)
            #expect(overview.nextFetchAt == nil)
            #expect(overview.why == "Background refresh is denied.")
            await #expect(throws: DomainError.refreshUnavailable(why: "Background refresh is denied.")) {
                try await launches.simulateFetch(of: stage.app)
            }
        }
    }

    @Test func `Force quit stops all webhooks until the app is activated`() async throws {
        let stage = try await Stage(answers: [.status(500), .launched])
        try await stage.finishTask()
        try await stage.running { launches in
            try await eventually("an attempt") { try await stage.onlyLaunch().attempts.count == 1 }
            try await stage.change { $0.isForceQuit = true }
            #expect(try await stage.onlyLaunch().state == .parked(attempts: 1, reason: .forceQuit))
            await #expect(
                throws: DomainError.refreshUnavailable(why: "The app was force-quit and has not been activated.")
            ) { try await launches.simulateFetch(of: stage.app) }
            stage.advance(by: 3600)
            try await stays("silence", for: .milliseconds(200)) { stage.receiver.deliveries.count == 1 }
            try await stage.change { $0.isForceQuit = false }
            try await stage.waitForLaunch("launched")
        }
    }
}
