import Core
import SQL

/// The positions of a list between two bounds, which are excluded.
struct Stretch {
    var low: Int64
    var high: Int64
}

extension ListSpan {
    /// Positions ascend with the time of creation, so a binary search finds a time, whatever the length of the list.
    private static let places = 53

    /// The part of the list after `cursor`; 0 is its beginning.
    ///
    /// - Parameter next: Returns the first position at or above a given one, and its time of creation.
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

extension Connection {
    /// The first position at or above a given one, and its time of creation, by a statement with these two columns.
    func positions(_ sql: StaticString) -> (Int64) throws -> (position: Int64, createdAt: Timestamp)? {
        { place in try self.first(sql, place) { ($0.integer(0), $0.time("created_at")) } }
    }
}
