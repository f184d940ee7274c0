package import Formats

/// Who holds a session: at most one lease at a time, numbered so that an outrun client cannot act any more.
///
///              take                       take (takeover)
///     free ──────────▶ held ◀─────────────────────────────┐
///      ▲                │ │└── renew ──▶ held              │
///      │    release,    │ └────────────────────────────────┘  the epoch rises, the other client is fenced
///      └─ launch ended ─┤
///                       └── expiry passes ──▶ lapsed ── renew (same epoch) ──▶ held
///                                               └────── take ──▶ held (next epoch)
///
/// `free` is moved on by a client, `held` by its client or the clock. A crash changes nothing: leases last.
package struct Attachment: Shape {
    package struct Lease: Shape {
        package var expiresAt = Timestamp()
        /// The launch that brought the client; completing it ends the lease.
        package var launchId: String?

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("expiresAt", &expiresAt)
            members.optional("launchId", &launchId)
        }
    }

    package enum Event: Hashable, Sendable {
        /// Refused while another client's lease is in force, unless it is to be taken over.
        case take(ttl: Duration, launchId: String?, takeover: Bool)
        /// Works after the expiry too, unless another client has taken the lease.
        case renew(epoch: Int64, ttl: Duration)
        /// Repeating it with the same epoch changes nothing.
        case release(epoch: Int64)
        case launchCompleted(launchId: String)
    }

    /// A client that was not there before.
    package struct Arrival: Hashable, Sendable {
        /// The launch that brought it; nil for one that came by itself.
        package var launchId: String?
    }

    /// The number of the latest lease; 0 before the first.
    package private(set) var epoch: Int64 = 0
    package private(set) var lease: Lease?
    /// Whether a lease in force was ever taken from its client: from then on no request is accepted without the epoch.
    package private(set) var wasTakenOver = false
    /// When the latest lease was given back.
    package private(set) var endedAt: Timestamp?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("epoch", &epoch)
        members.optional("lease", &lease)
        members.member("wasTakenOver", &wasTakenOver)
        members.optional("endedAt", &endedAt)
    }

    /// Takes the attachment to its next state.
    ///
    /// - Returns: Who came, by taking a lease or by renewing one that had ended.
    /// - Throws: ``Refused``: `take` where another client holds the session, `renew` and `release` with an epoch that
    ///   is not the current one. Nothing has changed then.
    @discardableResult
    package mutating func handle(_ event: Event, at now: Timestamp) throws(Refused) -> Arrival? {
        switch event {
        case .take(let ttl, let launchId, let takeover):
            let isHeld = isHeld(at: now)
            guard !isHeld || takeover else { throw refusal(of: event, at: now) }
            wasTakenOver = wasTakenOver || isHeld
            epoch += 1
            lease = Lease {
                $0.expiresAt = now + ttl
                $0.launchId = launchId
            }
            endedAt = nil
            return Arrival(launchId: launchId)
        case .renew(let given, let ttl):
            guard given == epoch, let lease else { throw refusal(of: event, at: now) }
            let wasHeld = isHeld(at: now)
            self.lease?.expiresAt = now + ttl
            return wasHeld ? nil : Arrival(launchId: lease.launchId)
        case .release(let given):
            guard given == epoch, epoch > 0 else { throw refusal(of: event, at: now) }
            end(at: now)
        case .launchCompleted(let launchId):
            if let holder = lease?.launchId, holder.utf8.elementsEqual(launchId.utf8) { end(at: now) }
        }
        return nil
    }

    package func isHeld(at now: Timestamp) -> Bool { lease.map { now < $0.expiresAt } ?? false }

    /// When the lease ended, by release or by itself; nil while it is held and before the first.
    package func detachedAt(_ now: Timestamp) -> Timestamp? {
        guard !isHeld(at: now) else { return nil }
        return lease?.expiresAt ?? endedAt
    }

    /// Whether a client may acknowledge and complete.
    ///
    /// While a lease is held, and once one was taken over, only with the current epoch; a wrong epoch never.
    package func admits(epoch given: Int64?, at now: Timestamp) -> Bool {
        if let given { return given == epoch }
        return !isHeld(at: now) && !wasTakenOver
    }

    private mutating func end(at now: Timestamp) {
        guard let lease else { return }
        endedAt = min(now, lease.expiresAt)
        self.lease = nil
    }

    private func refusal(of event: Event, at now: Timestamp) -> Refused {
        Refused(isHeld(at: now) ? "held" : lease == nil ? "free" : "lapsed", event)
    }
}
