import Base
import Core
import HTTPServer
import Launches
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// The event log of a session: pages, held requests, streams, acknowledgement.
    var eventRoutes: [Route] {
        let path = "/v1/sessions/{identifier}/events"
        return [
            route(
                "GET", path, .readOrEvents, query: ["after", "limit", "wait", "attach"],
                produces: [MediaTypes.json, MediaTypes.eventStream]
            ) {
                try await $0.readEvents()
            },
            route("POST", path + "/ack", .events, body: .json) { try await $0.acknowledge() },
        ]
    }
}

extension Call {
    fileprivate func readEvents() async throws -> HTTPResponse {
        let after = try queryInteger("after", in: 0 ... .max)
        let limit = try limit()
        let deadline = try waitDeadline()
        let attaches = try queryWord("attach", [("true", true), ("false", false)]) ?? true
        let session = try await session()
        if accepted == MediaTypes.eventStream {
            return try await stream(session, after: lastEventID() ?? after, attaches: attaches)
        }
        guard let deadline else {
            return try await envelope(of: session)
                .page(service.events(of: session.id, after: after, limit: limit))
        }
        do {
            let page = try await holding { [hub = service.hub] in
                hub.sessions.signal(session.id)
            } _: {
                try await service.waitForEvents(of: session.id, after: after, limit: limit, until: deadline, isGone: $0)
            }
            return await envelope(of: session).page(page)
        } catch DomainError.notFound {
            // Another session may have replaced it meanwhile, in whose log the position is judged.
            let successor = try await self.session()
            return try await envelope(of: successor)
                .page(service.events(of: successor.id, after: after, limit: limit))
        }
    }

    private func stream(_ session: SessionRecord, after: Int64?, attaches: Bool) async throws -> HTTPResponse {
        // An invalid position is refused before the stream begins.
        _ = try await service.events(of: session.id, after: after, limit: 1)
        let headers = [("Content-Type", MediaTypes.eventStream), ("Cache-Control", "no-store")]
        guard request.method != "HEAD" else { return HTTPResponse(status: 200, headers: headers) }
        let stream = EventStream(call: self, session: session, attaches: attaches, place: try heldPlace())
        var response = HTTPResponse(
            status: 200, headers: headers, body: .stream { writer in await stream.run(after: after, writer) })
        // A client that has vanished must not stay attached. One that lives may read late.
        response.silenceLimit = .seconds(30)
        return response
    }

    /// The last event that the client received from an earlier stream.
    private func lastEventID() throws -> Int64? {
        guard let text = request.headers["Last-Event-ID"], !text.isEmpty else { return nil }
        guard let number = Int64(digits: text) else {
            throw Problem.header("Last-Event-ID", "This must be the id of an event of this session.")
        }
        return number
    }

    fileprivate func acknowledge() async throws -> HTTPResponse {
        let ack = try read(EventAck.self)
        let (session, revision) = try await sessionAsExpected()
        return try await showSession(
            service.acknowledge(through: ack.through, epoch: ack.epoch, in: session.id, ifRevision: revision))
    }

    func envelope(of session: SessionRecord) -> EventEnvelope {
        EventEnvelope(sessionIdentifier: session.identifier, urls: server.launches.urls)
    }
}

extension EventEnvelope {
    /// A page of the log, cut at the maximum length of a response. Rendered in steps, between which other requests run.
    fileprivate func page(_ page: Core.EventPage) async -> HTTPResponse {
        var items = PageItems()
        var isWhole = true
        for (index, record) in page.events.enumerated() {
            if index.isMultiple(of: PageItems.readAtOnce) { await Task.yield() }
            isWhole = items.add(event(record))
            guard isWhole else { break }
        }
        let shown = Wire.EventPage {
            $0.items = items.texts
            $0.lastSeq = page.lastSeq
            $0.acknowledgedSeq = page.acknowledgedSeq
            $0.finished = page.isFinished && isWhole
        }
        return .json(shown, expecting: items.bytes + 256)
    }
}
