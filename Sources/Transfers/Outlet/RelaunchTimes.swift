package import Base
package import Core

/// When which session's launch rule is asked again.
package final class RelaunchTimes: Sendable {
    private struct Appointment: Comparable {
        var time: Timestamp
        var session: SessionID

        static func < (left: Self, right: Self) -> Bool { left.time < right.time }
    }

    private struct State {
        var times: [SessionID: Timestamp] = [:]
        /// Appointments that were moved stay, and mean nothing when their time has come.
        var queue = Heap<Appointment>()
    }

    private let state = Locked(State())
    package let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// The earliest of several times counts: the rule is asked as things stand then, and tells when to ask again. A later
    /// one may have been found before a client left.
    package func check(_ session: SessionID, at time: Timestamp) {
        let isEarlier = state.withLock { state in
            if let known = state.times[session], known <= time { return false }
            state.times[session] = time
            state.queue.insert(Appointment(time: time, session: session))
            return true
        }
        if isEarlier { bell.ring() }
    }

    /// Sessions whose time has come, up to `limit`, and the next time. Costs what it takes, however many wait.
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
