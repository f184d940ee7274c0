/// The number of concurrent name look-ups.
///
/// A look-up is a thread that sleeps until the name server answers. Many of them cost little, and silent servers occupy
/// each for as long as `resolv.conf` says.
package struct LookUpLimits: Hashable, Sendable {
    package var total: Int
    /// The limit for one app, so that its slow names do not block the names of others.
    package var perPool: Int

    package init(total: Int = 192, perPool: Int = 32) {
        self.total = max(1, total)
        self.perPool = max(1, perPool)
    }
}

/// The order of name look-ups: the turn goes to the pool with the fewest look-ups in flight, then to the one served
/// longest ago, whatever the backlog. Names of a pool go in order of arrival. Pure.
struct LookUpTurns {
    /// A name whose look-up starts, and the pool that it counts for.
    struct Turn: Hashable, Sendable {
        let name: String
        let pool: Int64
    }

    private struct Queue {
        var names: [String] = []
        var underWay = 0
        var servedAt: UInt64 = 0
    }

    private let limits: LookUpLimits
    private var queues: [Int64: Queue] = [:]
    private var underWay = 0
    private var count: UInt64 = 0

    init(_ limits: LookUpLimits) { self.limits = limits }

    mutating func add(_ name: String, for pool: Int64) {
        guard queues[pool]?.names.contains(name) != true else { return }
        queues[pool, default: Queue()].names.append(name)
    }

    /// Removes a name that no exchange of this pool waits for any more.
    mutating func remove(_ name: String, of pool: Int64) {
        queues[pool]?.names.removeAll { $0 == name }
        forgetIfIdle(pool)
    }

    /// The next look-up, if there is room for one.
    mutating func next() -> Turn? {
        guard underWay < limits.total else { return nil }
        let candidates = queues.filter { !$0.value.names.isEmpty && $0.value.underWay < limits.perPool }
        let chosen = candidates.min { left, right in
            (left.value.underWay, left.value.servedAt, left.key)
                < (right.value.underWay, right.value.servedAt, right.key)
        }
        guard let pool = chosen?.key, let name = chosen?.value.names.first else { return nil }
        count += 1
        underWay += 1
        queues[pool]?.underWay += 1
        queues[pool]?.servedAt = count
        // Other pools that wait for the name share its result.
        for other in Array(queues.keys) { remove(name, of: other) }
        return Turn(name: name, pool: pool)
    }

    /// Records the end of a look-up.
    mutating func end(_ turn: Turn) {
        underWay -= 1
        queues[turn.pool]?.underWay -= 1
        forgetIfIdle(turn.pool)
    }

    mutating func removeAll() {
        for pool in Array(queues.keys) {
            queues[pool]?.names = []
            forgetIfIdle(pool)
        }
    }

    private mutating func forgetIfIdle(_ pool: Int64) {
        if let queue = queues[pool], queue.names.isEmpty, queue.underWay == 0 { queues[pool] = nil }
    }
}
