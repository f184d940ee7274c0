import Base
import Core
import HTTPServer
import Launches
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    var sessionRoutes: [Route] {
        let path = "/v1/sessions/{identifier}"
        return [
            route("GET", "/v1/sessions", .read, query: Call.listing) { try await $0.listSessions() },
            route("POST", "/v1/sessions", .write, body: .optionalJSON) { try await $0.createSession() },
            route("GET", path, .readOrEvents, query: ["wait", "revision"]) { try await $0.readSession() },
            route("PUT", path, .write, body: .optionalJSON) { try await $0.openSession() },
            route("PATCH", path, .write, body: .json) { try await $0.changeSession() },
            route("DELETE", path, .write, body: .empty) { try await $0.endSession($0.service.deleteSession) },
            route("POST", path + "/finish-tasks-and-invalidate", .write, body: .empty) {
                try await $0.endSession($0.service.finishTasksAndInvalidate)
            },
            route("POST", path + "/invalidate-and-cancel", .write, body: .empty) {
                try await $0.endSession($0.service.invalidateAndCancel)
            },
            route("POST", path + "/reset", .write, body: .empty) { try await $0.resetSession() },
        ]
    }
}

extension Call {
    fileprivate func listSessions() async throws -> HTTPResponse {
        let app = try app
        let span = try span()
        return try await page(
            fetch: { try await service.sessions(of: app, span, after: $0, limit: $1) }, position: \.id.rawValue,
            write: { try await wireSession($0) })
    }

    /// The session at once, or when none of its tasks is running any more.
    fileprivate func readSession() async throws -> HTTPResponse {
        let session = try await session()
        let revision = try queryInteger("revision", in: 0 ... .max)
        guard let deadline = try waitDeadline() else { return try await showSession(session) }
        return try await showSession(
            holding { [hub = service.hub] in
                hub.sessions.signal(session.id)
            } _: {
                try await service.waitForSession(session.id, newerThan: revision, until: deadline, isGone: $0)
            })
    }

    fileprivate func createSession() async throws -> HTTPResponse {
        let creation = try readIfPresent(SessionCreation.self)
        return try await creating { recording in
            try await service.openSession(
                creation.identifier ?? Identifier.make(prefix: "session-"), app: app,
                configuration: creation.configuration.map { Core.SessionConfiguration($0) },
                description: creation.sessionDescription, onlyCreates: true, recording: recording
            ).session
        } answer: {
            createdSession($0)
        }
    }

    /// Creates a session, or reconnects to it as a relaunched app does.
    fileprivate func openSession() async throws -> HTTPResponse {
        let identifier = parameter("identifier")
        if let detail = TextRule.identifier.violation(in: identifier) { throw Problem(.invalidValue, detail) }
        let put = try readIfPresent(SessionPut.self)
        let app = try app
        var (expected, revision): (SessionCondition, Int64?) = (.none, nil)
        if request.headers["If-Match"] != nil {
            do {
                let existing = try await service.session(identifier, app: app)
                revision = try expectedRevision(of: Version(existing))
                expected = revision.map { .isUnchanged(existing.id, revision: $0) } ?? .exists
            } catch DomainError.notFound {
                _ = try expectedRevision(of: nil)
            }
        }
        let opened = try await service.openSession(
            identifier, app: app, configuration: put.configuration.map { Core.SessionConfiguration($0) },
            description: put.sessionDescription.newValue, onlyCreates: false, expecting: expected, recording: nil)
        guard opened.arrival == .reconnected else { return createdSession(opened.session) }
        guard let description = put.sessionDescription.update, description != opened.session.sessionDescription else {
            return try await showSession(opened.session)
        }
        return try await showSession(
            service.changeSession(
                opened.session.id, description: description, bandwidthLimit: nil, ifRevision: revision))
    }

    fileprivate func changeSession() async throws -> HTTPResponse {
        let change = try read(SessionChange.self)
        let session = try await session()
        let revision = try expectedRevision(of: Version(session))
        guard session.state.phase != .invalid else { throw DomainError.sessionInvalidated }
        return try await showSession(
            service.changeSession(
                session.id, description: change.sessionDescription.update,
                bandwidthLimit: change.bandwidthLimit.update, ifRevision: revision))
    }

    fileprivate func endSession(
        _ end: (SessionID, _ revision: Int64?) async throws -> SessionRecord
    ) async throws -> HTTPResponse {
        let (session, revision) = try await sessionAsExpected()
        return try await showSession(end(session.id, revision), status: 202)
    }

    fileprivate func resetSession() async throws -> HTTPResponse {
        let (session, revision) = try await sessionAsExpected()
        guard session.state.phase != .invalid else { throw DomainError.sessionInvalidated }
        return try await showSession(service.resetSession(session.id, ifRevision: revision))
    }

    /// The session in the path, if it matches `If-Match`, and the revision that a change requires.
    func sessionAsExpected() async throws -> (session: SessionRecord, revision: Int64?) {
        let session = try await session()
        return (session, try expectedRevision(of: Version(session)))
    }

    /// The client's view of a session, with its open launch and its attachment.
    private func wireSession(_ session: SessionRecord) async throws -> Wire.Session {
        Wire.Session(
            session, attendance: try await service.attachmentKind(of: session.id),
            launch: try await openLaunch(of: session), at: service.clock.now)
    }

    private func openLaunch(of session: SessionRecord) async throws -> LaunchRecord? {
        guard let launchId = session.openLaunch else { return nil }
        do {
            return try await server.launches.launch(launchId, app: session.app)
        } catch DomainError.notFound {
            // The launch ended between the two reads.
            return nil
        }
    }

    func showSession(_ session: SessionRecord, status: Int = 200) async throws -> HTTPResponse {
        resource(try await wireSession(session), version: Version(session), status: status)
    }

    private func createdSession(_ session: SessionRecord) -> HTTPResponse {
        resource(
            Wire.Session(session, attendance: nil, launch: nil, at: session.createdAt), version: Version(session),
            status: 201, location: "/v1/sessions/\(session.identifier)")
    }
}
