import Base
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

extension Call {
    var hasLines: Bool { bodyType == MediaTypes.lines }

    var hasMetalink: Bool { bodyType == Metalink.mediaType }

    /// The media type of the body, nil if the service cannot read it.
    private var bodyType: String? { request.headers["Content-Type"].flatMap(MediaTypes.ofBody) }

    private var hasBody: Bool {
        switch request.body {
        case .none: false
        case .bytes(let bytes): !bytes.isEmpty
        case .stream: request.framing != .none && request.framing != .length(0)
        }
    }

    /// Checks that the body has the route's form, and collects one that is neither lines nor bytes to store.
    mutating func prepareBody(_ form: BodyForm) async throws {
        switch form {
        case .none: break
        case .stream: try refuseForm()
        case .empty:
            try await collect()
            guard hasBody else { break }
            try requireJSON()
            _ = try read(NoMembers.self)
        case .optionalJSON:
            try await collect()
            if hasBody { try requireJSON() }
        case .json: try await collectJSON(limit: server.settings.bodyLimit)
        case .batch: try await collectJSON(limit: server.settings.batchLimit)
        case .batchOrLines:
            guard hasLines else { return try await collectJSON(limit: server.settings.batchLimit) }
            try requireBody()
            try refuseIdempotencyKey("give the version a name")
        case .task:
            try requireBody()
            guard !hasLines else { return try refuseIdempotencyKey("give each line a clientTaskId") }
            if hasMetalink { try requireNoCoding() } else { try requireJSON() }
            try await collect()
        }
    }

    private func requireBody() throws {
        guard request.framing != .none else {
            throw Problem(.lengthRequired, "Send a body, with Content-Length or in chunks.")
        }
    }

    /// A client that sends a form intends its parts, and would find the boundaries stored between them.
    private func refuseForm() throws {
        guard bodyType?.hasPrefix("multipart/") != true else {
            throw Problem(
                .unsupportedMediaType,
                "Send the bytes themselves, not a form around them: curl --data-binary @FILE, or curl -T FILE -X POST.")
        }
    }

    /// Lines are handled as they arrive, before their fingerprint is known.
    private func refuseIdempotencyKey(_ remedy: String) throws {
        guard request.headers["Idempotency-Key"] == nil else {
            throw Problem.header("Idempotency-Key", "Lines have no Idempotency-Key: \(remedy).")
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
            throw Problem(.unsupportedMediaType, "The Content-Type must be application/json, in UTF-8.")
        }
    }

    private mutating func collectJSON(limit: Int) async throws {
        try requireBody()
        try requireJSON()
        try await collect(limit: limit)
    }

    private mutating func collect() async throws { try await collect(limit: server.settings.bodyLimit) }

    /// Reads the whole body. It holds its share of the memory for bodies as its bytes arrive, until the request ends.
    /// An announced length holds nothing.
    ///
    /// - Throws: ``Problem``: `payload-too-large`, `request-timeout`, `rate-limited` (503) if there is no memory for
    ///   it, `unauthorized` if the key was revoked meanwhile.
    private mutating func collect(limit: Int) async throws {
        guard case .stream(let stream) = request.body else { return }
        let tooLong = Problem(.payloadTooLarge, "The body may have \(limit.counted("byte")).")
        let noRoom = Problem(.rateLimited, "Too many large requests are being read; try again soon.", status: 503)
        let share = server.bodies.share(of: caller.principal)
        if case .length(let length) = request.framing {
            guard length <= UInt64(limit) else { throw tooLong }
            guard share.hasRoom(for: Int(length)) else { throw noRoom }
        }
        stream.end(within: server.settings.bodyDeadline)
        var bytes: [UInt8] = []
        while let more = try await stream.next() {
            guard bytes.count + more.count <= limit else { throw tooLong }
            guard share.hold(bytes.count + more.count) else { throw noRoom }
            if bytes.isEmpty { bytes = more } else { bytes += more }
        }
        guard request.clientGone.reason != .revoked else { throw Self.revoked }
        bodyShare = share
        request.body = .bytes(bytes)
    }
}
