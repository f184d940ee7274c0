import Base
import Core
import Store
import Transfers

extension Service {
    /// Sessions that one commit checks.
    private static let judgedAtOnce = 20
    /// The maximum pause between two checks, within which a time that another node has set is read.
    private static let longestPause = Duration.seconds(30)

    /// Records stalls of sessions, and progress that no commit has recorded, until it is cancelled.
    func watchStalls() async {
        var noted: [SessionID: Int64] = [:]
        while !Task.isCancelled {
            let (moving, shortest) = live.progress()
            let now = clock.monotonic()
            noted = noted.filter { now - $0.value < Self.longestPause.milliseconds }
            // One record per quarter of the shortest interval is enough.
            let period = min(Self.longestPause, max(.milliseconds(100), (shortest ?? Self.longestPause) / 4))
            let unnoted = moving.filter { noted[$0].map { now - $0 >= period.milliseconds } ?? true }
            var next: Timestamp?
            do {
                next = try await store.sessions.nextStallCheck()
                let isDue = nodes.isKeeper && next.map { $0 <= clock.now } ?? false
                if isDue || !unnoted.isEmpty {
                    outlet.handle(
                        try await store.sessions.judgeStalls(
                            moving: unnoted, watchedSince: startedAt, at: clock.now,
                            limit: nodes.isKeeper ? Self.judgedAtOnce : 0))
                    for session in unnoted { noted[session] = now }
                    next = try await store.sessions.nextStallCheck()
                }
                if !nodes.isKeeper { next = nil }
            } catch {
                if Store.Obstacle(error) != .away { log.warning("stalls could not be recorded", ("error", "\(error)")) }
                next = clock.now + .seconds(1)
            }
            await outlet.stalls.wait(until: next, atMost: period)
        }
    }
}
