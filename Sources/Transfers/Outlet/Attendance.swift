package import Base
package import Core

/// The clients that are attached to sessions. Kept in memory: after a start no client is attached.
///
/// An open stream and a held request attach a client as long as they last. Leases, and the attachments that other nodes
/// see, are in the store.
package final class Attendance: Sendable {
    private struct Entry {
        var streams = 0
        var waits = 0
        var lastDetachedAt: Timestamp?

        var isAttached: Bool { streams + waits > 0 }
    }

    private let entries = Locked<[SessionID: Entry]>([:])
    /// Sessions whose last client detached, not yet reported to other nodes; nil if no other node shares the store.
    private let departures: Locked<Set<SessionID>>?
    private let startedAt: Timestamp
    private let clock: Clock

    /// - Parameter isShared: Whether other nodes share the store.
    package init(clock: Clock, isShared: Bool = false) {
        self.clock = clock
        departures = isShared ? Locked([]) : nil
        startedAt = clock.now
    }

    /// Whether a session is attached; read by the launch rule inside the store's transactions.
    package func presence(of session: SessionID) -> Presence {
        entries.withLock { entries in
            let entry = entries[session]
            return Presence(
                isAttached: entry?.isAttached ?? false, lastDetachedAt: entry?.lastDetachedAt ?? startedAt)
        }
    }

    /// Whether a client is attached, or was within the grace period before `now`.
    package func hasClient(_ session: SessionID, within grace: Duration, before now: Timestamp) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[session] else { return false }
            return entry.isAttached || entry.lastDetachedAt.map { $0 + grace > now } ?? false
        }
    }

    /// The kind of attachment to show for a session. Streams precede held requests.
    package func kind(of session: SessionID) -> Presence.Kind? {
        entries.withLock { entries in
            guard let entry = entries[session], entry.isAttached else { return nil }
            return entry.streams > 0 ? .stream : .wait
        }
    }

    /// Attaches a client.
    package func attach(_ session: SessionID, _ kind: Presence.Kind) {
        entries.withLock { entries in
            if kind == .stream {
                entries[session, default: Entry()].streams += 1
            } else {
                entries[session, default: Entry()].waits += 1
            }
        }
    }

    /// Detaches a client.
    ///
    /// - Returns: Whether it was the session's last client.
    package func detach(_ session: SessionID, _ kind: Presence.Kind) -> Bool {
        let now = clock.now
        // Recorded after the detachment: ``takeDepartures()`` drops sessions that are still attached.
        defer { departures?.withLock { _ = $0.insert(session) } }
        return entries.withLock { entries in
            guard var entry = entries[session] else { return false }
            if kind == .stream { entry.streams -= 1 } else { entry.waits -= 1 }
            if !entry.isAttached { entry.lastDetachedAt = now }
            entries[session] = entry
            return !entry.isAttached
        }
    }

    /// Sessions without an attached client among those that a client left, to be reported to other nodes.
    package func takeDepartures() -> [SessionID] {
        let all = departures?.withLock { departures in
            defer { departures = [] }
            return departures
        }
        return (all ?? []).filter { kind(of: $0) == nil }
    }

    /// Restores departures that could not be reported.
    package func putBack(departures sessions: [SessionID]) { departures?.withLock { $0.formUnion(sessions) } }

    /// Removes sessions whose last client detached long ago. The time of the start replaces the removed times.
    package func prune(olderThan age: Duration) {
        let before = clock.now - age
        entries.withLock { entries in
            entries = entries.filter { $0.value.isAttached || ($0.value.lastDetachedAt ?? startedAt) > before }
        }
    }
}

extension Clock {
    /// The wall clock's time.
    package var now: Timestamp { Timestamp(milliseconds: wall()) }
}
