import Base
import Core
import HTTPServer
import Launches
import Mapping
import Service
import Wire

/// Sessions of the app behind the key.
struct SessionRoutes {
    let server: APIServer

    private static let path = "/v1/sessions/{identifier}"

    var routes: [Route] {
        let path = Self.path
        return [
            server.route("GET", "/v1/sessions", .read, query: ["limit", "cursor"], list),
            server.route("POST", "/v1/sessions", .write, body: .optionalJSON, create),
            server.route("GET", path, .readOrEvents) { call in try await call.showSession(call.session()) },
            server.route("PUT", path, .write, body: .optionalJSON, open),
            server.route("PATCH", path, .write, body: .json, change),
            server.route("DELETE", path, .write, body: .empty) { call in
                let session = try await call.sessionAsExpected()
                return try await call.showSession(call.service.deleteSession(session.id), status: 202)
            },
            server.route("POST", path + "/finish-tasks-and-invalidate", .write, body: .empty) { call in
                let session = try await call.sessionAsExpected()
                return try await call.showSession(call.service.finishTasksAndInvalidate(session.id), status: 202)
            },
            server.route("POST", path + "/invalidate-and-cancel", .write, body: .empty) { call in
                let session = try await call.sessionAsExpected()
                return try await call.showSession(call.service.invalidateAndCancel(session.id), status: 202)
            },
            server.route("POST", path + "/reset", .write, body: .empty) { call in
                let session = try await call.sessionAsExpected()
                guard session.state.phase != .invalid else { throw DomainError.sessionInvalidated }
                return try await call.showSession(call.service.resetSession(session.id))
            },
        ]
    }

    @Sendable private func list(_ call: Call) async throws -> HTTPResponse {
        let app = try call.app
        return try await call.page(
            fetch: { try await call.service.sessions(of: app, after: $0, limit: $1) }, position: \.id.rawValue,
            write: { try await call.wireSession($0) })
    }

    @Sendable private func create(_ call: Call) async throws -> HTTPResponse {
        let creation = try call.readIfPresent(SessionCreation.self)
        let render: @Sendable (SessionRecord) -> HTTPResponse = { record in
            call.createdSession(record, Wire.Session(record, attendance: nil, launch: nil, at: record.createdAt))
        }
        let opened = try await call.service.openSession(
            creation.identifier ?? Identifier.make(prefix: "session-"), app: call.app,
            configuration: creation.configuration.map { Core.SessionConfiguration($0) },
            description: creation.sessionDescription, onlyCreates: true, recording: call.recording(render))
        return render(opened.session)
    }

    /// Creates, or reconnects as a relaunched app does.
    @Sendable private func open(_ call: Call) async throws -> HTTPResponse {
        let identifier = call.parameter("identifier")
        if let detail = TextRule.identifier.violation(in: identifier) { throw Problem(.invalidValue, detail) }
        let put = try call.readIfPresent(SessionPut.self)
        let app = try call.app
        if call.request.headers["If-Match"] != nil {
            let existing = try? await call.service.session(identifier, app: app)
            _ = try call.expectedRevision(of: existing?.revision)
        }
        let opened = try await call.service.openSession(
            identifier, app: app, configuration: put.configuration.map { Core.SessionConfiguration($0) },
            description: put.sessionDescription.newValue, onlyCreates: false, recording: nil)
        var session = opened.session
        guard opened.arrival == .reconnected else {
            return call.createdSession(
                session, Wire.Session(session, attendance: nil, launch: nil, at: session.createdAt))
        }
        if put.sessionDescription.isPresent, put.sessionDescription.newValue != session.sessionDescription {
            session = try await call.service.changeSession(
                session.id, description: .some(put.sessionDescription.newValue), bandwidthLimit: nil,
                ifRevision: nil)
        }
        return try await call.showSession(session)
    }

    @Sendable private func change(_ call: Call) async throws -> HTTPResponse {
        let change = try call.read(SessionChange.self)
        let session = try await call.session()
        let revision = try call.expectedRevision(of: session.revision)
        guard session.state.phase != .invalid else { throw DomainError.sessionInvalidated }
        let description: String?? =
            change.sessionDescription.isPresent ? .some(change.sessionDescription.newValue) : nil
        let limit: Int64?? = change.bandwidthLimit.isPresent ? .some(change.bandwidthLimit.newValue) : nil
        return try await call.showSession(
            call.service.changeSession(
                session.id, description: description, bandwidthLimit: limit, ifRevision: revision))
    }
}

extension Call {
    /// The session that the path names, where `If-Match` agrees with it.
    func sessionAsExpected() async throws -> SessionRecord {
        let session = try await session()
        _ = try expectedRevision(of: session.revision)
        return session
    }

    /// A session as it is shown, with its open launch and who is attached.
    func wireSession(_ session: SessionRecord) async throws -> Wire.Session {
        Wire.Session(
            session, attendance: service.attendance.kind(of: session.id), launch: try await openLaunch(of: session),
            at: service.clock.now)
    }

    private func openLaunch(of session: SessionRecord) async throws -> LaunchRecord? {
        guard let launchId = session.openLaunch else { return nil }
        do {
            return try await server.launches.launch(launchId, app: session.app)
        } catch DomainError.notFound {
            // It ended between the two reads.
            return nil
        }
    }

    func showSession(_ session: SessionRecord, status: Int = 200) async throws -> HTTPResponse {
        resource(try await wireSession(session), revision: session.revision, status: status)
    }

    func createdSession(_ record: SessionRecord, _ session: Wire.Session) -> HTTPResponse {
        resource(session, revision: record.revision, status: 201, location: "/v1/sessions/\(record.identifier)")
    }
}
