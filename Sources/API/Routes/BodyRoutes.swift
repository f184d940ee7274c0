import Base
import Core
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

extension APIServer {
    /// Bodies of uploads: stored at once, or as a draft with appends (IETF draft "Resumable Uploads for HTTP").
    var bodyRoutes: [Route] {
        let one = "/v1/bodies/{bodyId}"
        return [
            route("POST", "/v1/bodies", .write, body: .stream, replay: { try await $0.repeatedBody($1) }) {
                try await $0.createBody()
            },
            route("GET", "/v1/bodies", .read, query: ["state", "inUse"] + Call.listing) {
                try await $0.listBodies()
            },
            route("GET", one, .read) { .json(StoredBody(try await $0.storedBody())) },
            route("HEAD", one, .read) {
                let fields = try await $0.storedBody().uploadFields(withLength: true)
                return HTTPResponse(status: 200, headers: [("Content-Type", MediaTypes.json)] + fields)
            },
            route("PATCH", one, .write, body: .stream) { try await $0.appendBody() },
            route("DELETE", one, .write, body: .empty) {
                try await $0.service.deleteBody($0.parameter("bodyId"), app: $0.app)
                return .nothing
            },
        ]
    }
}

extension Call {
    fileprivate func storedBody() async throws -> BodyRecord {
        try await service.body(parameter("bodyId"), app: app)
    }

    fileprivate func listBodies() async throws -> HTTPResponse {
        let app = try app
        let areComplete = try queryWords("state", [("complete", true), ("partial", false)])
        let isInUse = try queryWord("inUse", [("true", true), ("false", false)])
        let span = try span()
        return try await page(
            fetch: { cursor, limit in
                try await service.bodies(
                    of: app, isComplete: areComplete.count == 1 ? areComplete.first : nil, isInUse: isInUse, span,
                    after: cursor, limit: limit)
            },
            position: \.cursor, write: { ListedBody($0.body) })
    }

    // MARK: Creating

    fileprivate func createBody() async throws -> HTTPResponse {
        let order = try BodyOrder(self)
        var reading = try BodyReading(self, at: 0, order)
        return try await creating { recording in
            try await service.receiveBody(order, app: app, recording: recording) { try await reading.next() }
        } answer: {
            $0.creationAnswer
        }
    }

    /// The stored response to a repeated request, whose bytes must be those of the first request.
    fileprivate func repeatedBody(_ kept: StoredAnswer) async throws -> HTTPResponse {
        var reading = try BodyReading(self, at: 0, BodyOrder(self))
        let digest = Digest()
        while let bytes = try await reading.next() { digest.update(bytes) }
        let first = try StoredBody(parsing: kept.body, .tolerant).digest?.value
        guard first == nil || first == digest.finish().hexadecimal else {
            throw Problem(.idempotencyMismatch, "This Idempotency-Key was used for other bytes.")
        }
        return HTTPResponse(kept)
    }

    // MARK: Appending

    fileprivate func appendBody() async throws -> HTTPResponse {
        guard MediaTypes.ofBody(request.headers["Content-Type"] ?? "") == "application/partial-upload" else {
            throw Problem(.unsupportedMediaType, "The Content-Type must be application/partial-upload.")
        }
        guard let offset = try fieldNumber("Upload-Offset") else {
            throw Problem.header("Upload-Offset", "This must be the offset of the bytes.")
        }
        let draft = try await storedBody()
        var order = try BodyOrder(self)
        if let length = order.expectedLength, let known = draft.expectedLength, length != known {
            throw BodyReading.inconsistentLength(known)
        }
        order.expectedLength = order.expectedLength ?? draft.expectedLength
        guard !draft.isComplete, draft.length == offset else { return mismatch(draft, at: draft.length) }
        var reading = try BodyReading(self, at: offset, order)
        do {
            let body = try await service.appendBody(draft.publicId, app: app, at: offset, order) {
                try await reading.next()
            }
            guard body.isComplete else { return HTTPResponse(status: 204, headers: body.uploadFields()) }
            return .json(StoredBody(body), headers: body.uploadFields())
        } catch ServiceError.uploadOffsetMismatch(let offset) {
            return mismatch(draft, at: offset)
        }
    }

    /// 409, with the offset at which the client has to continue.
    private func mismatch(_ draft: BodyRecord, at offset: Int64) -> HTTPResponse {
        var now = draft
        now.length = offset
        return server.problem(for: ServiceError.uploadOffsetMismatch(offset: offset), of: request)
            .response(headers: now.uploadFields())
    }

    /// A whole number in a header field, as resumable uploads use them.
    fileprivate func fieldNumber(_ name: String) throws -> Int64? {
        let values = request.headers.all(name)
        guard let text = values.first else { return nil }
        guard values.count == 1, let number = Int64(digits: text, atMost: 15) else {
            throw Problem.header(name, "This must be a whole number of bytes.")
        }
        return number
    }
}

extension BodyRecord {
    /// The state of an upload.
    fileprivate func uploadFields(withLength: Bool = false) -> [(String, String)] {
        var fields = [
            ("Upload-Complete", isComplete ? "?1" : "?0"), ("Upload-Offset", "\(length)"),
            ("Cache-Control", "no-store"),
        ]
        let whole = isComplete ? length : expectedLength
        if withLength, let whole { fields.append(("Upload-Length", "\(whole)")) }
        return fields
    }

    fileprivate var creationAnswer: HTTPResponse {
        .json(StoredBody(self), status: 201, headers: [("Location", "/v1/bodies/\(publicId)")] + uploadFields())
    }
}

extension BodyOrder {
    /// The order that the request's header fields describe.
    fileprivate init(_ call: Call) throws {
        let request = call.request
        guard request.framing != .none else {
            throw Problem(.lengthRequired, "Send the bytes with Content-Length or in chunks.")
        }
        let complete = request.headers.all("Upload-Complete")
        guard complete.count <= 1, ["?0", "?1"].contains(complete.first ?? "?1") else {
            throw Problem.header("Upload-Complete", "This must be ?0 or ?1.")
        }
        let isAppending = request.method == "PATCH"
        // Without the field an append is a part, and any other request the whole (section 4 of the draft).
        let isComplete = complete.first.map { $0 == "?1" } ?? !isAppending
        self.init(
            mediaType: isAppending ? nil : request.headers["Content-Type"],
            expectedLength: try call.fieldNumber("Upload-Length"), isComplete: isComplete)
        if !isAppending, isComplete, expectedLength == nil, case .length(let length) = request.framing {
            expectedLength = Int64(clamping: length)
        }
        guard isComplete || !isAppending else { return }
        for (algorithm, digest) in try BodyReading.digests(request, "Repr-Digest") { digests[algorithm] = digest }
    }
}

/// Reads a body and checks the message's own digests and lengths of its bytes.
struct BodyReading {
    private let stream: RequestStream?
    private let client: ClientGone
    private let expected: [DigestAlgorithm: [UInt8]]
    private let running: [Digest]
    /// The required length at the end, if it is known and these bytes are the last.
    private let wholeLength: Int64?
    private var length: Int64

    /// - Parameter offset: The position of the first byte.
    /// - Throws: ``Problem`` for a digest that cannot be read, and for lengths that contradict each other.
    init(_ call: Call, at offset: Int64, _ order: BodyOrder) throws {
        if case .stream(let stream) = call.request.body { self.stream = stream } else { stream = nil }
        client = call.request.clientGone
        expected = try Self.digests(call.request, "Content-Digest")
        running = expected.keys.map { Digest($0) }
        wholeLength = order.isComplete ? order.expectedLength : nil
        length = offset
        guard case .length(let count) = call.request.framing, let expected = order.expectedLength else { return }
        let end = offset + Int64(clamping: min(count, 1 << 62))
        guard end <= expected, wholeLength == nil || end == expected else { throw Self.inconsistentLength(expected) }
    }

    /// The next bytes, nil at the end.
    ///
    /// - Throws: Among others ``Problem`` `unauthorized` if the key was revoked meanwhile.
    mutating func next() async throws -> [UInt8]? {
        let next = try await stream?.next()
        guard client.reason != .revoked else { throw Call.revoked }
        guard let bytes = next else {
            if let wholeLength, length != wholeLength { throw Self.inconsistentLength(wholeLength) }
            for digest in running where digest.finish() != expected[digest.algorithm] {
                throw ServiceError.digestMismatch
            }
            return nil
        }
        for digest in running { digest.update(bytes) }
        length += Int64(bytes.count)
        return bytes
    }

    static func inconsistentLength(_ length: Int64) -> Problem {
        Problem.header("Upload-Length", "The bytes do not add up to \(length).")
    }

    /// The digests in a field of RFC 9530.
    static func digests(_ request: HTTPRequest, _ name: String) throws -> [DigestAlgorithm: [UInt8]] {
        let values = request.headers.all(name)
        guard !values.isEmpty else { return [:] }
        guard let digests = DigestField.parse(values) else {
            throw Problem.header(name, "This must be digests such as sha-256=:BASE64:.")
        }
        return digests
    }
}
