import Base
import Core
import HTTPServer
import Service
import Wire

enum BodyForm: Sendable {
    case none
    /// No body, but clients may send an empty object.
    case empty
    case optionalJSON
    case json
    /// JSON of a batch, which may be longer.
    case batch
    /// JSON of a batch, or lines of JSON that the handler reads as they arrive.
    case batchOrLines
    /// JSON, lines of JSON, or a Metalink document.
    case task
    /// Bytes that the handler reads as they arrive.
    case stream
}

extension APIServer {
    /// Makes a route. The checks that all routes share run here, in this order:
    ///
    /// Host, key, rate, scope, shutting down, query, `Accept`, the body's form, `Idempotency-Key`; then `handler`.
    ///
    /// - Parameters:
    ///   - query: The parameters that the route knows.
    ///   - produces: The media types of its responses, the default one first.
    ///   - isIdempotent: Whether a `POST` accepts an `Idempotency-Key`.
    ///   - replay: Makes the response to a repeated request from the stored one, if that is not the response itself.
    func route(
        _ method: String, _ pattern: String, _ access: Access, query: [String] = [], body: BodyForm = .none,
        produces: [String] = ["application/json"], isIdempotent: Bool = true,
        replay: (@Sendable (Call, StoredAnswer) async throws -> HTTPResponse)? = nil,
        _ handler: @escaping @Sendable (Call) async throws -> HTTPResponse
    ) -> Route {
        let takesKeys = method == "POST" && isIdempotent
        let answer: @Sendable (HTTPRequest, inout RateLimiter.Allowance?) async -> HTTPResponse = {
            [self] request, allowance in
            do {
                let (caller, admission) = try await admit(request, access, &allowance)
                var call = Call(
                    server: self, caller: caller, admission: admission, request: request,
                    accepted: produces.first ?? "")
                try call.checkQuery(query)
                try call.checkConditions()
                guard let accepted = MediaTypes.choose(produces, accept: request.headers.all("Accept")) else {
                    throw Problem(.notAcceptable, "There is: \(produces.joined(separator: ", ")).")
                }
                call.accepted = accepted
                try await call.prepareBody(body)
                guard takesKeys, !call.hasLines, let key = try IdempotencyKeys.key(of: request) else {
                    return try await handler(call)
                }
                let entry = IdempotencyKeys.Entry(
                    principal: caller.principal, key: key,
                    fingerprint: IdempotencyKeys.fingerprint(of: request, body: call.bodyBytes))
                return try await idempotencyKeys.answer(entry) { [call] kept in
                    try await replay?(call, kept) ?? HTTPResponse(kept)
                } _: { [call] entry in
                    var call = call
                    call.idempotency = entry
                    return try await handler(call)
                }
            } catch {
                return problem(for: error, of: request).response()
            }
        }
        // Each handler reads its body itself, after the check of the key.
        return Route(method, pattern, body: body == .none ? .none : .stream, executor: executor(access)) { request in
            var allowance: RateLimiter.Allowance?
            var response = await answer(request, &allowance)
            if let allowance { response.headers += allowance.fields }
            // Content of an origin is sent unchanged.
            if produces != [MediaTypes.any] { await response.compress(for: request) }
            return response
        }
    }

    /// Requests of apps run on reader threads, in fair turns between apps. Open routes, such as health checks, are
    /// served even when all readers are busy.
    private func executor(_ access: Access) -> Route.Executor? {
        if case .open = access { return nil }
        return { [service, authenticator] in
            service.readers(of: authenticator.owner(authorization: $0.headers["Authorization"]))
        }
    }

    /// Admits a request, and returns its caller.
    ///
    /// - Parameter allowance: Set if the key's requests are limited.
    private func admit(
        _ request: HTTPRequest, _ access: Access, _ allowance: inout RateLimiter.Allowance?
    ) async throws -> (Caller, Hold?) {
        if settings.isDevelopment, !HostField.namesThisMachine(request.headers["Host"] ?? "") {
            throw Problem(.misdirectedRequest, "With --dev only localhost and loopback addresses are served.")
        }
        if case .open = access { return (.anyone, nil) }
        let (caller, admission) = try await letIn(request)
        allowance = limiter?.admit(caller.key)
        if let allowance, !allowance.isAdmitted {
            throw Problem(.rateLimited, "This key may make \(allowance.quota.counted("request")) a second.")
        }
        switch (access, caller) {
        case (.open, _), (.operator, .operator): break
        case (.operator, _): throw Problem(.insufficientScope, "This needs the admin key.")
        case (.app(let scopes), .app(_, _, let granted)):
            guard !scopes.isDisjoint(with: granted) else {
                let names = scopes.map(\.rawValue).sorted().joined(separator: " or ")
                throw Problem(.insufficientScope, "The key lacks the scope \(names).")
            }
        case (.app, _): throw Problem(.insufficientScope, "This needs the key of an app.")
        }
        if service.isDraining { throw ServiceError.shuttingDown }
        return (caller, admission)
    }

    /// The caller of the request, by its key. A revocation of the key from now on ends the request.
    private func letIn(_ request: HTTPRequest) async throws -> (Caller, Hold) {
        while true {
            let revocations = admissions.revocations
            let caller = try await authenticator.caller(authorization: request.headers.all("Authorization"))
            if let admission = admissions.admit(caller, request.clientGone, since: revocations) {
                return (caller, admission)
            }
        }
    }
}

/// The `Host` field under `--dev`. It is checked so that a page of another site cannot reach the service through its
/// own name for this machine (DNS rebinding).
enum HostField {
    static func namesThisMachine(_ field: String) -> Bool {
        var host = Array(field.lowercased().utf8)[...]
        if host.first == UInt8(ascii: "[") {
            guard let end = host.firstIndex(of: UInt8(ascii: "]")) else { return false }
            host = host[(host.startIndex + 1)..<end]
        } else if let colon = host.firstIndex(of: UInt8(ascii: ":")) {
            host = host[..<colon]
        }
        let name = String(decoding: host, as: UTF8.self)
        if name == "localhost" { return true }
        return IPAddress(name)?.isLoopback ?? false
    }
}
