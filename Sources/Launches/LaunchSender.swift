import Base
import Core
import Store

/// Sends due launches: claims some, signs and posts each beside the loop, and stores the outcome.
///
/// It communicates with the rest of the service only through the store: a launch is a row in it.
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

    /// Runs until it is cancelled. Attempts in flight are then interrupted, and not charged.
    func run() async throws {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                var next: Timestamp?
                do {
                    next = try await turn(&group)
                } catch {
                    // The store is full or closed; a wait loses no launch.
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

    /// Performs the due work.
    ///
    /// - Returns: When work is due next.
    private func turn(_ group: inout DiscardingTaskGroup) async throws -> Timestamp? {
        guard settings.maySend() else { return nil }
        let now = clock.time
        var agenda = try await store.launches.agenda(at: now)
        if agenda.hasExpired {
            carryOut(
                try await store.launches.expire(at: now, limit: Self.expiriesInTurn) { Double.random(in: 0..<1) })
            agenda = try await store.launches.agenda(at: now)
            if agenda.hasExpired { agenda.next = now }
        }
        if agenda.hasUnsettled {
            let (hasMore, aftermath) = try await store.launches.settle(at: now)
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
    /// The maximum number of launches claimed in one transaction.
    private static let claimsInTurn = 32
    /// The time by which a lease outlasts the longest request.
    private static let leaseMargin = Duration.seconds(30)

    /// - Returns: Whether more launches may be claimed.
    private func claim(_ group: inout DiscardingTaskGroup) async throws -> Bool {
        let slots = slots.withLock { $0 }
        guard slots.hasFree else { return false }
        let now = clock.time
        let result = try await store.launches.claimDue(
            slots, limit: Self.claimsInTurn,
            leaseUntil: now + max(settings.timeout, settings.fetchTimeout) + Self.leaseMargin, at: now)
        let clock = clock
        self.slots.withLock { slots in
            for launch in result.claimed { slots.began(launch.id, of: launch.app, at: clock.monotonic()) }
        }
        meters.inFlight.add(Double(result.claimed.count))
        // Slots are held from now on; time and signature are made when sending.
        for launch in result.claimed { group.addTask { await self.deliver(launch) } }
        carryOut(result.aftermath)
        return result.hasMore
    }

    private func deliver(_ launch: ClaimedLaunch) async {
        let report = await attempt(launch)
        let wasAnswered = report.verdict == .interrupted ? nil : report.attempt.statusCode != nil
        do {
            carryOut(try await store.launches.record(report, jitter: Double.random(in: 0..<1), at: clock.time))
        } catch {
            // The lease expires by itself, without a charge.
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
            // The attempt is charged, so that it is not repeated without end.
            log.error("a launch could not be sent", ("launch", launch.launchId), ("error", "\(error)"))
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

    /// The body that earlier attempts sent. The first attempt stores it before sending.
    private func body(of launch: ClaimedLaunch) async throws -> [UInt8] {
        if let body = launch.body { return body }
        var contents: LaunchContents?
        if let session = launch.session {
            do {
                contents = try await store.launches.contents(
                    of: session, through: launch.lastSeq, limit: launch.webhook.includeEvents)
            } catch DomainError.notFound {
                // The session is gone, and the receiver will not find it either.
            }
        }
        return try await store.launches.freezeBody(payload.body(of: launch, contents), of: launch.id)
    }

    /// The time limit of an attempt. An attempt of a fetch also ends at the fetch's deadline.
    private func timeout(of launch: ClaimedLaunch) -> Duration {
        guard launch.kind == .performFetch else { return settings.timeout }
        return max(.seconds(1), min(settings.fetchTimeout, launch.expiresAt - clock.time))
    }
}
