import Base
import Core
import Store
import Transfers

/// Cancellations of all tasks of a session or an app.
extension Service {
    /// Milliseconds until a failed cancellation is repeated.
    private static let pause: Int64 = 5000

    /// Carries out the stored cancellation of a session, or of an app. After a failure, ``continueCancellations()``
    /// repeats it.
    func carryOutCancellation(of app: AppID, _ session: SessionID? = nil) async throws {
        do {
            for cancellation in try await store.tasks.cancellations(of: app) where cancellation.session == session {
                try await carryOut(cancellation)
            }
        } catch {
            unfinishedCancellations.ring()
            throw error
        }
    }

    /// Carries out the cancellations that failed calls, a former process or dead nodes have left, until it is cancelled.
    func continueCancellations() async {
        while !Task.isCancelled {
            var next: Int64?
            func note(_ error: any Error) {
                if Store.Obstacle(error) != .away { log.warning("tasks could not be cancelled", ("error", "\(error)")) }
                next = clock.monotonic() + Self.pause
            }
            do {
                // The failure of one delays no other.
                for cancellation in try await store.tasks.cancellations() {
                    do { try await carryOut(cancellation) } catch { note(error) }
                }
            } catch {
                note(error)
            }
            await unfinishedCancellations.wait(until: next)
        }
    }

    private func carryOut(_ cancellation: Cancellation) async throws {
        func cancel(in session: SessionID) async throws {
            _ = try await command(
                .cancel(reason: cancellation.reason), TaskFilter(), in: session, upTo: cancellation.newest)
        }
        if let session = cancellation.session {
            try await cancel(in: session)
        } else {
            try await forEachSession(of: cancellation.app) { try await cancel(in: $0.id) }
        }
        try await store.tasks.finish(cancellation)
    }
}
