import Base
import Core
import Files
import Formats
import HTTPServer
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    var contentRoutes: [Route] {
        let path = "/v1/sessions/{identifier}/tasks/{taskIdentifier}/content"
        return [
            route("GET", path, .read, query: ["redirect", "arriving"], produces: [MediaTypes.any]) {
                try await $0.content()
            },
            route("POST", path + "/claim", .write, body: .empty) { try await $0.claimContent() },
        ]
    }
}

extension Call {
    fileprivate func content() async throws -> HTTPResponse {
        let session = try await session()
        let isArriving = try queryWord("arriving", [("1", true)]) ?? false
        var task = try await service.task(number("taskIdentifier"), in: session.id)
        if isArriving, let response = try await arriving(&task) { return response }
        try requireEnd(of: task)
        let (record, source) = try await havingContent(task) { try await service.content(of: task) }
        let tag =
            isArriving ? tag(ofBytes: task.result?.progress.version ?? 0, of: task) : Self.tag(of: record)
        var fields = ContentFields.fields(task.result?.response, tag: tag)
        if let digest = record.digest.field { fields.append(("Repr-Digest", digest)) }
        if let response = try conditionalResponse(tag, fields) { return response }
        if !isArriving, try queryWord("redirect", [("1", true)]) == true,
            let answer = try await redirection(to: source, fields)
        {
            return answer
        }
        return try await response(of: source, length: record.length, tag, fields)
    }

    /// The requested range of a content.
    ///
    /// - Parameters:
    ///   - tag: The entity tag of the content.
    ///   - fields: Of the response with all bytes.
    ///   - hold: Keeps the content from being removed while it is sent.
    func response(
        of source: ContentSource, length: Int64, _ tag: String, _ fields: [(String, String)],
        holding hold: SetReaders.Hold? = nil
    ) async throws -> HTTPResponse {
        // With If-Range or several lines of Range, the whole is always a correct response (RFC 9110 section 14.2).
        let selected = ByteRange.select(
            range: requestedRange, ifRange: request.headers["If-Range"], entityTag: tag, length: length)
        switch selected {
        case .whole:
            return HTTPResponse(
                status: 200, headers: fields, body: try await body(of: source, from: 0, length: length, hold))
        case .part(let first, let last):
            return HTTPResponse(
                status: 206, headers: fields + [("Content-Range", "bytes \(first)-\(last)/\(length)")],
                body: try await body(of: source, from: first, length: last - first + 1, hold))
        case .unsatisfiable: return unsatisfiable(length)
        }
    }

    /// The range that the client requests; `nil` for the whole content.
    var requestedRange: String? {
        let ranges = request.method == "GET" ? request.headers.all("Range") : []
        return ranges.count == 1 ? ranges[0] : nil
    }

    /// 304, if the client has the bytes of this tag.
    ///
    /// - Parameter fields: Of the response with the bytes.
    /// - Throws: ``Problem`` `precondition-failed`.
    func conditionalResponse(_ tag: String, _ fields: [(String, String)]) throws -> HTTPResponse? {
        if request.headers["If-Match"] != nil, !expects(tag), !expects("*") {
            throw Problem(.preconditionFailed, "The content's bytes are not those that If-Match names.")
        }
        guard has(tag, in: "If-None-Match") else { return nil }
        return HTTPResponse(status: 304, headers: fields.filter { $0.0 == "ETag" || $0.0 == "Repr-Digest" })
    }

    /// 416.
    func unsatisfiable(_ length: Int64) -> HTTPResponse {
        let problem = Problem(.rangeNotSatisfiable, "The content has \(length.counted("byte")).")
        return server.problem(for: problem, of: request).response(headers: [("Content-Range", "bytes */\(length)")])
    }

    /// Redirects the client to the bucket that has the bytes; nil if the service has them itself.
    private func redirection(to source: ContentSource, _ fields: [(String, String)]) async throws -> HTTPResponse? {
        guard case .bucket(let objects) = source else { return nil }
        let told = fields.filter { $0.0 == "Content-Type" || $0.0 == "Content-Disposition" }
        guard let address = try await service.address(of: objects, request.method, fields: told) else { return nil }
        return HTTPResponse(status: 307, headers: [("Location", address), ("Cache-Control", "no-store")])
    }

    private func body(
        of source: ContentSource, from offset: Int64, length: Int64, _ hold: SetReaders.Hold?
    ) async throws -> HTTPResponseBody {
        switch source {
        case .here(let bytes):
            guard let hold, length > 0 else { return try bytes.body(from: offset, length: length) }
            let service = service
            return .sized(length: length) { writer in
                defer { withExtendedLifetime(hold) {} }
                try await service.read(bytes, offset..<(offset + length)) { try await writer.write($0) }
            }
        case .bucket where request.method == "HEAD": return .sized(length: length) { _ in }
        case .bucket(let objects):
            let reading = try await service.read(objects, offset..<(offset + length))
            return .sized(length: length) { writer in
                defer { withExtendedLifetime(hold) {} }
                try await reading.copy { try await writer.write($0) }
            }
        }
    }

    fileprivate func claimContent() async throws -> HTTPResponse {
        let session = try await session()
        let task = try await service.task(number("taskIdentifier"), in: session.id)
        try requireEnd(of: task)
        let tag = task.content.flatMap { $0.isExpired ? nil : Self.tag(of: $0) }
        let expected: ClaimCondition? =
            if let tag, expects(tag) {
                .unexpired
            } else {
                try expectedRevision(of: Version(task)).map { .revision($0) }
            }
        try await havingContent(task) { try await service.claimContent(of: task.id, expecting: expected) }
        let claimed = try await service.task(task.number, in: session.id)
        return resource(service.wireTask(claimed, in: session), version: Version(claimed))
    }

    private func requireEnd(of task: TaskRecord) throws {
        guard task.state == .completed else {
            throw Problem(.contentNotReady, "Task \(task.number) has no content yet: it is \(task.state).")
        }
    }

    private static func tag(of record: ContentRecord) -> String { "\"\(record.digest.value)\"" }

    /// Distinguishes a task without content from a task that does not exist.
    private func havingContent<Result>(_ task: TaskRecord, _ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch DomainError.notFound {
            throw Problem(.notFound, "Task \(task.number) has no content.")
        }
    }
}

extension StoredBytes {
    func body(from offset: Int64, length: Int64) throws -> HTTPResponseBody {
        switch self {
        case .bytes(let bytes): .bytes(Array(bytes[Int(offset)..<Int(offset + length)]))
        case .file: .file(descriptor: try descriptor() ?? -1, offset: offset, length: length)
        }
    }
}

extension Core.ContentDigest {
    /// The value of `Repr-Digest` (RFC 9530); `nil` for another algorithm than SHA-256.
    var field: String? {
        guard algorithm == .sha256, let bytes = [UInt8](hexadecimal: value) else { return nil }
        return DigestField.format([.sha256: bytes])
    }
}

enum ContentFields {
    static func fields(_ response: Core.TaskResponse?, tag: String) -> [(String, String)] {
        fields(
            type: response?.headers["Content-Type"] ?? response?.mimeType, filename: response?.suggestedFilename,
            tag: tag)
    }

    /// - Parameter type: The origin's type.
    static func fields(type: String?, filename: String?, tag: String) -> [(String, String)] {
        [
            ("Content-Type", valid(type ?? "")), ("ETag", tag), ("Accept-Ranges", "bytes"),
            ("Content-Disposition", ContentDisposition(type: "attachment", filename: filename).headerValue),
            // Type and bytes come from an origin: a browser must not run them with the rights of this service.
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
        ]
    }

    /// The type, if it is valid in a header field.
    private static func valid(_ type: String) -> String {
        let isPlain = type.utf8.count <= 256 && type.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        return isPlain && MediaType(type) != nil ? type : "application/octet-stream"
    }
}
