package import Formats

/// The attachment lease of a session: at most one at a time, with an epoch that fences earlier clients.
///
///              take                       take (takeover)
///     free ──────────▶ held ◀─────────────────────────────┐
///      ▲                │ │└── renew ──▶ held              │
///      │    release,    │ └────────────────────────────────┘  the epoch rises, the other client is fenced
///      └─ launch ended ─┤
///                       └── expiry passes ──▶ lapsed ── renew (same epoch) ──▶ held
///                                               └────── take ──▶ held (next epoch)
///
/// A client ends `free`, its client or the clock ends `held`. A crash changes nothing: leases are durable.
package struct Attachment: Shape {
    package struct Lease: Shape {
        package var expiresAt = Timestamp()
        /// The launch that started the client. Completing the launch ends the lease.
        package var launchId: String?

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("expiresAt", &expiresAt)
            members.optional("launchId", &launchId)
        }
    }

    package enum Event: Hashable, Sendable {
        /// Refused while another client's lease is valid, unless `takeover` is set.
        case take(ttl: Duration, launchId: String?, takeover: Bool)
        /// Also valid after the expiry, unless another client has the lease.
        case renew(epoch: Int64, ttl: Duration)
        /// Repeating it with the same epoch changes nothing.
        case release(epoch: Int64)
        case launchCompleted(launchId: String)
    }

    /// A client that was not attached before.
    package struct Arrival: Hashable, Sendable {
        /// The launch that started the client; `nil` for a client that attached by itself.
        package var launchId: String?
    }

    /// The number of the latest lease; 0 before the first.
    package private(set) var epoch: Int64 = 0
    package private(set) var lease: Lease?
    /// Whether a valid lease was ever taken over: from then on every request needs the epoch.
    package private(set) var wasTakenOver = false
    /// When the latest lease was released.
    package private(set) var endedAt: Timestamp?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("epoch", &epoch)
        members.optional("lease", &lease)
        members.member("wasTakenOver", &wasTakenOver)
        members.optional("endedAt", &endedAt)
    }

    /// Applies an event to the attachment.
    ///
    /// - Returns: The arrival of a client that takes a lease or renews an expired one.
    /// - Throws: ``Refused`` for `take` while another client holds the session, and for `renew` and `release` with an
    ///   epoch that is not the current one. Nothing has changed then.
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

    /// When the lease ended, by release or expiry; `nil` while it is held and before the first lease.
    package func detachedAt(_ now: Timestamp) -> Timestamp? {
        guard !isHeld(at: now) else { return nil }
        return lease?.expiresAt ?? endedAt
    }

    /// Whether a client may acknowledge and complete.
    ///
    /// While a lease is held, and after a takeover, only the current epoch is admitted. A wrong epoch never is.
    package func admits(epoch given: Int64?, at now: Timestamp) -> Bool {
        if let given { return given == epoch }
        return !isHeld(at: now) && !wasTakenOver
    }

    /// Whether the response to a webhook may complete its launch. It has no epoch: while a lease is held, it has to be
    /// that of the launched app.
    package func admits(responseTo launchId: String, at now: Timestamp) -> Bool {
        !isHeld(at: now) || lease?.launchId?.utf8.elementsEqual(launchId.utf8) == true
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
