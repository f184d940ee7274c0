import Testing

@testable import Core

@Suite struct RetryPolicyTests {
    static let get = RetryableRequest(method: "GET", isUpload: false, hasIdempotencyKey: false)

    func ledger(after faults: [AttemptFault], kept: Int64 = 0) -> AttemptLedger {
        var ledger = AttemptLedger()
        for fault in faults { ledger.record(fault, keptOffset: kept) }
        return ledger
    }

    func decide(
        _ policy: RetryPolicy, _ faults: [AttemptFault], request: RetryableRequest = get, jitter: Double = 0.5,
        deadline: Timestamp? = nil
    ) -> RetryDecision {
        policy.decide(
            after: faults.last!, ledger: ledger(after: faults), request: request, jitter: jitter, now: now,
            deadline: deadline)
    }

    @Test(arguments: [(1, 500), (2, 1000), (3, 2000), (10, 256_000), (11, 300_000), (1000, 300_000)] as [(Int, Int64)])
    func `The backoff doubles to ten minutes and is jittered in full`(_ failures: Int, _ milliseconds: Int64) {
        #expect(RetryPolicy.robust.delay(afterFailures: failures, jitter: 0.5) == .milliseconds(milliseconds))
        #expect(RetryPolicy.apple.delay(afterFailures: failures, jitter: 0) == .zero)
    }

    @Test func `Extreme settings give finite delays`() {
        let odd = RetryPolicy.custom(.init(initialDelay: .infinity, maximumDelay: .infinity))
        #expect(odd.delay(afterFailures: 9, jitter: 1) == .seconds(315_360_000))
        let none = RetryPolicy.custom(.init(initialDelay: 0, maximumDelay: 10))
        #expect(none.delay(afterFailures: 9, jitter: 0.9) == .seconds(9))
        let negative = RetryPolicy.custom(.init(initialDelay: -5, maximumDelay: -1))
        #expect(negative.delay(afterFailures: 2, jitter: 0.9) == .milliseconds(90))
    }

    @Test func `No attempt begins after the policy's time limit`() {
        let policy = RetryPolicy.custom(.init(maximumElapsedTime: 10))
        func decide(_ began: Timestamp?) -> RetryDecision {
            var ledger = ledger(after: [.transport])
            ledger.firstAttemptAt = began
            return policy.decide(
                after: .transport, ledger: ledger, request: Self.get, jitter: 0.5, now: now, deadline: nil)
        }
        #expect(decide(nil) == .retry(at: .after(0.5)))
        #expect(decide(.after(-9)) == .retry(at: .after(0.5)))
        #expect(decide(.after(-9.5)) == .giveUp)
    }

    @Test func `Transport faults are retried until the deadline`() {
        let many = Array(repeating: AttemptFault.transport, count: 1000)
        #expect(decide(.apple, many) == .retry(at: .after(300)))
        #expect(decide(.robust, many, deadline: .after(1)) == .retry(at: .after(300)))
        #expect(decide(.robust, many, deadline: now) == .giveUp)
    }

    @Test func `Faults of this machine have a limit, which progress resets`() {
        let limit = RetryPolicy.localFaultLimit
        let most = Array(repeating: AttemptFault.local, count: limit - 1)
        #expect(decide(.apple, most) == .retry(at: .after(300)))
        #expect(decide(.apple, most + [.local]) == .giveUp)
        #expect(decide(.apple, most + [.transport, .local]) == .giveUp)
        var renewed = ledger(after: most)
        renewed.record(.transport, keptOffset: AttemptLedger.progressThreshold)
        renewed.recordLocalFault()
        #expect(renewed.localFaults == 1 && renewed.attempts == limit)
        let twice = RetryPolicy.custom(.init(maximumAttempts: 2))
        #expect(decide(twice, [.local, .local]) == .giveUp)
    }

    @Test(arguments: [408, 425, 429, 500, 502, 503, 504])
    func `The robust policy tries a status five times in all`(_ status: Int) {
        let fault = AttemptFault.status(status, retryAfter: nil)
        let four = Array(repeating: fault, count: 4)
        #expect(decide(.robust, four) == .retry(at: .after(4)))
        #expect(decide(.robust, four + [fault]) == .giveUp)
        #expect(decide(.apple, [fault]) == .giveUp)
    }

    @Test(arguments: [200, 301, 400, 401, 404, 501, 505])
    func `Other statuses are responses`(_ status: Int) {
        #expect(decide(.robust, [.status(status, retryAfter: nil)]) == .giveUp)
    }

    @Test func `Retry-After delays a retry and never hastens it`() {
        #expect(
            decide(.robust, [.status(503, retryAfter: .seconds(90))]) == .retry(at: .after(90)))
        #expect(
            decide(.robust, Array(repeating: .status(503, retryAfter: .seconds(1)), count: 4))
                == .retry(at: .after(4)))
        #expect(decide(.robust, [.status(503, retryAfter: .seconds(90))], deadline: .after(90)) == .giveUp)
    }

    @Test func `A non-idempotent upload is retried after a status only with its key`() {
        let busy = [AttemptFault.status(503, retryAfter: nil)]
        func upload(_ method: String, key: Bool) -> RetryableRequest {
            RetryableRequest(method: method, isUpload: true, hasIdempotencyKey: key)
        }
        #expect(decide(.robust, busy, request: upload("POST", key: false)) == .giveUp)
        #expect(decide(.robust, busy, request: upload("PATCH", key: false)) == .giveUp)
        #expect(decide(.robust, busy, request: upload("POST", key: true)) != .giveUp)
        #expect(decide(.robust, busy, request: upload("PUT", key: false)) != .giveUp)
        #expect(decide(.robust, [.transport], request: upload("POST", key: false)) != .giveUp)
    }

    @Test(arguments: [RetryPolicy.robust, .apple])
    func `An upload with an early success is tried five times if a repetition is safe`(_ policy: RetryPolicy) {
        let early = Array(repeating: AttemptFault.answeredEarly, count: 5)
        func upload(_ method: String, key: Bool = false) -> RetryableRequest {
            RetryableRequest(method: method, isUpload: true, hasIdempotencyKey: key)
        }
        #expect(decide(policy, early.dropLast(), request: upload("PUT")) == .retry(at: .after(4)))
        #expect(decide(policy, early, request: upload("PUT")) == .giveUp)
        #expect(decide(policy, [.answeredEarly], request: upload("POST")) == .giveUp)
        #expect(decide(policy, [.answeredEarly], request: upload("POST", key: true)) != .giveUp)
    }

    @Test func `An unknown host name fails after five attempts, but not under the apple policy`() {
        let five = Array(repeating: AttemptFault.nameDoesNotExist, count: 5)
        #expect(decide(.robust, five.dropLast()) != .giveUp)
        #expect(decide(.robust, five) == .giveUp)
        #expect(decide(.apple, five) != .giveUp)
    }

    @Test func `maximumAttempts counts every attempt from the first`() {
        let policy = RetryPolicy.custom(.init(statusCodes: [418], maximumAttempts: 3, initialDelay: 2, maximumDelay: 3))
        #expect(
            decide(policy, [.transport, .status(418, retryAfter: nil)])
                == .retry(at: .after(1.5)))
        #expect(decide(policy, [.transport, .transport, .transport]) == .giveUp)
        #expect(decide(policy, [.status(503, retryAfter: nil)]) == .giveUp)
        let patient = RetryPolicy.custom(.init(maximumAttempts: 9))
        #expect(decide(patient, Array(repeating: .status(503, retryAfter: nil), count: 8)) != .giveUp)
        #expect(decide(.custom(.init(maximumAttempts: 1)), [.restart]) == .giveUp)
    }

    @Test func `Bytes of another version are discarded at most three times`() {
        let three = Array(repeating: AttemptFault.restart, count: 3)
        #expect(decide(.robust, three) == .retry(at: now))
        #expect(decide(.robust, three + [.restart]) == .giveUp)
        #expect(decide(.apple, [.digestMismatch]) == .retry(at: now))
        #expect(decide(.apple, [.digestMismatch, .transport, .digestMismatch]) == .giveUp)
        #expect(decide(.robust, [.terminal]) == .giveUp)
    }

    @Test func `The count restarts only after 64 KiB of progress`() {
        var ledger = AttemptLedger()
        for offset in [0, 65_535, 65_535] as [Int64] { ledger.record(.transport, keptOffset: offset) }
        #expect(ledger.failuresSinceProgress == 3)
        ledger.record(.transport, keptOffset: 65_536)
        #expect(ledger.failuresSinceProgress == 1)
        #expect(ledger.highestOffset == 65_536)
        ledger.record(.restart, keptOffset: 0)
        ledger.record(.transport, keptOffset: 65_536)
        #expect(ledger.failuresSinceProgress == 3)
        #expect(ledger.restarts == 1)
        ledger.record(.transport, keptOffset: 200_000)
        #expect(ledger.failuresSinceProgress == 1)
        #expect(ledger.restarts == 0)
        #expect(ledger.attempts == 7)
        ledger.record(.transport, keptOffset: .min)
        #expect(ledger.failuresSinceProgress == 2)
    }

    @Test(
        arguments: [
            ("5", 5), ("0", 1), (" 7\t", 7), ("86401", 86_400), ("99999999999999999999", 86_400),
            ("Tue, 01 Dec 2026 00:01:30 GMT", 90), ("Fri, 31 Dec 1999 23:59:59 GMT", 1),
            ("Wed, 01 Jan 2100 00:00:00 GMT", 86_400),
        ] as [(String, Int64)])
    func `Retry-After lies between a second and a day`(_ value: String, _ seconds: Int64) {
        #expect(RetryAfter.parse(value, now: now) == .seconds(seconds))
    }

    @Test(arguments: ["172800", "99999999999999999999", "Wed, 01 Jan 2100 00:00:00 GMT"])
    func `Retry-After has the limit of its caller`(_ value: String) {
        #expect(RetryAfter.parse(value, now: now, atMost: .seconds(172_800)) == .seconds(172_800))
    }

    @Test(arguments: ["", "-5", "+5", "1.5", "soon", "5 s", "0x10", "٥"])
    func `An invalid Retry-After is ignored`(_ value: String) {
        #expect(RetryAfter.parse(value, now: now) == nil)
        #expect(RetryAfter.parse(HTTPFields(), now: now) == nil)
    }
}
