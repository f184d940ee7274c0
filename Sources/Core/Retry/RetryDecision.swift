/// What follows a broken attempt.
package enum RetryDecision: Hashable, Sendable {
    /// Another attempt at that moment. It may lie behind the resource deadline, which then ends the task first.
    case retry(at: Timestamp)
    /// The task ends: with its status where a status ended the attempt, else with the attempt's error.
    case giveUp
}

/// What of a request decides whether it may be sent again.
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

    /// An upload that was answered has had its effect; only an idempotent one may have it again.
    var mayFollowStatus: Bool { !isUpload || hasIdempotencyKey || Self.isIdempotent(method) }
}

extension RetryPolicy {
    /// Decides what follows an attempt that ``AttemptLedger/record(_:keptOffset:)`` has noted already.
    ///
    /// - Parameters:
    ///   - jitter: A number in `0..<1`.
    ///   - deadline: When the resource timeout ends the task, or nil.
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
            // Under `apple` a missing name is one more reason to wait: the resource timeout alone ends it.
            if self != .apple, ledger.nameAttempts >= limitOfOneKind { return .giveUp }
            return .retry(at: now + backoff)
        case .status(let status, let retryAfter):
            guard retries(status: status), ledger.statusAttempts < limitOfOneKind, request.mayFollowStatus
            else { return .giveUp }
            let at = now + max(backoff, retryAfter ?? .zero)
            // An answer in hand is worth more than a timeout to come.
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

    /// Attempts that may end with a status, or with a missing name.
    private var limitOfOneKind: Int {
        settings.maximumAttempts ?? (settings.maximumElapsedTime == nil ? Self.attemptsOfOneKind : .max)
    }
}
