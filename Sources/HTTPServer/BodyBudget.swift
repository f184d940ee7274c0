import Base

/// Memory that all large collected bodies share.
final class BodyBudget: Sendable {
    private let left: Locked<Int>

    init(bytes: Int) { left = Locked(bytes) }

    /// What one body has of it, given back at its end.
    final class Share: Sendable {
        private let budget: BodyBudget
        private let taken = Locked(0)

        init(_ budget: BodyBudget) { self.budget = budget }

        deinit { budget.left.withLock { $0 += bytes } }

        var bytes: Int { taken.withLock { $0 } }

        /// Takes what is missing to `total`, or leaves everything as it is when there is not so much.
        func grow(to total: Int) -> Bool {
            let more = total - bytes
            let isThere = budget.left.withLock { left in
                guard left >= more else { return false }
                left -= more
                return true
            }
            if isThere { taken.withLock { $0 = total } }
            return isThere
        }
    }
}
