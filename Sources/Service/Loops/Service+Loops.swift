import Base
import Core
import Store
import Transfers

extension Service {
    // MARK: Relaunching

    /// Evaluates the launch rule of a session when the grace period after the last detachment ends.
    func watchLaunchTimes() async throws {
        // After a start no client is attached, and every grace period restarts.
        try await Store.insist { try await checkAllSessions(at: clock.now + settings.detachGrace) }
        while !Task.isCancelled {
            let (due, next) = relauncher.takeDue(at: clock.now, limit: 64)
            if !due.isEmpty {
                do {
                    outlet.handle(try await store.launches.askRules(of: due, at: clock.now))
                } catch {
                    if Store.Obstacle(error) != .away {
                        log.error("launches could not be stored", ("error", "\(error)"))
                    }
                    for session in due { relauncher.check(session, at: clock.now) }
                    try? await Task.sleep(for: .seconds(1))
                }
                continue
            }
            let delay = next.map { max(1, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
            _ = await relauncher.bell.wait(until: clock.monotonic() + delay)
        }
    }

    /// Schedules the launch rule of all sessions with unacknowledged events.
    func checkAllSessions(at time: Timestamp) async throws {
        var cursor = SessionID(0)
        while true {
            let sessions = try await store.sessions.unacknowledged(after: cursor, limit: 1000)
            for session in sessions { relauncher.check(session, at: time) }
            guard sessions.count == 1000, let last = sessions.last else { return }
            cursor = last
        }
    }

    // MARK: Janitor

    /// Rows that one step of a chore removes or changes. No other write waits for the step longer than a few
    /// milliseconds.
    private static let rowsAtOnce = 400
    /// Milliseconds between two rounds of the janitor.
    private static let roundInterval: Int64 = 5000

    /// Removes useless files, and rows whose retention has ended.
    ///
    /// Runs all that is due in short steps, alternating between chores, so that other writes run in between.
    func keepHouse() async throws {
        var failed = try await Store.insist { try await removeOrphans() }
        var due: [Chore] = []
        var share = WriterShare()
        var nextRound = clock.monotonic()
        while !Task.isCancelled {
            let errands = await run(outlet.janitor.take())
            share.leaveOut(errands.writes)
            failed += errands.failed
            if clock.monotonic() >= nextRound {
                lookAround()
                let again = await run(failed)
                share.leaveOut(again.writes)
                failed = again.failed
                due = nodes.isKeeper ? Chore.allCases : []
                nextRound = clock.monotonic() + Self.roundInterval
            }
            guard !due.isEmpty else {
                _ = await outlet.janitor.bell.wait(until: nextRound)
                continue
            }
            let chore = due.removeFirst()
            guard let cleaning = await clean(chore) else { continue }
            if cleaning.hasMore { due.append(chore) }
            let rest = share.rest(
                after: cleaning.duration, writes: store.performedWrites, at: clock.monotonic())
            if rest > .zero { try? await Task.sleep(for: rest) }
        }
    }

    /// - Returns: Nil if it failed: the chore is tried again in the next round.
    private func clean(_ chore: Chore) async -> Cleaning? {
        do {
            let cleaning = try await store.upkeep.clean(chore, at: clock.now, rows: Self.rowsAtOnce)
            outlet.handle(cleaning.aftermath)
            if cleaning.aftermath.unreadContents > 0 {
                log.warning("contents expired unacknowledged", ("contents", cleaning.aftermath.unreadContents))
            }
            return cleaning
        } catch {
            if Store.Obstacle(error) != .away { log.warning("a chore of the janitor failed", ("error", "\(error)")) }
            return nil
        }
    }

    private func lookAround() {
        if conditions.note(load: settings.load()) { inbox.tell(.queued) }
        attendance.prune(olderThan: .seconds(3600))
    }
}
