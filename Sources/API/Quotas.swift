import Base

/// How many requests a second each key may make: a bucket of one second's worth for each.
final class RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Int64
    }

    private static let bucketLimit = 10_000

    private let perSecond: Double
    private let clock: Clock
    private let buckets = Locked<[String: Bucket]>([:])

    init(perSecond: Int, clock: Clock) {
        self.perSecond = Double(max(1, perSecond))
        self.clock = clock
    }

    /// Takes one request out of the bucket of `key`; false when it is empty.
    func admit(_ key: String) -> Bool {
        let now = clock.monotonic()
        return buckets.withLock { buckets in
            if buckets.count >= Self.bucketLimit { buckets = buckets.filter { now - $0.value.at < 1000 } }
            var bucket = buckets[key] ?? Bucket(tokens: perSecond, at: now)
            bucket.tokens = min(perSecond, bucket.tokens + Double(now - bucket.at) * perSecond / 1000)
            bucket.at = now
            let isAdmitted = bucket.tokens >= 1
            if isAdmitted { bucket.tokens -= 1 }
            buckets[key] = bucket
            return isAdmitted
        }
    }
}

/// How many requests of each key wait for something.
final class HeldRequests: Sendable {
    private let limit: Int
    private let counts = Locked<[String: Int]>([:])

    init(limit: Int) { self.limit = limit }

    /// Counts one more; false when there are too many already.
    func begin(_ key: String) -> Bool {
        counts.withLock { counts in
            let count = counts[key] ?? 0
            guard count < limit else { return false }
            counts[key] = count + 1
            return true
        }
    }

    func end(_ key: String) {
        counts.withLock { counts in
            let left = (counts[key] ?? 1) - 1
            counts[key] = left > 0 ? left : nil
        }
    }
}
