import Core

/// Limits a direction of one exchange to a number of bytes per second.
///
/// A debt: bytes add to it, time reduces it. A tenth of a second's worth may be borrowed, so that the loop's precision
/// costs no throughput. libcurl's own limit reads while the socket has bytes and then waits for as long as they cost,
/// and a later change of the limit cannot shorten that wait.
struct Throttle {
    private var limit: Int64?
    private var debt: Int64 = 0
    /// The time up to which the debt is reduced (monotonic ms).
    private var paid: Int64

    init(_ limit: Int64?, at now: Int64) {
        self.limit = limit.map { max(1, $0) }
        paid = now
    }

    mutating func set(_ limit: Int64?, at now: Int64) {
        pay(now)
        self.limit = limit.map { max(1, $0) }
        paid = now
        if limit == nil { debt = 0 }
    }

    /// `nil` if bytes may flow now, otherwise the time at which they may.
    mutating func wait(at now: Int64) -> Int64? {
        guard let limit else { return nil }
        pay(now)
        guard debt > limit / 10 else { return nil }
        return now + max(1, debt.multipliedSaturated(1000) / limit)
    }

    mutating func took(_ bytes: Int) {
        guard limit != nil else { return }
        debt = debt.addingSaturated(Int64(bytes))
    }

    private mutating func pay(_ now: Int64) {
        guard let limit, now > paid else { return }
        let payment = limit.multipliedSaturated(now - paid) / 1000
        guard payment > 0 else { return }
        debt = max(debt - min(payment, debt.addingSaturated(limit)), -limit / 10)
        paid = now
    }
}

extension Int64 {
    func multipliedSaturated(_ other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}
