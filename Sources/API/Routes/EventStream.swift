import Base
import Core
import HTTPServer
import Service
import Wire
import WireMapping

/// One stream of server-sent events: stored ones in order with their numbers, live ones in between without a number.
struct EventStream: Sendable {
    let call: Call
    let session: SessionRecord
    /// Whether the client attaches. A client that only observes does not prevent launches.
    let attaches: Bool
    /// Counts the stream while it is open.
    let place: Hold

    /// Stored events read at a time, by number and by bytes: the memory that a client which does not read occupies.
    private static let pageSize = 64
    private static let pageBytes = 32 * 1024
    /// Milliseconds after which a stream without memory tries again.
    private static let pause: Int64 = 250
    /// Maximum number of tasks remembered as completed, so that no live event follows their end.
    private static let memory = 1024

    /// Sends until the client disconnects, the session is deleted, the key is revoked or the service stops.
    func run(after: Int64?, _ writer: ResponseWriter) async {
        do {
            guard attaches else { return try await follow(after: after, writer) }
            try await call.service.attached(to: session.id, .stream) { try await follow(after: after, writer) }
        } catch let error as DomainError {
            // The session was deleted, or events expired unread: the client's next request gets the problem.
            call.log.debug("an event stream ended", ("reason", "\(error)"))
        } catch is Problem {
            // The key was revoked: the client's next request gets the problem.
        } catch is ResponseWriter.ClientIsGone {
        } catch is CancellationError {
        } catch {
            call.log.error("an event stream failed", ("error", "\(error)"))
        }
    }

    private func follow(after: Int64?, _ writer: ResponseWriter) async throws {
        let feed = call.service.openFeed(of: session.id)
        call.request.clientGone.onGone { feed.wake() }
        try await send(feed, after: after, writer)
    }

    private func send(_ feed: EventFeed, after: Int64?, _ writer: ResponseWriter) async throws {
        let envelope = call.envelope(of: session)
        let clock = call.service.clock
        let heartbeat = call.server.settings.heartbeat.milliseconds
        var last = after
        var completed: [Int64] = []
        try await writer.write(Self.comment)
        var lastWrite = clock.monotonic()
        while !call.request.clientGone.isGone, !call.service.isDraining {
            try await call.checkAdmission()
            let share = call.server.streamed.share(of: call.caller.principal)
            guard share.hold(Self.pageBytes) else {
                if clock.monotonic() - lastWrite >= heartbeat {
                    try await writer.write(Self.comment)
                    lastWrite = clock.monotonic()
                }
                await feed.wait(until: clock.monotonic() + Self.pause)
                continue
            }
            var frames: [UInt8] = []
            let page = try await feed.kept(after: last, limit: Self.pageSize, maximumBytes: Self.pageBytes)
            for event in page.events {
                Self.append(envelope.event(event), to: &frames)
                if event.kind == .didComplete, let number = event.taskIdentifier { completed.append(number) }
            }
            last = page.events.last?.seq ?? last ?? page.acknowledgedSeq
            if completed.count > Self.memory { completed.removeFirst(completed.count - Self.memory) }
            let isAtEnd = page.isAtEnd
            if isAtEnd {
                for event in await feed.live() where !completed.contains(event.taskIdentifier) {
                    Self.append(envelope.event(event), to: &frames)
                    guard frames.count >= Self.pageBytes else { continue }
                    try await writer.write(frames)
                    lastWrite = clock.monotonic()
                    frames = []
                }
            }
            if frames.isEmpty, clock.monotonic() - lastWrite >= heartbeat { frames = Self.comment }
            if !frames.isEmpty {
                try await writer.write(frames)
                lastWrite = clock.monotonic()
            }
            _ = share.hold(0)  // The client has taken the page.
            if isAtEnd { await feed.wait(until: lastWrite + heartbeat) }
        }
    }

    /// A line that clients skip (WHATWG HTML, section 9.2.5).
    private static let comment = Array(":\n\n".utf8)

    private static func append(_ event: Event, to frames: inout [UInt8]) {
        if let seq = event.seq { frames += "id: \(seq)\n".utf8 }
        frames += "event: \(event.type.rawValue)\ndata: ".utf8
        frames += event.jsonBytes
        frames += "\n\n".utf8
    }
}
