import Base
package import Core
import Store
import Transfers

extension Service {
    package func events(of id: SessionID, after: Int64?, limit: Int) async throws -> EventPage {
        try await store.sessions.events(of: id, after: after, limit: limit)
    }

    /// Events after a number. Waits for one until the monotonic `deadline` (ms), and attaches meanwhile.
    ///
    /// - Parameter isGone: Whether the client has disconnected; called after each wake.
    package func waitForEvents(
        of id: SessionID, after: Int64?, limit: Int, until deadline: Int64, isGone: @escaping @Sendable () -> Bool
    ) async throws -> EventPage {
        try await attached(to: id, .wait) {
            let watch = hub.sessions.watch(id)
            while true {
                let page = try await store.sessions.events(of: id, after: after, limit: limit)
                if !page.events.isEmpty || clock.monotonic() >= deadline || isGone() || isDraining { return page }
                _ = await watch.wait(until: deadline)
            }
        }
    }

    package func acknowledge(
        through seq: Int64, epoch: Int64?, in id: SessionID, ifRevision revision: Int64?
    ) async throws -> SessionRecord {
        let (session, aftermath) = try await store.sessions.acknowledge(
            through: seq, epoch: epoch, in: id, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        return session
    }

    /// Opens a stream's source of events; the caller closes it.
    package func openFeed(of id: SessionID) -> EventFeed { EventFeed(self, id) }
}

/// The source of one event stream: stored events in order, then live events.
///
/// Only a few live events are buffered for a stream: stored events are read when the stream can send them.
package final class EventFeed: Sendable {
    /// Milliseconds between two samples of the progress of transfers.
    private static let samplingPeriod: Int64 = 500

    private let service: Service
    private let session: SessionID
    private let watch: Broadcast<SessionID>.Watch
    private let feed: (number: UInt64, buffer: Locked<[LiveEvent]>)
    private let samples = Locked<[TaskID: LiveState.Sample]>([:])

    init(_ service: Service, _ session: SessionID) {
        self.service = service
        self.session = session
        watch = service.hub.sessions.watch(session)
        feed = service.hub.open(session)
    }

    deinit { service.hub.close(feed.number, of: session) }

    /// Stored events after a number; empty if there are none.
    ///
    /// - Parameter maximumBytes: The page ends with the event that reaches this size.
    package func kept(after seq: Int64?, limit: Int, maximumBytes: Int) async throws -> EventPage {
        try await service.store.sessions.events(of: session, after: seq, limit: limit, maximumBytes: maximumBytes)
    }

    /// Live events since the last call, with the progress of the transfers that moved.
    package func live() async -> [LiveEvent] {
        var events = await withoutFinished(feed.buffer.withLock { $0.takeAll() })
        let current = service.nodes.samples(of: session).merging(service.live.samples(of: session)) { $1 }
        let moved = samples.withLock { samples in
            let moved = current.filter { samples[$0.key] != $0.value }
                .map { (task: $0.key, before: samples[$0.key], now: $0.value) }
            samples = current
            return moved
        }
        for (task, before, now) in moved {
            guard let record = try? await service.store.tasks.read(task), record.state == .running,
                service.live.sample(task) != nil || service.nodes.samples(of: session)[task] != nil
            else { continue }
            events += Self.messages(record, before, now, at: service.clock.now)
        }
        return events
    }

    /// Drops events of tasks that have completed: nothing may follow their last event.
    private func withoutFinished(_ events: [LiveEvent]) async -> [LiveEvent] {
        guard !events.isEmpty else { return events }
        let unfinished = try? await service.store.tasks.unfinished(among: Set(events.map(\.task)))
        return events.filter { unfinished?.contains($0.task) ?? false }
    }

    private static func messages(
        _ task: TaskRecord, _ before: LiveState.Sample?, _ now: LiveState.Sample, at time: Timestamp
    ) -> [LiveEvent] {
        var payloads: [LiveEvent.Payload] = []
        if now.sent > before?.sent ?? 0 {
            payloads.append(
                .didSendBodyData(
                    sent: now.sent - (before?.sent ?? 0), total: now.sent,
                    expected: task.specification.expectedBytesToSend))
        }
        if now.received > before?.received ?? 0, task.specification.kind == .download {
            payloads.append(
                .didWriteData(
                    written: now.received - (before?.received ?? 0), total: now.received, expected: now.expected))
        }
        return payloads.map { LiveEvent($0, of: task.id, task.number, task.specification, at: time) }
    }

    /// Waits until an event may be available, at most until the monotonic `deadline` (ms).
    package func wait(until deadline: Int64) async {
        let now = service.clock.monotonic()
        let isBusy = !service.live.samples(of: session).isEmpty
        _ = await watch.wait(until: isBusy ? min(deadline, now + Self.samplingPeriod) : deadline)
    }

    /// Wakes the stream, for instance because its client disconnected.
    package func wake() { service.hub.sessions.signal(session) }
}
