import SQL

extension Store {
    /// Whether a verb failed because the database had no room left: nothing of it was done, and it can be tried again.
    package static func isOutOfSpace(_ error: any Error) -> Bool {
        (error as? SQLError)?.isFull ?? false
    }

    /// Whether a verb failed because the database's server was away or too busy, or it took too long: nothing of it was done, and it can be
    /// tried again.
    package static func isUnavailable(_ error: any Error) -> Bool {
        guard let error = error as? SQLError else { return false }
        return (error.isPassing || error.isInterrupted) && !error.isFull
    }

    /// Whether a verb failed because the database's server was away. The log is told of that once, by the database.
    package static func isAway(_ error: any Error) -> Bool { (error as? SQLError)?.code == .unreachable }

    /// Whether nothing of a verb was done, and it can be tried again.
    package static func isPassing(_ error: any Error) -> Bool { (error as? SQLError)?.isPassing ?? false }
}
