package import Base
package import Core

/// Wakes held requests that wait for a session's events or a task's end, and passes live events to open streams.
package final class EventHub: Sendable {
    /// Limits of the live events buffered for a slow stream, by number and by bytes. The oldest are dropped.
    private static let buffered = 256
    static let bufferedBytes = 32 * 1024

    package let sessions: Broadcast<SessionID>
    package let tasks: Broadcast<TaskID>
    private let feeds = Locked<[SessionID: [UInt64: Locked<[LiveEvent]>]]>([:])
    private let lastFeed = Locked<UInt64>(0)

    package init(clock: Clock) {
        sessions = Broadcast(clock: clock)
        tasks = Broadcast(clock: clock)
    }

    /// Whether the session has an open stream, so that live events are worth creating.
    package func hasStreams(_ session: SessionID) -> Bool { feeds.withLock { $0[session] != nil } }

    /// The sessions with open streams.
    package var streamed: [SessionID] { feeds.withLock { Array($0.keys) } }

    package func publish(_ event: LiveEvent, to session: SessionID) {
        let buffers = buffers(of: session)
        guard !buffers.isEmpty else { return }
        for buffer in buffers {
            buffer.withLock { events in
                events.append(event)
                var bytes = events.reduce(0) { $0 + $1.size }
                while events.count > 1, events.count > Self.buffered || bytes > Self.bufferedBytes {
                    bytes -= events.removeFirst().size
                }
            }
        }
        sessions.signal(session)
    }

    /// Drops the live events of a task whose last events are about to be stored: none may follow them.
    func silence(_ task: TaskID, in session: SessionID) {
        for buffer in buffers(of: session) { buffer.withLock { $0.removeAll { $0.task == task } } }
    }

    private func buffers(of session: SessionID) -> [Locked<[LiveEvent]>] {
        feeds.withLock { feeds in feeds[session].map { Array($0.values) } ?? [] }
    }

    /// Opens a stream's feed of live events, until ``close(_:of:)``.
    package func open(_ session: SessionID) -> (number: UInt64, buffer: Locked<[LiveEvent]>) {
        let number = lastFeed.withLock { last in
            last += 1
            return last
        }
        let buffer = Locked<[LiveEvent]>([])
        feeds.withLock { $0[session, default: [:]][number] = buffer }
        return (number, buffer)
    }

    package func close(_ number: UInt64, of session: SessionID) {
        feeds.withLock { feeds in
            feeds[session]?[number] = nil
            if feeds[session]?.isEmpty == true { feeds[session] = nil }
        }
    }
}
