/// A closure that waits for its connection, and the caller who waits for its result.
struct Job: Sendable {
    /// Runs the closure. Answers nobody yet: a write is answered after its commit.
    let run: @Sendable (Connection) -> Outcome
    /// Answers the caller with an error, instead of the closure's own result.
    let fail: @Sendable (any Error) -> Void

    struct Outcome {
        /// What the closure threw.
        let error: (any Error)?
        /// Answers the caller with the closure's own result.
        let answer: () -> Void
    }

    init<T: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> T, for continuation: CheckedContinuation<T, any Error>
    ) {
        run = { connection in
            do {
                let value = try body(connection)
                return Outcome(error: nil) { continuation.resume(returning: value) }
            } catch {
                return Outcome(error: error) { continuation.resume(throwing: error) }
            }
        }
        fail = { continuation.resume(throwing: $0) }
    }
}
