import Base
import Core
import Files
import HTTPServer
import Mapping
import Notation
import Service
import Wire

/// The bytes that tasks received.
struct ContentRoutes {
    let server: APIServer

    var routes: [Route] {
        let path = "/v1/sessions/{identifier}/tasks/{taskIdentifier}/content"
        return [
            server.route("GET", path, .read, produces: [MediaTypes.any]) { call in try await call.content() },
            server.route("POST", path + "/claim", .write, body: .empty) { call in
                let session = try await call.session()
                let number = try call.number("taskIdentifier")
                let task = try await call.service.task(number, in: session.id)
                try await call.service.claimContent(of: task.id)
                let claimed = try await call.service.task(number, in: session.id)
                return call.resource(call.service.wireTask(claimed, in: session), revision: claimed.revision)
            },
        ]
    }
}

extension Call {
    fileprivate func content() async throws -> HTTPResponse {
        let session = try await session()
        let task = try await service.task(number("taskIdentifier"), in: session.id)
        guard task.state == .completed else { throw DomainError.notFound }
        let (record, bytes) = try await service.content(of: task)
        let tag = "\"\(record.digest.value)\""
        let fields = ContentFields.fields(of: record, task.result?.response, tag: tag)
        if has(tag, in: "If-None-Match") {
            return HTTPResponse(status: 304, headers: fields.filter { $0.0 == "ETag" || $0.0 == "Repr-Digest" })
        }
        let range = request.method == "GET" ? request.headers.all("Range") : []
        // If-Range and several lines of Range: the whole is always a right answer (RFC 9110 section 14.2).
        let selected = ByteRange.select(
            range: range.count == 1 ? range[0] : nil, ifRange: request.headers["If-Range"], entityTag: tag,
            length: record.length)
        switch selected {
        case .whole:
            return HTTPResponse(
                status: 200, headers: fields, body: try bytes.body(from: 0, length: record.length))
        case .part(let first, let last):
            return HTTPResponse(
                status: 206, headers: fields + [("Content-Range", "bytes \(first)-\(last)/\(record.length)")],
                body: try bytes.body(from: first, length: last - first + 1))
        case .unsatisfiable:
            var problem = Problem(.rangeNotSatisfiable, "The content has \(record.length) bytes.")
            problem.instance = request.path
            return problem.response(headers: [("Content-Range", "bytes */\(record.length)")])
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

/// The header fields that describe a content.
enum ContentFields {
    static func fields(
        of record: ContentRecord, _ response: Core.TaskResponse?, tag: String
    ) -> [(String, String)] {
        var fields = [
            ("Content-Type", type(response)), ("ETag", tag), ("Accept-Ranges", "bytes"),
            (
                "Content-Disposition",
                ContentDisposition(type: "attachment", filename: response?.suggestedFilename).headerValue
            ),
            // An origin decides about type and bytes: a browser shall not run them as if they were ours.
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
        ]
        if record.digest.algorithm == .sha256, let digest = [UInt8](hexadecimal: record.digest.value) {
            fields.append(("Repr-Digest", DigestField.format([.sha256: digest])))
        }
        return fields
    }

    /// What the origin called it, where that can stand in a header field.
    private static func type(_ response: Core.TaskResponse?) -> String {
        let type = response?.headers["Content-Type"] ?? response?.mimeType ?? ""
        let isPlain = type.utf8.count <= 256 && type.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        return isPlain && MediaType(type) != nil ? type : "application/octet-stream"
    }
}
