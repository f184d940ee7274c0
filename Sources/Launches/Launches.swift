package import Base
package import Core
package import Store
import TransferEngine
package import WireMapping

/// Launches apps with signed webhooks, and runs background refresh.
///
/// It has a transfer engine of its own, so that webhooks never wait for transfers.
package final class Launches: Sendable {
    package let urls: PublicURLs
    private let store: Store
    private let exchanges: Exchanges
    private let client: WebhookClient
    private let payload: Payload
    private let meters: LaunchMeters
    private let sender: LaunchSender
    private let refresh: RefreshLoop
    private let clock: Clock
    private let startedAt: Timestamp
    private let log: Log
    private let carryOut: @Sendable (Aftermath) -> Void
    private let pings = Locked<[AppID: Int]>([:])
    /// Rung when intervals, webhooks or conditions may have changed.
    private let refreshBell: Doorbell

    /// - Parameters:
    ///   - bell: Rung after a commit that stored a due launch.
    ///   - carryOut: Performs the aftermath of commits, such as waking readers of events.
    package init(
        store: Store, settings: LaunchSettings, bell: Doorbell, clock: Clock, log: Log, metrics: Metrics,
        carryOut: @escaping @Sendable (Aftermath) -> Void
    ) throws {
        self.store = store
        self.clock = clock
        startedAt = clock.time
        self.log = log
        urls = PublicURLs(base: settings.publicURL)
        payload = Payload(urls: urls)
        exchanges = try Exchanges(log: log)
        meters = LaunchMeters(metrics)
        client = WebhookClient(store: store, settings: settings, exchanges: exchanges, clock: clock, log: log)
        let refreshBell = Doorbell(clock: clock)
        self.refreshBell = refreshBell
        let carryOutAndRing: @Sendable (Aftermath) -> Void = { aftermath in
            carryOut(aftermath)
            if aftermath.hasDueLaunches {
                bell.ring()
                refreshBell.ring()
            }
        }
        self.carryOut = carryOutAndRing
        sender = LaunchSender(
            store: store, settings: settings, client: client, payload: payload, meters: meters, bell: bell,
            clock: clock, log: log, carryOut: carryOutAndRing)
        refresh = RefreshLoop(
            store: store, settings: settings, bell: refreshBell, clock: clock, log: log, carryOut: carryOutAndRing)
    }

    /// Runs until it is cancelled: recovers the state of the last run, then sends launches and starts fetches.
    package func run() async throws {
        try await Store.loop {
            try await Store.insist { carryOut(try await store.launches.recover(at: clock.time)) }
            try await Store.insist {
                // Other nodes have missed no fetch since their start.
                let start = try await store.nodes.firstStart() ?? startedAt
                carryOut(try await store.apps.recoverRefresh(startedAt: start, at: clock.time))
            }
            try await withThrowingDiscardingTaskGroup { group in
                group.addTask { try await self.sender.run() }
                group.addTask { try await self.refresh.run() }
            }
        }
        await exchanges.shutdown()
    }

    /// Makes the refresh loop check changed intervals and conditions.
    package func refreshChanged() { refreshBell.ring() }

    // MARK: Webhooks

    /// The reason for which no launch could ever be sent to a URL, and its remedy; `nil` if sending may be possible.
    package func fault(ofWebhook url: ParsedURL) -> String? { client.settings.fault(of: url) }

    /// The maximum number of pings of one app in flight.
    private static let pingsAtOnce = 4

    /// Sends a `webhook.ping` now and returns the attempt. A ping is no launch: it is neither stored nor repeated.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func ping(_ app: AppID) async throws -> LaunchAttempt {
        let record = try await store.apps.read(app)
        let now = clock.time
        func refused(_ reason: String) -> LaunchAttempt {
            LaunchAttempt(number: 1, startedAt: now, duration: .zero, statusCode: nil, error: reason, excerpt: nil)
        }
        guard let url = record.webhook.url else { return refused("The app has no webhook.") }
        if record.isForceQuit { return refused("The app was force-quit and has not been activated.") }
        let mayGo = pings.withLock { pings in
            guard pings[app, default: 0] < Self.pingsAtOnce else { return false }
            pings[app, default: 0] += 1
            return true
        }
        guard mayGo else { return refused("Too many pings are in flight.") }
        defer { pings.withLock { $0[app] = $0[app].flatMap { $0 > 1 ? $0 - 1 : nil } } }
        var (attempt, verdict) = try await client.post(
            WebhookClient.Message(
                id: Identifier.make(prefix: "ping_"), app: app, url: url,
                body: payload.ping(record.identifier, at: now), timeout: client.settings.timeout))
        meters.count(.ping, attempt, verdict)
        log.info(
            "webhook pinged", ("app", record.identifier), ("result", verdict.name),
            ("status", attempt.statusCode ?? 0), ("error", attempt.error ?? ""),
            ("milliseconds", attempt.duration.milliseconds))
        // A working webhook allows launches before the next probe.
        if case .succeeded = verdict { carryOut(try await store.apps.noteWebhookAnswer(of: app, at: clock.time)) }
        if verdict == .interrupted { attempt.error = "The service is stopping." }
        return attempt
    }

    // MARK: Background refresh

    /// The background refresh of an app. For a due fetch it includes the reasons to wait.
    package func refresh(of app: AppID) async throws -> RefreshOverview {
        var overview = try await store.apps.refresh(of: app)
        let now = clock.time
        guard let next = overview.nextFetchAt, next <= now else { return overview }
        let verdict = try await store.apps.conditions().conditions.judge(.fetch, load: client.settings.load(), at: now)
        if case .wait(let reasons) = verdict {
            overview.why = "It is due. " + reasons.map(\.detail).joined(separator: " ")
        }
        return overview
    }

    package func setRefreshInterval(
        _ interval: BackgroundRefresh.Interval, replacing seen: BackgroundRefresh.Interval? = nil, of app: AppID
    ) async throws -> RefreshOverview {
        let overview = try await store.apps.setRefreshInterval(interval, replacing: seen, of: app, at: clock.time)
        refreshBell.ring()
        return overview
    }

    /// Starts a fetch now.
    ///
    /// - Throws: ``DomainError/refreshUnavailable(why:)``.
    package func simulateFetch(of app: AppID) async throws -> LaunchRecord {
        let (launch, aftermath) = try await store.apps.simulateFetch(of: app, at: clock.time)
        carryOut(aftermath)
        return launch
    }

    // MARK: Launches

    /// A launch with its attempts.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func launch(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        try await store.launches.read(launchId, app: app)
    }

    /// Up to `limit` launches of an app after a cursor, with the cursor of each. Empty sets match all.
    package func launches(
        of app: AppID, session identifier: String?, states: Set<LaunchState.Phase>, kinds: Set<LaunchKind>,
        _ span: ListSpan, after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, launch: LaunchRecord)] {
        try await store.launches.list(
            of: app, session: identifier, states: states, kinds: kinds, span, after: cursor, limit: limit)
    }

    /// Accepts an app's answer to a launch through a call, like the sender does for one in the 2xx.
    ///
    /// - Throws: The errors of ``Store/Launches/answer(_:app:with:epoch:at:)``.
    package func answer(
        _ launchId: String, app: AppID, with answer: LaunchAnswer, epoch: Int64?
    ) async throws -> LaunchRecord {
        carryOut(try await store.launches.answer(launchId, app: app, with: answer, epoch: epoch, at: clock.time))
        return try await launch(launchId, app: app)
    }

    /// Redelivers an open or exhausted launch.
    ///
    /// - Throws: ``DomainError/launchNotOpen``, ``DomainError/notFound``.
    package func redeliver(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        let (launch, aftermath) = try await store.launches.redeliver(launchId, app: app, at: clock.time)
        carryOut(aftermath)
        return launch
    }

    /// Redelivers all matching launches, in batches.
    package func redeliver(_ filter: LaunchFilter, of app: AppID) async throws -> (matched: Int, changed: Int) {
        var (matched, changed) = (0, 0)
        var before: Int64 = 0
        let now = clock.time
        while true {
            let step = try await store.launches.redeliver(
                filter, of: app, before: before, limit: Store.Tasks.commandGroup, at: now)
            carryOut(step.aftermath)
            matched += step.matched
            changed += step.changed
            guard let last = step.last else { return (matched, changed) }
            before = last
        }
    }
}
