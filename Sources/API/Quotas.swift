import Base

/// Limits the requests per second of each key, by a bucket that holds one second's worth.
final class RateLimiter: Sendable {
    /// A key's remaining requests, reported with each response (draft-ietf-httpapi-ratelimit-headers-10).
    struct Allowance {
        let quota: Int
        /// Remaining whole requests.
        let remaining: Int
        let isAdmitted: Bool

        /// The window is a second, after which the bucket is full again.
        var fields: [(String, String)] {
            [("RateLimit-Policy", "\"requests\";q=\(quota);w=1"), ("RateLimit", "\"requests\";r=\(remaining);t=1")]
        }
    }

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

    /// Removes one request from the bucket of `key`, if there is one.
    func admit(_ key: String) -> Allowance {
        let now = clock.monotonic()
        return buckets.withLock { buckets in
            if buckets.count >= Self.bucketLimit { buckets = buckets.filter { now - $0.value.at < 1000 } }
            var bucket = buckets[key] ?? Bucket(tokens: perSecond, at: now)
            bucket.tokens = min(perSecond, bucket.tokens + Double(now - bucket.at) * perSecond / 1000)
            bucket.at = now
            let isAdmitted = bucket.tokens >= 1
            if isAdmitted { bucket.tokens -= 1 }
            buckets[key] = bucket
            return Allowance(quota: Int(perSecond), remaining: Int(bucket.tokens), isAdmitted: isAdmitted)
        }
    }
}

/// Counts the held requests of each key.
final class HeldRequests: Sendable {
    private let limit: Int
    private let counts = Locked<[String: Int]>([:])

    init(limit: Int) { self.limit = limit }

    var count: Int { counts.withLock { $0.values.reduce(0, +) } }

    /// Counts one more held request, until the returned value is destroyed; `nil` if the limit is reached.
    func place(of key: String) -> Hold? {
        let hasRoom = counts.withLock { counts in
            let count = counts[key] ?? 0
            guard count < limit else { return false }
            counts[key] = count + 1
            return true
        }
        guard hasRoom else { return nil }
        return Hold { [counts] in
            counts.withLock { counts in
                let left = (counts[key] ?? 1) - 1
                counts[key] = left > 0 ? left : nil
            }
        }
    }
}

/// A right that is released when the value is destroyed.
final class Hold: Sendable {
    private let release: @Sendable () -> Void

    init(release: @escaping @Sendable () -> Void) { self.release = release }

    deinit { release() }
}
