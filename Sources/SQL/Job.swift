/// A closure that waits for its connection, and the caller who waits for its result.
struct Job: Sendable {
    /// Runs the closure. The caller is answered later, since a write is answered after its commit.
    let run: @Sendable (Connection) -> Outcome
    /// Answers the caller with an error, instead of the closure's own result.
    let fail: @Sendable (any Error) -> Void

    struct Outcome {
        /// What the closure threw.
        let error: (any Error)?
        /// Answers the caller with the closure's own result.
        let answer: () -> Void
    }

    /// - Parameter body: Answers what gives its result, which is asked for after a write's commit.
    init<T: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> () throws -> T,
        for continuation: CheckedContinuation<T, any Error>
    ) {
        run = { connection in
            do {
                let result = try body(connection)
                return Outcome(error: nil) { continuation.resume(with: Result(catching: result)) }
            } catch {
                return Outcome(error: error) { continuation.resume(throwing: error) }
            }
        }
        fail = { continuation.resume(throwing: $0) }
    }
}
