import Base
import Core
import HTTPServer
import Mapping
import Notation
import Service
import Wire

/// What a route does with a request's body.
enum BodyForm: Sendable {
    /// There is none.
    case none
    /// There is none, but clients may send an empty object.
    case empty
    /// JSON that may be left out.
    case optionalJSON
    /// JSON.
    case json
    /// JSON of a batch, which may be longer.
    case batch
    /// JSON, or lines of JSON that the handler reads as they come.
    case jsonOrLines
    /// The same, or a Metalink document.
    case task
    /// Bytes that the handler reads as they come.
    case stream
}

extension APIServer {
    /// Makes a route: everything that is the same for all happens here, in this order.
    ///
    /// Host, key, rate, scope, shutting down, query, `Accept`, the body's form, `Idempotency-Key`; then `handler`.
    ///
    /// - Parameters:
    ///   - query: The parameters that the route knows.
    ///   - produces: The media types that it answers with, the standard one first.
    ///   - isIdempotent: Whether a `POST` takes an `Idempotency-Key`.
    ///   - replay: Makes the answer to a repeated request from what was kept, where that is not the answer itself.
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
                let caller = try await admit(request, access, &allowance)
                var call = Call(server: self, caller: caller, request: request, accepted: produces.first ?? "")
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
        return Route(method, pattern, body: rule(body), executor: executor(access)) { request in
            var allowance: RateLimiter.Allowance?
            var response = await answer(request, &allowance)
            if let allowance { response.headers += allowance.fields }
            // What an origin sent stays as it is.
            if produces != [MediaTypes.any] { response.compress(for: request) }
            return response
        }
    }

    /// Requests of apps run where they read. What watches the service is answered even when all readers are busy.
    private func executor(_ access: Access) -> (any TaskExecutor)? {
        if case .open = access { nil } else { service.readers }
    }

    private func rule(_ body: BodyForm) -> BodyRule {
        switch body {
        case .none: .none
        case .empty, .optionalJSON, .json: .collect(limit: settings.bodyLimit)
        case .batch: .collect(limit: settings.batchLimit)
        case .jsonOrLines, .task, .stream: .stream
        }
    }

    /// Whether the request may be made at all, and who makes it.
    ///
    /// - Parameter allowance: Set where the key's requests are limited.
    private func admit(
        _ request: HTTPRequest, _ access: Access, _ allowance: inout RateLimiter.Allowance?
    ) async throws -> Caller {
        if settings.isDevelopment, !HostField.namesThisMachine(request.headers["Host"] ?? "") {
            throw Problem(.misdirectedRequest, "With --dev only localhost and loopback addresses are served.")
        }
        if case .open = access { return .anyone }
        let caller = try await authenticator.caller(authorization: request.headers["Authorization"])
        allowance = limiter?.admit(caller.key)
        if let allowance, !allowance.isAdmitted {
            throw Problem(
                .rateLimited, "This key may make \(allowance.quota.counted("request")) a second, and made more.")
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
        return caller
    }
}

extension Call {
    /// Whether the body is lines of JSON.
    var hasLines: Bool { bodyType == MediaTypes.lines }

    /// Whether the body is a Metalink document.
    var hasMetalink: Bool { bodyType == Metalink.mediaType }

    /// The media type of the body, nil where it is not one we can read.
    private var bodyType: String? { request.headers["Content-Type"].flatMap(MediaTypes.ofBody) }

    private var hasBody: Bool {
        switch request.body {
        case .none: false
        case .bytes(let bytes): !bytes.isEmpty
        case .stream: request.framing != .length(0)
        }
    }

    /// Checks that the body is what the route takes, and collects one that comes as a stream but is not lines.
    fileprivate mutating func prepareBody(_ form: BodyForm) async throws {
        switch form {
        case .none: break
        case .stream: try refuseForm()
        case .empty:
            guard hasBody else { break }
            try requireJSON()
            _ = try read(NoMembers.self)
        case .optionalJSON: if hasBody { try requireJSON() }
        case .json, .batch:
            try requireBody()
            try requireJSON()
        case .jsonOrLines, .task:
            try requireBody()
            guard !hasLines else { return try refuseIdempotencyKey() }
            if form == .task, hasMetalink { try requireNoCoding() } else { try requireJSON() }
            try await collect()
        }
    }

    private func requireBody() throws {
        guard request.framing != .none else {
            throw Problem(.lengthRequired, "Send a body, with Content-Length or in chunks.")
        }
    }

    /// Whoever sends a form means what is in it, and would find the boundaries between the bytes.
    private func refuseForm() throws {
        guard bodyType?.hasPrefix("multipart/") != true else {
            throw Problem(
                .unsupportedMediaType,
                "Send the bytes themselves, not a form around them: curl --data-binary @FILE, or curl -T FILE -X POST.")
        }
    }

    /// Lines are answered as they come, so that no answer is kept that could be given again.
    private func refuseIdempotencyKey() throws {
        guard request.headers["Idempotency-Key"] == nil else {
            throw Problem.header("Idempotency-Key", "Lines take none: give each line a clientTaskId.")
        }
    }

    private func requireNoCoding() throws {
        guard request.headers["Content-Encoding"].map({ $0.lowercased() == "identity" }) ?? true else {
            throw Problem(.unsupportedMediaType, "The body must be sent without a Content-Encoding.")
        }
    }

    private func requireJSON() throws {
        try requireNoCoding()
        guard bodyType == MediaTypes.json else {
            throw Problem(.unsupportedMediaType, "The body must be application/json in UTF-8, and say so.")
        }
    }

    private mutating func collect() async throws {
        guard case .stream(let stream) = request.body else { return }
        let limit = server.settings.bodyLimit
        let tooLong = RefusalReason.payloadTooLarge(limit: limit)
        if case .length(let length) = request.framing, length > UInt64(limit) { throw tooLong }
        let deadline = service.clock.monotonic() + server.settings.bodyDeadline.milliseconds
        var bytes: [UInt8] = []
        while let more = try await stream.next() {
            guard bytes.count + more.count <= limit else { throw tooLong }
            guard service.clock.monotonic() < deadline else { throw RefusalReason.requestTimeout }
            bytes += more
        }
        request.body = .bytes(bytes)
    }
}

/// The `Host` field under `--dev`. It is checked so that a page of another site cannot reach the service through a name
/// of its own that leads to this machine (DNS rebinding).
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
