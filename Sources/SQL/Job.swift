/// A closure that waits for its connection, and the caller that waits for the result.
struct Job: Sendable {
    /// Runs the closure. The caller of a write receives its result later, after the commit.
    let run: @Sendable (Connection) -> Outcome
    /// Resumes the caller with an error instead of the closure's result.
    let fail: @Sendable (any Error) -> Void

    struct Outcome {
        /// The error that the closure threw.
        let error: (any Error)?
        /// Resumes the caller with the closure's result.
        let answer: () -> Void
    }

    /// - Parameter body: Returns a closure that yields the result, called after the commit of a write.
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
