package import Base
package import Core

/// The clients that are attached to sessions at this moment. Kept in memory: after a start no client is attached.
///
/// An open stream and a read that waits attach as long as they last; leases are in the store. What other nodes know of it
/// is in the store too.
package final class Attendance: Sendable {
    private struct Entry {
        var streams = 0
        var waits = 0
        var lastDetachedAt: Timestamp?

        var isAttached: Bool { streams + waits > 0 }
    }

    private let entries = Locked<[SessionID: Entry]>([:])
    /// Sessions whose last client left, of which other nodes were not told yet; nil where there are none.
    private let departures: Locked<Set<SessionID>>?
    private let startedAt: Timestamp
    private let clock: Clock

    /// - Parameter isShared: Whether other nodes may want to know.
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

    /// The kind of attachment to show for a session, streams before waits.
    package func kind(of session: SessionID) -> Presence.Kind? {
        entries.withLock { entries in
            guard let entry = entries[session], entry.isAttached else { return nil }
            return entry.streams > 0 ? .stream : .wait
        }
    }

    /// Counts a client in.
    ///
    /// - Returns: Whether it is the first.
    package func attach(_ session: SessionID, _ kind: Presence.Kind) -> Bool {
        entries.withLock { entries in
            var entry = entries[session] ?? Entry()
            let isFirst = !entry.isAttached
            if kind == .stream { entry.streams += 1 } else { entry.waits += 1 }
            entries[session] = entry
            return isFirst
        }
    }

    /// Counts a client out.
    ///
    /// - Returns: Whether it was the last.
    package func detach(_ session: SessionID, _ kind: Presence.Kind) -> Bool {
        let now = clock.now
        // When it is told, it has left.
        defer { departures?.withLock { _ = $0.insert(session) } }
        return entries.withLock { entries in
            guard var entry = entries[session] else { return false }
            if kind == .stream { entry.streams -= 1 } else { entry.waits -= 1 }
            if !entry.isAttached { entry.lastDetachedAt = now }
            entries[session] = entry
            return !entry.isAttached
        }
    }

    /// Sessions that clients left; other nodes learn of those without an attached client.
    package func takeDepartures() -> [SessionID] {
        let all = departures?.withLock { departures in
            defer { departures = [] }
            return departures
        }
        return (all ?? []).filter { kind(of: $0) == nil }
    }

    /// They could not be told.
    package func putBack(departures sessions: [SessionID]) { departures?.withLock { $0.formUnion(sessions) } }

    /// Forgets sessions whose last client left long ago, since the start stands in for them.
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
