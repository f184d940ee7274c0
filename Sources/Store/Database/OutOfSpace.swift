import SQL

extension Store {
    /// Whether a verb failed because the database had no room left: nothing of it was done, and it can be tried again.
    package static func isOutOfSpace(_ error: any Error) -> Bool {
        (error as? SQLError)?.isFull ?? false
    }
}
