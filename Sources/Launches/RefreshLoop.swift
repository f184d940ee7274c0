import Base
import Core
import Store

/// Starts due fetches under good conditions.
struct RefreshLoop: Sendable {
    let store: Store
    let settings: LaunchSettings
    let bell: Doorbell
    let clock: Clock
    let log: Log
    let carryOut: @Sendable (Aftermath) -> Void

    /// The longest wait, because conditions may change without a ring.
    private static let longestWait: Int64 = 60_000
    private static let fetchesInTurn = 100

    func run() async throws {
        while !Task.isCancelled {
            var pause = Self.longestWait
            do {
                pause = try await turn()
            } catch {
                if Store.Obstacle(error) != .away {
                    log.error("background refresh could not be read or stored", ("error", "\(error)"))
                }
                pause = 1000
            }
            await bell.wait(until: clock.monotonic() + pause)
        }
    }

    /// - Returns: The wait in milliseconds.
    private func turn() async throws -> Int64 {
        guard settings.maySend() else { return Self.longestWait }
        let now = clock.time
        guard let next = try await store.apps.nextFetchTime() else { return Self.longestWait }
        guard next <= now else { return min((next - now).milliseconds, Self.longestWait) }
        let verdict = try await store.apps.conditions().conditions.judge(.fetch, load: settings.load(), at: now)
        if case .wait = verdict {
            let until = verdict.until.map { max(0, ($0 - now).milliseconds) } ?? Self.longestWait
            return min(max(until, 1000), Self.longestWait)
        }
        carryOut(try await store.apps.beginDueFetches(at: now, limit: Self.fetchesInTurn))
        return 0
    }
}
