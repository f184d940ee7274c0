import Core
import HTTPServer
import Service
import Wire
import WireMapping

extension APIServer {
    var attachmentRoutes: [Route] {
        let path = "/v1/sessions/{identifier}/attachment"
        return [
            route("POST", path, .events, body: .optionalJSON) { try await $0.attach() },
            route("DELETE", path, .events, query: ["epoch"], body: .empty) { try await $0.detach() },
        ]
    }
}

extension Call {
    fileprivate func attach() async throws -> HTTPResponse {
        let wanted = try readIfPresent(AttachmentRequest.self)
        let session = try await session()
        let attached = try await service.attach(Core.Attachment.Event(wanted), to: session.id)
        guard let lease = Wire.Attachment(attached) else { throw DomainError.attachmentFenced }
        guard wanted.epoch == nil else { return .json(lease) }
        // The created lease is released at this URL.
        let place = "/v1/sessions/\(session.identifier)/attachment?epoch=\(lease.epoch)"
        return .json(lease, status: 201, headers: [("Location", place)])
    }

    fileprivate func detach() async throws -> HTTPResponse {
        guard let epoch = try queryInteger("epoch", in: 1 ... .max) else {
            throw Problem.query("epoch", "This parameter is missing; it is the epoch of the lease.")
        }
        _ = try await service.attach(.release(epoch: epoch), to: session().id)
        return .nothing
    }
}
