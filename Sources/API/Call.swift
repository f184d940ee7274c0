import Base
import Core
import HTTPServer
import Service
import Wire

/// One request being handled: the caller, the request, and the server that handles it.
struct Call: Sendable {
    let server: APIServer
    let caller: Caller
    /// Kept while the request is in flight; nil for the open routes.
    let admission: Hold?
    /// The request's share of the memory for bodies.
    var bodyShare: MemoryBudget.Share?
    var request: HTTPRequest
    /// The client's preferred representation among those of the route.
    var accepted: String
    /// Set if the request has an `Idempotency-Key`.
    var idempotency: IdempotencyKeys.Entry?

    var service: Service { server.service }
    var log: Log { server.log.with("request", request.requestID) }

    /// The app behind the key.
    var app: AppID {
        get throws {
            guard case .app(let app, _, _) = caller else {
                throw Problem(.insufficientScope, "This needs the key of an app.")
            }
            return app
        }
    }

    // MARK: The path

    /// The segment of the path at the route's `{name}`.
    func parameter(_ name: String) -> String { request.parameters[name] ?? "" }

    /// A segment that must be a positive whole number; otherwise the resource does not exist.
    func number(_ name: String) throws -> Int64 {
        let text = parameter(name)
        guard text.first != "0", let number = Int64(digits: text) else { throw DomainError.notFound }
        return number
    }

    func session() async throws -> SessionRecord { try await session(named: parameter("identifier")) }

    func session(named identifier: String) async throws -> SessionRecord {
        do {
            return try await service.session(identifier, app: app)
        } catch DomainError.notFound {
            throw Problem(.notFound, "There is no session \"\(identifier)\".")
        }
    }

    // MARK: The body

    var bodyBytes: [UInt8] {
        guard case .bytes(let bytes) = request.body else { return [] }
        return bytes
    }

    /// Reads the body as JSON; all its faults are reported at once.
    func read<Body: JSONReadable>(_ type: Body.Type = Body.self) throws -> Body { try Body(parsing: bodyBytes) }

    /// Reads the body as JSON, or an empty object if there is none.
    func readIfPresent<Body: JSONReadable>(_ type: Body.Type = Body.self) throws -> Body {
        try Body(parsing: bodyBytes.isEmpty ? Array("{}".utf8) : bodyBytes)
    }

    // MARK: Waiting

    /// Counts one held request of the key, until the value is destroyed.
    func heldPlace() throws -> Hold {
        guard let place = server.held.place(of: caller.key) else {
            throw Problem(.rateLimited, "This key has too many held requests.")
        }
        return place
    }

    /// Runs a closure that waits, counted against the key's held requests.
    ///
    /// - Parameter wake: Resumes the closure, so that it reads `isGone` again.
    /// - Throws: ``Problem`` `unauthorized` if the key was revoked meanwhile.
    func holding<Result>(
        _ wake: @escaping @Sendable () -> Void,
        _ body: (_ isGone: @escaping @Sendable () -> Bool) async throws -> Result
    ) async throws -> Result {
        let (place, gone) = (try heldPlace(), request.clientGone)
        defer { withExtendedLifetime(place) {} }
        gone.onGone(wake)
        let result = try await body { gone.isGone }
        try await checkAdmission()
        return result
    }

    /// Checks the key again, in a request of long duration.
    ///
    /// - Throws: ``Problem`` `unauthorized` if the key has been revoked or has expired since the request was admitted.
    func checkAdmission() async throws {
        guard request.clientGone.reason != .revoked, await server.authenticator.stillAdmits(caller) else {
            throw Self.revoked
        }
    }

    static let revoked = Problem(.unauthorized, "The key was revoked or has expired.")

    /// The end of the wait that the client requests, in monotonic milliseconds; nil if it requests none.
    func waitDeadline() throws -> Int64? {
        guard let seconds = try queryNumber("wait", in: 0...60), seconds > 0 else { return nil }
        return service.clock.monotonic() + Int64(seconds * 1000)
    }
}

struct NoMembers: Shape {
    mutating func visit(_ members: inout some MemberVisitor) {}
}
