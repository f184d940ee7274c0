package import Formats

/// Why an attempt ended without the task's result.
package enum AttemptFault: Hashable, Sendable {
    /// No route, DNS trouble, connect, TLS interrupted, reset, idle timeout, short body, HTTP/2 refused or GOAWAY.
    case transport
    /// The name service said with authority that there is no such name.
    case nameDoesNotExist
    /// An answer whose status may be one to try again.
    case status(Int, retryAfter: Duration?)
    /// A success that came before the origin had the whole body of the request.
    case answeredEarly
    /// The bytes here and those offered are not of one version: throw away and ask from 0.
    case restart
    /// All bytes arrived and their digest is not the expected one.
    case digestMismatch
    /// This machine's own: its disk, its database, what it stores.
    case local
    /// Trust, cancelled authentication, bad URL, redirect loop, policy: another attempt would end the same way.
    case terminal
}

/// What a task remembers of its attempts, stored with it.
package struct AttemptLedger: Shape {
    /// Attempts that ended, from the first try.
    package var attempts = 0
    /// Failures in a row without progress: n + 1 of the backoff `initialDelay · 2ⁿ`.
    package var failuresSinceProgress = 0
    /// The kept offset from which progress is measured; it never goes back, restarts included.
    package var highestOffset: Int64 = 0
    package var statusAttempts = 0
    package var nameAttempts = 0
    package var restarts = 0
    package var digestMismatches = 0
    /// Faults of this machine without progress between.
    package var localFaults = 0
    /// When the first attempt began; kept where a retry policy limits the time since.
    package var firstAttemptAt: Timestamp?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("attempts", &attempts)
        members.member("failuresSinceProgress", &failuresSinceProgress)
        members.member("highestOffset", &highestOffset)
        members.member("statusAttempts", &statusAttempts)
        members.member("nameAttempts", &nameAttempts)
        members.member("restarts", &restarts)
        members.member("digestMismatches", &digestMismatches)
        members.sparse("localFaults", &localFaults, unless: 0)
        members.optional("firstAttemptAt", &firstAttemptAt)
    }

    /// How far the kept offset has to pass its highest value before the backoff starts anew.
    package static let progressThreshold: Int64 = 64 * 1024

    /// Notes the end of an attempt.
    ///
    /// - Parameter keptOffset: The bytes that stay for the next attempt, 0 where none do.
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

    /// Notes a fault of this machine outside of an attempt: before a request was sent, or after all was received.
    package mutating func recordLocalFault() {
        localFaults += 1
        failuresSinceProgress += 1
    }
}
