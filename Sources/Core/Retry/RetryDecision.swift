/// The consequence of a failed attempt.
package enum RetryDecision: Hashable, Sendable {
    /// Another attempt at this time. The time may be after the resource deadline, which then ends the task first.
    case retry(at: Timestamp)
    /// The task ends: with the status if a status ended the attempt, otherwise with the attempt's error.
    case giveUp
}

/// The properties of a request that determine whether it may be repeated.
package struct RetryableRequest: Hashable, Sendable {
    package var method: String
    package var isUpload: Bool
    package var hasIdempotencyKey: Bool

    package init(method: String, isUpload: Bool, hasIdempotencyKey: Bool) {
        self.method = method
        self.isUpload = isUpload
        self.hasIdempotencyKey = hasIdempotencyKey
    }

    /// RFC 9110 section 9.2.2.
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }

    /// An upload with a response has had its effect; only an idempotent one may be repeated.
    var mayFollowStatus: Bool { !isUpload || hasIdempotencyKey || Self.isIdempotent(method) }
}

extension RetryPolicy {
    /// Decides about an attempt that ``AttemptLedger/record(_:keptOffset:)`` has recorded.
    ///
    /// - Parameters:
    ///   - jitter: A number in `0..<1`.
    ///   - deadline: When the resource timeout ends the task, or `nil`.
    package func decide(
        after fault: AttemptFault, ledger: AttemptLedger, request: RetryableRequest,
        jitter: Double, now: Timestamp, deadline: Timestamp?
    ) -> RetryDecision {
        if let limit = settings.maximumAttempts, ledger.attempts >= limit { return .giveUp }
        if let deadline, now >= deadline { return .giveUp }
        let backoff = delay(afterFailures: ledger.failuresSinceProgress, jitter: jitter)
        let decision = decide(fault, ledger, request, backoff, now, deadline)
        if let limit = settings.maximumElapsedTime, let began = ledger.firstAttemptAt, case .retry(let at) = decision {
            guard at < began + .milliseconds(Int64(limit * 1000)) else { return .giveUp }
        }
        return decision
    }

    private func decide(
        _ fault: AttemptFault, _ ledger: AttemptLedger, _ request: RetryableRequest, _ backoff: Duration,
        _ now: Timestamp, _ deadline: Timestamp?
    ) -> RetryDecision {
        switch fault {
        case .transport:
            return .retry(at: now + backoff)
        case .nameDoesNotExist:
            // Under `apple` a missing name is a regular reason to wait: only the resource timeout ends the wait.
            if self != .apple, ledger.nameAttempts >= limitOfOneKind { return .giveUp }
            return .retry(at: now + backoff)
        case .status(let status, let retryAfter):
            guard retries(status: status), ledger.statusAttempts < limitOfOneKind, request.mayFollowStatus
            else { return .giveUp }
            let at = now + max(backoff, retryAfter ?? .zero)
            // A received response is worth more than a later timeout.
            if let deadline, at >= deadline { return .giveUp }
            return .retry(at: at)
        case .answeredEarly:
            guard ledger.statusAttempts < limitOfOneKind, request.mayFollowStatus else { return .giveUp }
            return .retry(at: now + backoff)
        case .restart:
            return ledger.restarts > Self.restartLimit ? .giveUp : .retry(at: now)
        case .digestMismatch:
            return ledger.digestMismatches > 1 ? .giveUp : .retry(at: now)
        case .local:
            return ledger.localFaults >= Self.localFaultLimit
                ? .giveUp : .retry(at: now + backoff)
        case .terminal:
            return .giveUp
        }
    }

    /// The maximum number of attempts that end with a status, or with a missing name.
    private var limitOfOneKind: Int {
        settings.maximumAttempts ?? (settings.maximumElapsedTime == nil ? Self.attemptsOfOneKind : .max)
    }
}
