import Base
import Core
import Formats
import HTTPServer
import Wire
import WireMapping

extension HTTPResponse {
    /// A JSON response.
    ///
    /// - Parameter count: The approximate length in bytes.
    static func json(
        _ value: some JSONWritable, status: Int = 200, headers: [(String, String)] = [], expecting count: Int = 2048
    ) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("Content-Type", MediaTypes.json)] + headers,
            body: .bytes(value.jsonBytes(expecting: count)))
    }

    static let nothing = HTTPResponse(status: 204)
}

/// A revision of one app, session or task, and of no other with the same name at another time; or a state.
struct Version: Sendable {
    let revision: Int64
    /// Row numbers are never reused.
    fileprivate let row: String

    init(_ app: AppRecord) { (revision, row) = (app.revision, "app \(app.id.rawValue)") }

    init(_ session: SessionRecord) { (revision, row) = (session.revision, "session \(session.id.rawValue)") }

    init(_ task: TaskRecord) { (revision, row) = (task.revision, "task \(task.id.rawValue)") }

    init(_ set: SetRecord) { (revision, row) = (set.revision, "set \(set.id.rawValue)") }

    init(_ version: SetVersionRecord) { (revision, row) = (version.revision, "set version \(version.id.rawValue)") }

    init(_ stamp: TaskStamp) { (revision, row) = (stamp.revision, "task \(stamp.task.rawValue)") }

    /// The version of a task's bytes.
    fileprivate init(bytes version: Int64, of task: TaskRecord) {
        revision = version
        row = "bytes \(task.id.rawValue)"
    }

    /// The version of a resource without a revision: its state itself.
    init(ofState state: some JSONWritable, named name: String) {
        (revision, row) = (0, "\(name) \(String(decoding: state.jsonBytes, as: UTF8.self))")
    }
}

extension Call {
    /// A resource with its `ETag`, or 304 if the client has it already.
    ///
    /// The tag begins with the version, which `If-Match` compares, and ends with a digest of the whole response, which
    /// includes counters, so that equal tags mean equal bytes.
    ///
    /// - Parameter isLive: Whether the response contains progress, so that it is never 304.
    func resource(
        _ value: some JSONWritable, version: Version, status: Int = 200, location: String? = nil, isLive: Bool = false
    ) -> HTTPResponse {
        let bytes = value.jsonBytes
        let tag = beginning(of: version) + Array(Digest.of(bytes).prefix(6)).hexadecimal + "\""
        if !isLive, let unchanged = notModified(tag, length: bytes.count) { return unchanged }
        var headers = [("Content-Type", MediaTypes.json), ("ETag", tag)]
        if let location { headers.append(("Location", location)) }
        return HTTPResponse(status: status, headers: headers, body: .bytes(bytes))
    }

    /// 304 if the client has the representation already, plain or compressed.
    ///
    /// - Parameters:
    ///   - tag: Of the plain representation.
    ///   - length: Of the plain representation.
    func notModified(_ tag: String, length: Int) -> HTTPResponse? {
        guard request.method == "GET" || request.method == "HEAD", request.headers["If-None-Match"] != nil else {
            return nil
        }
        let isCompressible = length > ContentCoding.minimumLength
        var tags = isCompressible ? [tag, ContentCoding.tag(ofCompressed: tag)] : [tag]
        if ContentCoding.isGzipWelcome(request.headers) { tags.reverse() }
        guard let known = tags.first(where: { has($0, in: "If-None-Match") }) else { return nil }
        var response = HTTPResponse(status: 304, headers: [("ETag", known)])
        if isCompressible { response.varyByCoding() }
        return response
    }

    /// Whether a field of entity tags names `tag`. `If-None-Match` compares weakly (RFC 9110 section 13.1.2).
    func has(_ tag: String, in field: String) -> Bool {
        entityTags(field).contains { $0 == "*" || $0 == tag || $0 == "W/\(tag)" }
    }

    /// Checks `If-Match` against the current version.
    ///
    /// - Returns: The revision that the change requires, nil if the client requires none.
    /// - Throws: ``Problem`` `precondition-failed`.
    func expectedRevision(of version: Version?) throws -> Int64? {
        guard request.headers["If-Match"] != nil else { return nil }
        let tags = entityTags("If-Match")
        guard let version else {
            throw Problem(.preconditionFailed, "The resource does not exist yet, so that If-Match matches nothing.")
        }
        if tags.contains("*") { return nil }
        guard tags.contains(where: { $0.hasPrefix(beginning(of: version)) }) else {
            throw Problem(
                .preconditionFailed,
                version.revision == 0
                    ? "The resource has changed since."
                    : "The resource has changed since, or was replaced; its revision is \(version.revision).")
        }
        return version.revision
    }

    /// Whether `If-Match` names a tag. It compares strongly (RFC 9110 section 13.1.1).
    func expects(_ tag: String) -> Bool { entityTags("If-Match").contains(tag) }

    /// Reads a resource and changes it, again if another client changed it in between. ``expectedRevision(of:)`` checks
    /// the client's condition for each version that was read.
    func untilUndisturbed<Result>(_ change: () async throws -> Result) async throws -> Result {
        while true {
            do {
                return try await change()
            } catch DomainError.revisionMismatch {
                try Task.checkCancellation()
            }
        }
    }

    /// The tag of a task's bytes while they arrive, and afterwards: the same from the first byte on.
    func tag(ofBytes version: Int64, of task: TaskRecord) -> String {
        beginning(of: Version(bytes: version, of: task)) + "bytes\""
    }

    /// The common beginning of all tags of a version. Keyed, so that it does not reveal row numbers.
    private func beginning(of version: Version) -> String {
        let mark = HMAC.sha256(key: server.settings.cursorKey, message: Array(version.row.utf8)).prefix(6)
        return "\"r\(version.revision)-\(Array(mark).hexadecimal)-"
    }

    /// Refuses lists of entity tags that are unreasonably long.
    func checkConditions() throws {
        for field in ["If-Match", "If-None-Match"] {
            let length = request.headers.all(field).reduce(0) { $0 + $1.utf8.count }
            if length > 1024 { throw Problem.header(field, "This may have at most 1024 bytes.") }
        }
    }

    private func entityTags(_ field: String) -> [String] {
        request.headers.all(field).flatMap { $0.split(separator: ",") }.map { $0.trimmed }
    }

    /// Responds with the created resource. With an `Idempotency-Key`, the response is stored in the same commit.
    ///
    /// - Parameter answer: Renders the response from the result; runs on the writer's thread.
    func creating<Result>(
        holdsSecrets: Bool = false, _ create: (Recording<Result>?) async throws -> Result,
        answer: @escaping @Sendable (Result) -> HTTPResponse
    ) async throws -> HTTPResponse {
        answer(try await create(idempotency?.recording(holdsSecrets: holdsSecrets, answer)))
    }
}
