import SQL

extension Store {
    /// The reason for which a store operation failed without effect and can be retried.
    package enum Obstacle: Sendable {
        /// The database had no space left.
        case noRoom
        /// The database's server was unreachable. The database logs this once.
        case away
        /// Other writers held the rows, or a read exceeded its time limit.
        case busy

        /// `nil` if a retry would fail in the same way.
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
