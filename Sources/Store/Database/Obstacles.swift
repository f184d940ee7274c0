import SQL

extension Store {
    /// What was in a verb's way: nothing of it was done, and it can be tried again.
    package enum Obstacle: Sendable {
        /// The database had no room left.
        case noRoom
        /// The database's server was out of reach. The log is told of that once, by the database.
        case away
        /// Others held what was wanted, or a read took too long.
        case busy

        /// Nil where another try would end the same way.
        package init?(_ error: any Error) {
            guard let error = error as? SQLError else { return nil }
            if error.isFull {
                self = .noRoom
            } else if error.code == .unreachable {
                self = .away
            } else if error.isBusy || error.isInterrupted {
                self = .busy
            } else {
                return nil
            }
        }
    }
}
