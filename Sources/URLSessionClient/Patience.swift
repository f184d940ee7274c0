import Wire

/// Waits while the service cannot be reached or has no room for the request, longer with each time in a row.
package struct Patience {
    private var failures = 0
    private let limit: Int

    /// - Parameter limit: How many times in a row it waits; ten are a minute and a half.
    package init(limit: Int = .max) { self.limit = limit }

    /// Whether it has waited since it began, or since the last answer.
    package var hasWaited: Bool { failures > 0 }

    /// It answered: the next wait is short again.
    package mutating func succeeded() { failures = 0 }

    /// Calls the service until it answers, or refuses for good.
    ///
    /// - Parameter limit: How many times in a row it waits; ten are a minute and a half.
    package static func insist<Answer>(
        limit: Int = .max, _ call: () async throws -> Answer
    ) async throws -> Answer {
        var patience = Patience(limit: limit)
        while true {
            do { return try await call() } catch { try await patience.wait(after: error) }
        }
    }

    /// Waits before the next try.
    ///
    /// - Throws: `error` when another try would end the same way, or there were enough; `CancellationError`.
    package mutating func wait(after error: any Error) async throws {
        switch error {
        case let problem as Problem where !Self.isTemporary(problem.status): throw problem
        // Of a proxy whose service is away.
        case ClientError.status(let status) where Self.isTemporary(status): break
        case let error as ClientError where error != .streamEnded: throw error
        case is CancellationError: throw error
        default: break
        }
        try Task.checkCancellation()
        failures += 1
        guard failures <= limit else { throw error }
        try await Task.sleep(for: .milliseconds(min(250 << min(failures, 6), 15_000)))
    }

    /// Whether the same request may be answered otherwise later, the full disk of the service (507) included.
    private static func isTemporary(_ status: Int) -> Bool { [429, 502, 503, 504, 507].contains(status) }
}
