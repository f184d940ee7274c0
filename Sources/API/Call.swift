import Base
import Core
import HTTPServer
import Service
import Wire

/// One request on its way to an answer: the caller, the request, and the server that answers it.
struct Call: Sendable {
    let server: APIServer
    let caller: Caller
    /// Kept for as long as the request is in flight; the open routes have none.
    let admission: Admissions.Admission?
    /// What the body holds of the memory for bodies.
    var bodyShare: MemoryBudget.Share?
    var request: HTTPRequest
    /// The representation that the client likes best of those the route has.
    var accepted: String
    /// Set where the request has an `Idempotency-Key`.
    var idempotency: IdempotencyKeys.Entry?

    var service: Service { server.service }
    var log: Log { server.log.with("request", request.requestID) }

    /// The app behind the key.
    var app: AppID {
        get throws {
            guard case .app(let app, _, _) = caller else {
                throw Problem(.insufficientScope, "This is for the keys of apps.")
            }
            return app
        }
    }

    // MARK: The path

    /// A segment of the path that stands where the route has `{name}`.
    func parameter(_ name: String) -> String { request.parameters[name] ?? "" }

    /// A segment that must be a positive whole number; anything else names nothing.
    func number(_ name: String) throws -> Int64 {
        let text = parameter(name)
        guard text.first != "0", let number = Int64(digits: text) else { throw DomainError.notFound }
        return number
    }

    /// The session that the path names.
    func session() async throws -> SessionRecord {
        let identifier = parameter("identifier")
        do {
            return try await service.session(identifier, app: app)
        } catch DomainError.notFound {
            throw Problem(.notFound, "There is no session \"\(identifier)\".")
        }
    }

    // MARK: The body

    /// The bytes of a body that was collected.
    var bodyBytes: [UInt8] {
        guard case .bytes(let bytes) = request.body else { return [] }
        return bytes
    }

    /// Reads the body as JSON; all its faults are told at once.
    func read<Body: JSONReadable>(_ type: Body.Type = Body.self) throws -> Body { try Body(parsing: bodyBytes) }

    /// Reads the body as JSON, or an empty object where there is none.
    func readIfPresent<Body: JSONReadable>(_ type: Body.Type = Body.self) throws -> Body {
        try Body(parsing: bodyBytes.isEmpty ? Array("{}".utf8) : bodyBytes)
    }

    // MARK: Waiting

    /// One of the requests that a key may have waiting, for as long as it is kept.
    func heldPlace() throws -> HeldRequests.Place {
        guard let place = server.held.place(of: caller.key) else {
            throw Problem(.rateLimited, "This key has too many requests waiting already.")
        }
        return place
    }

    /// Runs something that waits, counted against what one key may have waiting.
    ///
    /// - Throws: ``Problem`` `unauthorized` when the key was revoked meanwhile.
    func holding<Result>(_ body: () async throws -> Result) async throws -> Result {
        let place = try heldPlace()
        defer { withExtendedLifetime(place) {} }
        let result = try await body()
        try await checkAdmission()
        return result
    }

    /// Judges the key again, in a request that goes on for a while.
    ///
    /// - Throws: ``Problem`` `unauthorized` when the key has been revoked or has expired since the request was let in.
    func checkAdmission() async throws {
        guard request.clientGone.reason != .revoked, await server.authenticator.stillAdmits(caller) else {
            throw Self.revoked
        }
    }

    static let revoked = Problem(.unauthorized, "The key was revoked or has expired.")

    /// Until when the client wants to wait, on the monotonic clock in milliseconds; nil where it does not.
    func waitDeadline() throws -> Int64? {
        guard let seconds = try queryNumber("wait", in: 0...60), seconds > 0 else { return nil }
        return service.clock.monotonic() + Int64(seconds * 1000)
    }
}

/// The body of a request that says nothing.
struct NoMembers: Shape {
    mutating func visit(_ members: inout some MemberVisitor) {}
}
