import Base
import Core
import HTTPServer
import Service
import Wire

/// Repeats the responses of repeated requests. The store keeps the responses; requests in flight are known here.
final class IdempotencyKeys: Sendable {
    struct Entry: Sendable {
        let principal: String
        let key: String
        /// SHA-256 of method, target and body.
        let fingerprint: [UInt8]
        /// Whether a commit has stored the response.
        let isRecorded = Locked(false)

        func recording<Result>(
            holdsSecrets: Bool = false, _ render: @escaping @Sendable (Result) -> HTTPResponse
        ) -> Recording<Result> {
            let isRecorded = isRecorded
            return Recording(principal: principal, key: key, fingerprint: fingerprint) { result in
                isRecorded.withLock { $0 = true }
                return StoredAnswer(render(result), holdsSecrets: holdsSecrets)
            }
        }
    }

    private let service: Service
    /// Fingerprints of requests in flight, by principal and key.
    private let running = Locked<[String: [UInt8]]>([:])

    init(service: Service) { self.service = service }

    /// Responds to a request with a key: with the stored response, or else with `body`, whose success is stored.
    ///
    /// - Parameter replay: Makes the response from the stored one.
    func answer(
        _ entry: Entry, replay: (StoredAnswer) async throws -> HTTPResponse = { HTTPResponse($0) },
        _ body: (Entry) async throws -> HTTPResponse
    ) async throws -> HTTPResponse {
        let name = "\(entry.principal) \(entry.key)"
        let other = running.withLock { running -> [UInt8]? in
            if let other = running[name] { return other }
            running[name] = entry.fingerprint
            return nil
        }
        if let other {
            guard other == entry.fingerprint else { throw Self.mismatch }
            throw Problem(.idempotencyInProgress, "The first request with this Idempotency-Key is still running.")
        }
        defer { _ = running.withLock { $0.removeValue(forKey: name) } }
        if let kept = try await service.storedAnswer(principal: entry.principal, key: entry.key) {
            guard kept.fingerprint == entry.fingerprint else { throw Self.mismatch }
            var response = try await replay(kept.answer)
            response.headers.append(("Idempotency-Replayed", "true"))
            return response
        }
        let response = try await body(entry)
        if response.status < 400, !entry.isRecorded.withLock({ $0 }) {
            // Sealed, because only the handler knows whether the response holds a secret.
            try await service.record(entry.recording(holdsSecrets: true) { _ in response })
        }
        return response
    }

    private static var mismatch: Problem {
        Problem(.idempotencyMismatch, "This Idempotency-Key was used for another request.")
    }

    /// The key of a request, if it has one.
    ///
    /// - Throws: ``Problem`` for a key that is not 1–255 visible ASCII characters.
    static func key(of request: HTTPRequest) throws -> String? {
        let values = request.headers.all("Idempotency-Key")
        guard let key = values.first else { return nil }
        guard values.count == 1, (1...255).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Problem.header("Idempotency-Key", "This must be 1 to 255 visible ASCII characters.") }
        return key
    }

    static func fingerprint(of request: HTTPRequest, body: [UInt8]) -> [UInt8] {
        let digest = Digest()
        digest.update(Array("\(request.method) \(request.rawTarget)\n".utf8))
        digest.update(body)
        return digest.finish()
    }
}

extension StoredAnswer {
    /// The stored part of a response. A streamed body is not stored.
    init(_ response: HTTPResponse, holdsSecrets: Bool) {
        var bytes: [UInt8] = []
        if case .bytes(let body) = response.body { bytes = body }
        self.init(
            status: response.status,
            headers: HTTPFields(response.headers.map { HTTPField(name: $0.0, value: $0.1) }), body: bytes,
            holdsSecrets: holdsSecrets)
    }
}

extension HTTPResponse {
    init(_ answer: StoredAnswer) {
        self.init(
            status: answer.status, headers: answer.headers.fields.map { ($0.name, $0.value) },
            body: answer.body.isEmpty ? .none : .bytes(answer.body))
    }
}
