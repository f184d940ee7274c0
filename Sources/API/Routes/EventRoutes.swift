import Base
import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

/// The event log of a session: pages, waiting reads, streams, acknowledgement.
struct EventRoutes {
    let server: APIServer

    private static let path = "/v1/sessions/{identifier}/events"

    var routes: [Route] {
        [
            server.route(
                "GET", Self.path, .readOrEvents, query: ["after", "limit", "wait"],
                produces: [MediaTypes.json, MediaTypes.eventStream], read),
            server.route("POST", Self.path + "/ack", .events, body: .json, acknowledge),
        ]
    }

    @Sendable private func read(_ call: Call) async throws -> HTTPResponse {
        let after = try call.queryInteger("after", in: 0 ... .max)
        let limit = try call.limit()
        let deadline = try call.waitDeadline()
        let session = try await call.session()
        if call.accepted == MediaTypes.eventStream {
            return try await stream(call, session, after: call.lastEventID() ?? after)
        }
        let page: Core.EventPage
        if let deadline {
            let gone = call.request.clientGone
            gone.onGone { [hub = call.service.hub] in hub.sessions.signal(session.id) }
            page = try await call.holding {
                try await call.service.waitForEvents(
                    of: session.id, after: after, limit: limit, until: deadline, isGone: { gone.isGone })
            }
        } else {
            page = try await call.service.events(of: session.id, after: after, limit: limit)
        }
        return .json(call.envelope(of: session).page(page))
    }

    private func stream(_ call: Call, _ session: SessionRecord, after: Int64?) async throws -> HTTPResponse {
        // What is wrong with the place to begin is told before the stream begins.
        _ = try await call.service.events(of: session.id, after: after, limit: 1)
        let headers = [("Content-Type", MediaTypes.eventStream), ("Cache-Control", "no-store")]
        guard call.request.method != "HEAD" else { return HTTPResponse(status: 200, headers: headers) }
        guard let place = HeldPlace(server.held, call.caller.key) else {
            throw Problem(.rateLimited, "This key has too many requests waiting already.")
        }
        let stream = EventStream(call: call, session: session, place: place)
        return HTTPResponse(
            status: 200, headers: headers,
            body: .stream { writer in await stream.run(after: after, writer) })
    }

    @Sendable private func acknowledge(_ call: Call) async throws -> HTTPResponse {
        let ack = try call.read(EventAck.self)
        let session = try await call.session()
        return try await call.showSession(
            call.service.acknowledge(through: ack.through, epoch: ack.epoch, in: session.id))
    }
}

extension Call {
    func envelope(of session: SessionRecord) -> EventEnvelope {
        EventEnvelope(sessionIdentifier: session.identifier, urls: server.launches.urls)
    }

    /// The last event that a stream's client has, from a stream before.
    fileprivate func lastEventID() throws -> Int64? {
        guard let text = request.headers["Last-Event-ID"], !text.isEmpty else { return nil }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text) else {
            throw Problem.header("Last-Event-ID", "This must be the id of an event of this session.")
        }
        return number
    }
}

/// One of the requests that a key may have waiting, for as long as it lives.
final class HeldPlace: Sendable {
    private let held: HeldRequests
    private let key: String

    /// Nil when there are too many already.
    init?(_ held: HeldRequests, _ key: String) {
        guard held.begin(key) else { return nil }
        self.held = held
        self.key = key
    }

    deinit { held.end(key) }
}

extension EventEnvelope {
    /// A page of the log, which ends where the answer is long enough.
    fileprivate func page(_ page: Core.EventPage) -> Wire.EventPage<JSONText> {
        var items = PageItems()
        let isWhole = page.events.allSatisfy { items.add(event($0)) }
        return Wire.EventPage(
            items: items.texts, lastSeq: page.lastSeq, acknowledgedSeq: page.acknowledgedSeq,
            finished: page.isFinished && isWhole)
    }
}
