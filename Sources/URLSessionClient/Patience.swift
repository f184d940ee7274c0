import Wire

/// Waits while the service is unavailable or has no room for the request, longer after each consecutive failure.
package struct Patience {
    private var failures = 0
    private let limit: Int

    /// The longest wait in milliseconds that the service can request.
    private static let longestRequest: Int64 = 300_000

    /// - Parameter limit: The maximum number of consecutive waits; ten take a minute and a half, or as long as the
    ///   service requests.
    package init(limit: Int = .max) { self.limit = limit }

    /// Whether it has waited since its creation or the last success.
    package var hasWaited: Bool { failures > 0 }

    /// Records a success: the next wait is short again.
    package mutating func succeeded() { failures = 0 }

    /// Calls the service until it answers, or refuses for good.
    ///
    /// - Parameter limit: The maximum number of consecutive waits; ten take a minute and a half, or as long as the
    ///   service requests.
    package static func insist<Answer>(
        limit: Int = .max, _ call: () async throws -> Answer
    ) async throws -> Answer {
        var patience = Patience(limit: limit)
        while true {
            do { return try await call() } catch { try await patience.wait(after: error) }
        }
    }

    /// Waits before the next attempt, at least for the time that the service requests.
    ///
    /// - Throws: `error` if another attempt would fail the same way, or the limit is reached; `CancellationError`.
    package mutating func wait(after error: any Error) async throws {
        switch error {
        case let problem as Problem where !Self.isTemporary(problem.status): throw problem
        // The response of a proxy whose service is unavailable.
        case ClientError.status(let status) where Self.isTemporary(status): break
        case let error as ClientError where error != .streamEnded: throw error
        case is CancellationError: throw error
        default: break
        }
        try Task.checkCancellation()
        failures += 1
        guard failures <= limit else { throw error }
        try await Task.sleep(for: .milliseconds(pause(after: error)))
    }

    /// Milliseconds until the next attempt.
    private func pause(after error: any Error) -> Int64 {
        let own: Int64 = min(250 << min(failures, 6), 15_000)
        guard let seconds = (error as? Problem)?.retryAfter else { return own }
        return max(own, min(seconds, Self.longestRequest / 1000) * 1000)
    }

    /// Whether the same request may succeed later, including after a full disk of the service (507).
    private static func isTemporary(_ status: Int) -> Bool { [429, 502, 503, 504, 507].contains(status) }
}
