import Base
import Core
import Glibc
import Store
import TransferEngine

extension Service {
    // MARK: Relaunching

    /// Asks the launch rule again when the grace of a client that left is over.
    func watchLaunchTimes() async throws {
        try await checkAllSessionsAfterStart()
        while !Task.isCancelled {
            let (due, next) = relauncher.takeDue(at: clock.now, limit: 256)
            if !due.isEmpty {
                do {
                    outlet.handle(try await store.askLaunchRules(of: due, at: clock.now))
                } catch {
                    log.error("launches could not be stored", ("error", "\(error)"))
                    for session in due { relauncher.check(session, at: clock.now) }
                    try? await Task.sleep(for: .seconds(1))
                }
                continue
            }
            let delay = next.map { max(1, min(($0 - clock.now).milliseconds, 60_000)) } ?? 60_000
            _ = await relauncher.bell.wait(until: clock.monotonic() + delay)
        }
    }

    /// After a start nobody is attached and every grace begins anew.
    private func checkAllSessionsAfterStart() async throws {
        let time = clock.now + settings.detachGrace
        var cursor = SessionID(0)
        while true {
            let sessions = try await store.unacknowledgedSessions(after: cursor, limit: 1000)
            for session in sessions { relauncher.check(session, at: time) }
            guard sessions.count == 1000, let last = sessions.last else { return }
            cursor = last
        }
    }

    // MARK: Keeping house

    /// Removes files nobody needs and rows that are no longer kept, and watches the disk.
    func sweep() async throws {
        try await removeOrphans()
        var nextSweep = clock.monotonic()
        while !Task.isCancelled {
            await removeFiles()
            if clock.monotonic() >= nextSweep {
                let hasMore = await sweepOnce()
                nextSweep = clock.monotonic() + (hasMore ? 50 : 5000)
            }
            _ = await janitorInbox.bell.wait(until: nextSweep)
        }
    }

    private func sweepOnce() async -> Bool {
        do {
            let couldWrite = gauge.hasRoom
            try await measureDisk()
            if gauge.hasRoom && !couldWrite { inbox.tell(.queued) }
            if conditions.note(load: settings.load()) { inbox.tell(.queued) }
            let now = clock.now
            let contents = try await store.expireContents(at: now, limit: 500)
            if contents.unacknowledged > 0 {
                meters.contentsDropped.add(Int64(contents.unacknowledged))
                log.warning("contents expired unacknowledged", ("contents", contents.unacknowledged))
            }
            outlet.handle(contents.aftermath)
            let swept = try await store.sweep(at: now, limit: 500)
            outlet.handle(swept.aftermath)
            attendance.prune(olderThan: .seconds(3600))
            return swept.hasMore || contents.expired == 500
        } catch {
            log.warning("housekeeping failed", ("error", "\(error)"))
            return false
        }
    }

    private func removeFiles() async {
        let (files, tasks) = janitorInbox.take()
        do {
            for task in tasks where try await !store.isNeeded(file: folder.partial(task)) {
                try? await engine.disk.remove(folder.absolute(folder.partial(task)))
            }
            for file in files { try? await engine.disk.remove(folder.absolute(file)) }
            if !files.isEmpty { try await store.forgetDiscardedFiles(files) }
        } catch {
            log.warning("files could not be removed", ("error", "\(error)"))
        }
    }

    /// Removes files that a crash left between their making and the commit that tells of them.
    ///
    /// Files of this run are about to be told of: only what is older is looked at.
    private func removeOrphans() async throws {
        for relative in DataFolder.folders {
            for name in (try? await engine.disk.list(folder.absolute(relative))) ?? [] {
                let path = "\(relative)/\(name)"
                guard !DataFolder.folders.contains(path), try await !store.isNeeded(file: path),
                    let changedAt = try? await engine.disk.changedAt(folder.absolute(path)), changedAt < startedAt
                else { continue }
                try? await engine.disk.remove(folder.absolute(path))
            }
        }
        var noted = try await store.discardedFiles(limit: 1000)
        while !noted.isEmpty {
            for file in noted { try? await engine.disk.remove(folder.absolute(file)) }
            try await store.forgetDiscardedFiles(noted)
            noted = try await store.discardedFiles(limit: 1000)
        }
    }

}

extension DiskQueue {
    /// Makes the folders of a data folder that are not there yet.
    func prepare(_ folder: DataFolder) async throws {
        let paths = (["partial", "contents", "bodies"] + DataFolder.folders).map(folder.absolute)
        try await run { () throws(DiskError) in
            for path in paths where mkdir(path, 0o700) != 0 && errno != EEXIST {
                throw DiskError("mkdir", errno: errno)
            }
        }
    }
}
