import Core

/// The positions of a list between two others, which are left out.
struct Stretch {
    var low: Int64
    var high: Int64
}

extension ListSpan {
    /// Places are given in the order of creation, so a moment is found by halving, whatever the list holds.
    private static let places = 53

    /// What is left of the list behind `cursor`, 0 for its beginning.
    ///
    /// - Parameter next: The first place at a position or above it, and when it was created.
    func stretch(
        after cursor: Int64, _ next: (Int64) throws -> (position: Int64, createdAt: Timestamp)?
    ) rethrows -> Stretch {
        func first(since time: Timestamp) throws -> Int64 {
            var (low, high) = (Int64(1), Int64(1) << Self.places)
            while low < high {
                let middle = low + (high - low) / 2
                if let (position, createdAt) = try next(middle), createdAt < time {
                    low = position + 1
                } else {
                    high = middle
                }
            }
            return low
        }
        var stretch = Stretch(low: 0, high: .max)
        if let createdAfter { stretch.low = try first(since: createdAfter + .milliseconds(1)) - 1 }
        if let createdBefore { stretch.high = try first(since: createdBefore) }
        switch order {
        case .ascending: stretch.low = max(stretch.low, cursor)
        case .descending where cursor > 0: stretch.high = min(stretch.high, cursor)
        case .descending: break
        }
        return stretch
    }
}
