package import Formats

/// The life of one launch: a webhook that is attempted until its app has completed it.
///
///              claim                 succeeded                complete
///     pending ───────▶ delivering ─────────────▶ launched ───────────────▶ completed
///      │ ▲ ▲                │ └──── completed inline ─────────────────────────▲ ▲ ▲
///      │ │ └─── failed ─────┤                       │                         │ │ │
///      │ │   interrupted    │                       │                         │ │ │
///      │ └──────────── deadlinePassed ──────────────┤                         │ │ │
///      │                    └──────── no attempt left ──▶ exhausted           │ │ │
///      ├── clientAttached ──▶ superseded                  │                   │ │ │
///      │        ▲                          redeliver ─▶ pending               │ │ │
///      ├── park ──▶ parked ── enabled ──▶ pending                             │ │ │
///      │               └── complete ──────────────────────────────────────────┘ │ │
///      └── complete (late, while a retry waits; or early, while delivering) ─────┴─┘
///
/// Open states are `pending`, `delivering`, `launched` and `parked`. `delivering` and `launched` can be parked as well,
/// and all of them are superseded when their session ends. The sender ends `pending` when the launch is due, the
/// receiver's response ends `delivering`, the app or the deadline ends `launched`, the request that enables the webhook
/// ends `parked`. After a crash `delivering` gets `.interrupted`: the attempt is uncharged and repeated with the same
/// id. The other states continue with their stored times.
package enum LaunchState: Hashable, Sendable {
    /// `attempts` is the number of attempts made; the next one is due at `nextAttemptAt`.
    case pending(attempts: Int, nextAttemptAt: Timestamp)
    /// `attempt` is in flight; it is lost when the lease expires.
    case delivering(attempt: Int, leaseUntil: Timestamp)
    /// The receiver responded with 2xx; the app has to complete the launch until the deadline.
    case launched(attempts: Int, deadline: Timestamp)
    case parked(attempts: Int, reason: ParkReason)
    case completed(at: Timestamp)
    case superseded(at: Timestamp)
    case exhausted(attempts: Int, at: Timestamp)

    package enum ParkReason: String, Word, CaseIterable {
        case noURL, paused, disabled
        /// The app was force-quit and has not been activated.
        case forceQuit
    }

    package enum Event: Hashable, Sendable {
        /// The sender claims the launch, with a lease that outlasts its request.
        case claim(leaseUntil: Timestamp)
        /// 2xx without a completion: the app has to complete the launch until `deadline`.
        case succeeded(deadline: Timestamp)
        case failed(Failure)
        /// The app did not complete the launch in time, which counts as a failed attempt.
        case deadlinePassed(Failure)
        /// The attempt is lost: the service restarted, or shut down during the attempt.
        case interrupted
        /// The lease expired without a report.
        case leaseExpired
        /// The app completed the launch, in the 2xx or by a call.
        case complete
        /// A client attached by itself.
        case clientAttached
        case park(ParkReason)
        /// The incarnation of its session ends.
        case sessionEnded
        /// The launch became due while no node could send it. It gets a new due time.
        case putOff(until: Timestamp)
        /// The webhook is usable again; the due times of parked launches are spread.
        case enabled(nextAttemptAt: Timestamp)
        /// The operator or the app requested a redelivery.
        case redeliver
    }

    /// The inputs that determine whether and when a failed attempt is repeated.
    package struct Failure: Hashable, Sendable {
        package var schedule: LaunchSchedule
        /// A number in `0..<1`.
        package var jitter: Double
        /// The `Retry-After` of a 429 or 503.
        package var retryAfter: Duration?
        /// The end of attempts, whatever the schedule.
        package var expiresAt: Timestamp?

        package init(
            schedule: LaunchSchedule = .standard, jitter: Double, retryAfter: Duration? = nil,
            expiresAt: Timestamp? = nil
        ) {
            self.schedule = schedule
            self.jitter = jitter
            self.retryAfter = retryAfter
            self.expiresAt = expiresAt
        }
    }

    package enum Effect: Hashable, Sendable {
        /// Sign and send the given attempt.
        case send(attempt: Int)
        /// Acknowledge events through the app's number, or through the launch's last event.
        case acknowledge
        /// Record `session.didFinishEvents`.
        case finishEvents
        /// The launch is exhausted.
        case giveUp
        /// Allow another launch of its session.
        case makeRoom
    }

    /// Applies an event to the launch.
    ///
    /// - Throws: ``Refused`` if the event does not fit; the state is unchanged.
    package mutating func handle(_ event: Event, at now: Timestamp) throws(Refused) -> [Effect] {
        switch (self, event) {
        case (.pending(let attempts, let due), .claim(let leaseUntil)) where due <= now:
            self = .delivering(attempt: attempts + 1, leaseUntil: leaseUntil)
            return [.send(attempt: attempts + 1)]

        // A parked launch may have an attempt in flight, whose response counts.
        case (.delivering(let attempts, _), .succeeded(let deadline)),
            (.parked(let attempts, _), .succeeded(let deadline)):
            self = .launched(attempts: attempts, deadline: deadline)
        case (.delivering(let attempt, _), .failed(let failure)):
            return retry(afterAttempt: attempt, failure, at: now)
        case (.parked, .failed):
            break
        case (.launched(let attempts, let deadline), .deadlinePassed(let failure)) where deadline <= now:
            return retry(afterAttempt: attempts, failure, at: now)
        case (.delivering(let attempt, _), .interrupted):
            self = .pending(attempts: attempt - 1, nextAttemptAt: now)
        case (.delivering(let attempt, let leaseUntil), .leaseExpired) where leaseUntil <= now:
            self = .pending(attempts: attempt - 1, nextAttemptAt: now)

        case (.pending, .complete), (.delivering, .complete), (.launched, .complete), (.parked, .complete):
            self = .completed(at: now)
            return [.acknowledge, .finishEvents]
        case (.completed, .complete):
            break
        case (.superseded, .complete), (.exhausted, .complete):
            return [.acknowledge]

        case (.pending, .clientAttached), (.parked, .clientAttached), (.pending, .sessionEnded),
            (.delivering, .sessionEnded), (.launched, .sessionEnded), (.parked, .sessionEnded):
            self = .superseded(at: now)
            return [.makeRoom]
        // The client is assumed to be the launched app.
        case (.delivering, .clientAttached), (.launched, .clientAttached):
            break

        case (.pending(let attempts, _), .park(let reason)), (.delivering(let attempts, _), .park(let reason)),
            (.launched(let attempts, _), .park(let reason)), (.parked(let attempts, _), .park(let reason)):
            self = .parked(attempts: attempts, reason: reason)
        case (.pending(let attempts, let due), .putOff(let moment)):
            self = .pending(attempts: attempts, nextAttemptAt: max(due, moment))
        case (.parked(let attempts, _), .enabled(let nextAttemptAt)):
            self = .pending(attempts: attempts, nextAttemptAt: nextAttemptAt)

        case (.pending(let attempts, _), .redeliver), (.launched(let attempts, _), .redeliver),
            (.exhausted(let attempts, _), .redeliver):
            self = .pending(attempts: attempts, nextAttemptAt: now)
        // The launch is in flight or parked: nothing can be accelerated.
        case (.delivering, .redeliver), (.parked, .redeliver):
            break

        default:
            throw Refused(name, event)
        }
        return []
    }

    private mutating func retry(afterAttempt attempt: Int, _ failure: Failure, at now: Timestamp) -> [Effect] {
        // A receiver that asks for more time than is left gets an attempt at the end of that time.
        let longest = failure.expiresAt.map { $0 - now - LaunchSchedule.reserve } ?? LaunchSchedule.lifetime
        let delay = failure.schedule.delay(
            afterAttempt: attempt, jitter: failure.jitter, retryAfter: failure.retryAfter.map { min($0, longest) })
        guard let delay, now + delay < failure.expiresAt ?? Timestamp(milliseconds: .max) else {
            self = .exhausted(attempts: attempt, at: now)
            return [.giveUp]
        }
        self = .pending(attempts: attempt, nextAttemptAt: now + delay)
        return []
    }
}

extension LaunchState {
    /// The state without its data: as clients see it, and as the store queries it.
    package enum Phase: String, Sendable, CaseIterable {
        case pending, delivering, launched, parked, completed, superseded, exhausted

        /// Whether an attempt may be in flight: a launch is parked in any open state.
        package var mayBeUnderWay: Bool { self == .delivering || self == .parked }
    }

    package var phase: Phase {
        switch self {
        case .pending: .pending
        case .delivering: .delivering
        case .launched: .launched
        case .parked: .parked
        case .completed: .completed
        case .superseded: .superseded
        case .exhausted: .exhausted
        }
    }

    package var name: String { phase.rawValue }

    /// When the launch ended; `nil` while it prevents another launch of its session.
    package var endedAt: Timestamp? {
        switch self {
        case .pending, .delivering, .launched, .parked: nil
        case .completed(let moment), .superseded(let moment), .exhausted(_, let moment): moment
        }
    }

    package var isOpen: Bool { endedAt == nil }

    /// The next time event: the next attempt, the end of the lease or the app's deadline.
    package var dueAt: Timestamp? {
        switch self {
        case .pending(_, let moment), .delivering(_, let moment), .launched(_, let moment): moment
        case .parked, .completed, .superseded, .exhausted: nil
        }
    }

    /// The number of attempts, including one in flight; `nil` in states without a count.
    package var attempts: Int? {
        switch self {
        case .pending(let attempts, _), .delivering(let attempts, _), .launched(let attempts, _),
            .parked(let attempts, _), .exhausted(let attempts, _):
            attempts
        case .completed, .superseded: nil
        }
    }
}

/// Stored as an object whose only member has the name of the state.
extension LaunchState: JSONReadable, MemberValue {
    private static let blanks: [LaunchState] = [
        .pending(attempts: 0, nextAttemptAt: Timestamp()), .delivering(attempt: 0, leaseUntil: Timestamp()),
        .launched(attempts: 0, deadline: Timestamp()), .parked(attempts: 0, reason: .noURL),
        .completed(at: Timestamp()), .superseded(at: Timestamp()), .exhausted(attempts: 0, at: Timestamp()),
    ]

    package init(reading reader: inout ObjectReader) {
        let named = Self.blanks.first { reader.presence(of: $0.name) == .present }
        if named == nil { reader.report("This must be a state of launches.") }
        self = named ?? Self.blanks[0]
        reader.object(name) { visit(&$0) }
    }

    package func write(to writer: inout JSONWriter) {
        var state = self
        writer.object { $0.object(name) { state.visit(&$0) } }
    }

    private mutating func visit(_ members: inout some MemberVisitor) {
        switch self {
        case .pending(var attempts, var nextAttemptAt):
            members.member("attempts", &attempts)
            members.member("nextAttemptAt", &nextAttemptAt)
            self = .pending(attempts: attempts, nextAttemptAt: nextAttemptAt)
        case .delivering(var attempt, var leaseUntil):
            members.member("attempt", &attempt)
            members.member("leaseUntil", &leaseUntil)
            self = .delivering(attempt: attempt, leaseUntil: leaseUntil)
        case .launched(var attempts, var deadline):
            members.member("attempts", &attempts)
            members.member("deadline", &deadline)
            self = .launched(attempts: attempts, deadline: deadline)
        case .parked(var attempts, var reason):
            members.member("attempts", &attempts)
            members.member("reason", &reason)
            self = .parked(attempts: attempts, reason: reason)
        case .completed(var moment):
            members.member("at", &moment)
            self = .completed(at: moment)
        case .superseded(var moment):
            members.member("at", &moment)
            self = .superseded(at: moment)
        case .exhausted(var attempts, var moment):
            members.member("attempts", &attempts)
            members.member("at", &moment)
            self = .exhausted(attempts: attempts, at: moment)
        }
    }
}
