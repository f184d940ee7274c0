package import Formats

/// The reason for which an attempt ended without the task's result.
package enum AttemptFault: Hashable, Sendable {
    /// No route, DNS failure, connect, TLS interrupted, reset, idle timeout, short body, HTTP/2 refused or GOAWAY.
    case transport
    /// The resolver's authoritative result: the name does not exist.
    case nameDoesNotExist
    /// A response whose status may be retried.
    case status(Int, retryAfter: Duration?)
    /// A success before the origin had received the whole body of the request.
    case answeredEarly
    /// The received bytes and the offered ones are of different versions: discard the bytes and restart.
    case restart
    /// All bytes arrived and their digest is not the expected one.
    case digestMismatch
    /// A fault of this machine: its disk, its database, its stored data.
    case local
    /// Trust, cancelled authentication, bad URL, redirect loop, policy: a retry would end in the same way.
    case terminal
}

/// The history of a task's attempts, stored with the task.
package struct AttemptLedger: Shape {
    /// The number of ended attempts.
    package var attempts = 0
    /// Consecutive failures without progress: n + 1 of the backoff `initialDelay · 2ⁿ`.
    package var failuresSinceProgress = 0
    /// The kept offset from which progress is measured; it never decreases, not even by restarts.
    package var highestOffset: Int64 = 0
    package var statusAttempts = 0
    package var nameAttempts = 0
    package var restarts = 0
    package var digestMismatches = 0
    /// Faults of this machine without progress in between.
    package var localFaults = 0
    /// When the first attempt began; stored if a retry policy limits the time since.
    package var firstAttemptAt: Timestamp?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("attempts", &attempts)
        members.sparse("failuresSinceProgress", &failuresSinceProgress, unless: 0)
        members.sparse("highestOffset", &highestOffset, unless: 0)
        members.sparse("statusAttempts", &statusAttempts, unless: 0)
        members.sparse("nameAttempts", &nameAttempts, unless: 0)
        members.sparse("restarts", &restarts, unless: 0)
        members.sparse("digestMismatches", &digestMismatches, unless: 0)
        members.sparse("localFaults", &localFaults, unless: 0)
        members.optional("firstAttemptAt", &firstAttemptAt)
    }

    /// The progress beyond the highest kept offset that resets the backoff.
    package static let progressThreshold: Int64 = 64 * 1024

    /// Records the end of an attempt.
    ///
    /// - Parameter keptOffset: The number of bytes kept for the next attempt, 0 if there are none.
    package mutating func record(_ fault: AttemptFault, keptOffset: Int64) {
        attempts += 1
        let (passed, overflow) = keptOffset.subtractingReportingOverflow(highestOffset)
        if !overflow, passed >= Self.progressThreshold {
            highestOffset = keptOffset
            failuresSinceProgress = 1
            restarts = 0
            localFaults = 0
        } else {
            failuresSinceProgress += 1
        }
        switch fault {
        case .status, .answeredEarly: statusAttempts += 1
        case .nameDoesNotExist: nameAttempts += 1
        case .restart: restarts += 1
        case .digestMismatch: digestMismatches += 1
        case .local: localFaults += 1
        case .transport, .terminal: break
        }
    }

    /// Records a local fault outside of an attempt: before a request was sent, or after all bytes were received.
    package mutating func recordLocalFault() {
        localFaults += 1
        failuresSinceProgress += 1
    }
}
