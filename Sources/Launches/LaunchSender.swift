import Base
import Core
import Store

/// Sends due launches: claims a few, signs and posts each beside the loop, stores how it went.
///
/// It meets the rest of the service only in the store: a launch is a row, written by the commit that caused it.
struct LaunchSender {
    let store: Store
    let settings: LaunchSettings
    let client: WebhookClient
    let payload: Payload
    let meters: LaunchMeters
    let bell: Doorbell
    let clock: Clock
    let log: Log
    let carryOut: @Sendable (Aftermath) -> Void
    private let slots = Locked(LaunchSlots())

    /// Runs until it is cancelled; what is under way then is interrupted, and not charged.
    func run() async throws {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                var next: Timestamp?
                do {
                    next = try await turn(&group)
                } catch {
                    // The store is full or stops; launches lose nothing by waiting.
                    if Store.Obstacle(error) != .away {
                        log.error("launches could not be read or stored", ("error", "\(error)"))
                    }
                    next = clock.time + .seconds(1)
                }
                let pause = next.map { max(0, min(($0 - clock.time).milliseconds, 60_000)) } ?? 60_000
                await bell.wait(until: clock.monotonic() + pause)
            }
            group.cancelAll()
        }
    }

    /// Does what is due.
    ///
    /// - Returns: When there is something to do next.
    private func turn(_ group: inout DiscardingTaskGroup) async throws -> Timestamp? {
        guard settings.maySend() else { return nil }
        let now = clock.time
        var agenda = try await store.launchAgenda(at: now)
        if agenda.hasExpired {
            carryOut(
                try await store.expireLaunches(at: now, limit: Self.expiriesInTurn) { Double.random(in: 0..<1) })
            agenda = try await store.launchAgenda(at: now)
            if agenda.hasExpired { agenda.next = now }
        }
        if agenda.hasUnsettled {
            let (hasMore, aftermath) = try await store.settleLaunches(at: now)
            carryOut(aftermath)
            if hasMore { agenda.next = now }
        }
        guard agenda.hasDueLaunches else { return agenda.next }
        let clock = clock
        let nextSlot = slots.withLock { $0.takeBack(at: clock.monotonic()) }
        if try await claim(&group) { return now }
        guard let nextSlot else { return agenda.next }
        let slotIsFree = now + .milliseconds(max(0, nextSlot - clock.monotonic()))
        return min(agenda.next ?? slotIsFree, slotIsFree)
    }

    private static let expiriesInTurn = 200
    /// Launches that one transaction takes at most.
    private static let claimsInTurn = 32
    /// A lease outlasts the longest request by this much.
    private static let leaseMargin = Duration.seconds(30)

    /// - Returns: Whether there may be more to take.
    private func claim(_ group: inout DiscardingTaskGroup) async throws -> Bool {
        let slots = slots.withLock { $0 }
        guard slots.hasFree else { return false }
        let now = clock.time
        let result = try await store.claimDueLaunches(
            slots, limit: Self.claimsInTurn,
            leaseUntil: now + max(settings.timeout, settings.fetchTimeout) + Self.leaseMargin, at: now)
        let clock = clock
        self.slots.withLock { slots in
            for launch in result.claimed { slots.began(launch.id, of: launch.app, at: clock.monotonic()) }
        }
        meters.inFlight.add(Double(result.claimed.count))
        // The slots are taken now; time and signature are those of the sending.
        for launch in result.claimed { group.addTask { await self.deliver(launch) } }
        carryOut(result.aftermath)
        return result.hasMore
    }

    private func deliver(_ launch: ClaimedLaunch) async {
        let report = await attempt(launch)
        let wasAnswered = report.verdict == .interrupted ? nil : report.attempt.statusCode != nil
        do {
            carryOut(try await store.record(report, jitter: Double.random(in: 0..<1), at: clock.time))
        } catch {
            // Its lease ends by itself, without a charge.
            log.error(
                "an attempt could not be stored", ("launch", launch.launchId), ("error", "\(error)"))
        }
        slots.withLock { $0.ended(launch.id, of: launch.app, wasAnswered: wasAnswered) }
        meters.inFlight.add(-1)
        bell.ring()
    }

    private func attempt(_ launch: ClaimedLaunch) async -> LaunchReport {
        let startedAt = clock.time
        let (attempt, verdict): (LaunchAttempt, LaunchReport.Verdict)
        do {
            (attempt, verdict) = try await client.post(
                WebhookClient.Message(
                    id: launch.launchId, attempt: launch.attempt, app: launch.app, url: launch.webhook.url ?? "",
                    body: try await body(of: launch), traceparent: launch.traceparent, timeout: timeout(of: launch)))
        } catch {
            // It counts as an attempt, so that it is not tried for ever.
            log.error("a launch could not be told", ("launch", launch.launchId), ("error", "\(error)"))
            return LaunchReport(
                launch: launch,
                attempt: LaunchAttempt(
                    number: launch.attempt, startedAt: startedAt, duration: .zero, statusCode: nil,
                    error: "The service could not make the request.", excerpt: nil),
                verdict: .failed(retryAfter: nil, wasAnswered: false))
        }
        meters.count(launch.kind, attempt, verdict)
        log.info(
            "launch attempted", ("launch", launch.launchId), ("kind", launch.kind.rawValue),
            ("app", launch.appIdentifier), ("attempt", launch.attempt), ("result", verdict.name),
            ("status", attempt.statusCode ?? 0), ("error", attempt.error ?? ""),
            ("milliseconds", attempt.duration.milliseconds))
        return LaunchReport(launch: launch, attempt: attempt, verdict: verdict)
    }

    /// What earlier attempts sent. What the first one sends is kept before it is sent.
    private func body(of launch: ClaimedLaunch) async throws -> [UInt8] {
        if let body = launch.body { return body }
        var contents: LaunchContents?
        if let session = launch.session {
            do {
                contents = try await store.launchContents(
                    of: session, through: launch.lastSeq, limit: launch.webhook.includeEvents)
            } catch DomainError.notFound {
                // The session is gone: the receiver will find nothing either.
            }
        }
        return try await store.freezeBody(payload.body(of: launch, contents), of: launch.id)
    }

    /// A fetch ends at its deadline, whichever attempt it is.
    private func timeout(of launch: ClaimedLaunch) -> Duration {
        guard launch.kind == .performFetch else { return settings.timeout }
        return max(.seconds(1), min(settings.fetchTimeout, launch.expiresAt - clock.time))
    }
}
