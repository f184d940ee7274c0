import Core
import HTTPServer
import Mapping
import Service
import Wire

/// The lease by which a client holds a session.
struct AttachmentRoutes {
    let server: APIServer

    private static let path = "/v1/sessions/{identifier}/attachment"

    var routes: [Route] {
        [
            server.route("POST", Self.path, .events, body: .optionalJSON, attach),
            server.route("DELETE", Self.path, .events, query: ["epoch"], body: .empty, detach),
        ]
    }

    @Sendable private func attach(_ call: Call) async throws -> HTTPResponse {
        let request = try call.readIfPresent(AttachmentRequest.self)
        let session = try await call.session()
        let attached = try await call.service.attach(Core.Attachment.Event(request), to: session.id)
        guard let lease = Wire.Attachment(attached) else { throw DomainError.attachmentFenced }
        guard request.epoch == nil else { return .json(lease) }
        // What was made is released there.
        let place = "/v1/sessions/\(session.identifier)/attachment?epoch=\(lease.epoch)"
        return .json(lease, status: 201, headers: [("Location", place)])
    }

    @Sendable private func detach(_ call: Call) async throws -> HTTPResponse {
        guard let epoch = try call.queryInteger("epoch", in: 1 ... .max) else {
            throw Problem.query("epoch", "This parameter is missing; it is the epoch of the lease.")
        }
        let session = try await call.session()
        _ = try await call.service.attach(.release(epoch: epoch), to: session.id)
        return .nothing
    }
}
