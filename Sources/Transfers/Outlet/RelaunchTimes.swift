package import Base
package import Core

/// The times at which the launch rules of sessions are evaluated again.
package final class RelaunchTimes: Sendable {
    private struct Appointment: Comparable {
        var time: Timestamp
        var session: SessionID

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    private struct State {
        var times: [SessionID: Timestamp] = [:]
        /// Appointments that were moved stay in the queue, and are skipped when they are due.
        var queue = Heap<Appointment>()
    }

    private let state = Locked(State())
    package let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// Keeps the earliest of several times: the rule is evaluated with the state of that time, and returns the next
    /// time. A later time may have been computed before a client detached.
    package func check(_ session: SessionID, at time: Timestamp) {
        let isEarlier = state.withLock { state in
            if let known = state.times[session], known <= time { return false }
            state.times[session] = time
            state.queue.insert(Appointment(time: time, session: session))
            return true
        }
        if isEarlier { bell.ring() }
    }

    /// Sessions that are due, at most `limit`, and the next time. The cost depends on the due sessions only.
    package func takeDue(at now: Timestamp, limit: Int) -> (due: [SessionID], next: Timestamp?) {
        state.withLock { state in
            var due: [SessionID] = []
            while due.count < limit, let first = state.queue.least, first.time <= now {
                _ = state.queue.popLeast()
                guard state.times[first.session] == first.time else { continue }
                state.times[first.session] = nil
                due.append(first.session)
            }
            return (due, state.queue.least?.time)
        }
    }
}
