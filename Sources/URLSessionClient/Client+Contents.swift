public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The contents of finished tasks.
///
/// Long contents are read in pieces, with a request each, because URLSession keeps a response in memory until it is
/// complete. Memory use is therefore constant for any length, a slow disk slows the reading down, and a broken
/// connection costs one piece.
extension Client {
    /// Consecutive bytes of a content.
    public struct Piece: Sendable {
        /// The offset of the piece in the content.
        public let offset: Int64
        public let bytes: Data
        /// The length of the whole content.
        public let length: Int64
    }

    /// The length of a piece in bytes.
    static let pieceLength = 4 << 20

    /// The bytes of a finished download, all of them in memory.
    public func content(ofTask number: Int64, in session: String) async throws -> [UInt8] {
        try await exchange("GET", Self.contentPath(number, session))
    }

    /// Passes the bytes of a finished download (or of the response to an upload) from an offset to the end to `use`, in
    /// pieces.
    ///
    /// If the service becomes unavailable, the call waits for up to a minute and a half.
    ///
    /// - Throws: The errors of `use`, which end the reading; ``Wire/Problem``, for instance if the content expired;
    ///   ``ClientError/contentChanged`` if the task has another content.
    public func content(
        ofTask number: Int64, in session: String, from offset: Int64 = 0, each use: (Piece) throws -> Void
    ) async throws {
        try await bytes(at: Self.contentPath(number, session), from: offset, each: use)
    }

    /// Passes the bytes of a resource with ranges to `use`, as ``content(ofTask:in:from:each:)`` does.
    ///
    /// - Parameter patience: The waits for an unavailable service.
    func bytes(
        at path: [String], from offset: Int64 = 0, patience: Patience = Patience(limit: 10),
        each use: (Piece) async throws -> Void
    ) async throws {
        var (place, tag, patience) = (offset, String?.none, patience)
        while true {
            try Task.checkCancellation()
            let piece: (Piece, tag: String?)?
            do {
                piece = try await self.piece(of: path, at: place, tag: tag)
                patience.succeeded()
            } catch {
                try await patience.wait(after: error)
                continue
            }
            guard let (piece, newTag) = piece else { return }
            try await use(piece)
            place += Int64(piece.bytes.count)
            tag = newTag
            guard place < piece.length else { return }
        }
    }

    /// Saves the content of a finished task in a file, which appears completely or not at all, and is synced when the
    /// call returns.
    ///
    /// Until then the bytes are beside it in `.NAME.part-DIGEST`. They stay there after a cancellation or the end of
    /// the process. The next call for the same content and file resumes, and compares the digest.
    ///
    /// If the service becomes unavailable, the call waits for up to a minute and a half.
    ///
    /// - Parameters:
    ///   - path: The path of the file. Its folder must exist.
    ///   - replacing: Whether an existing file of that name is replaced; otherwise the call throws.
    ///   - progress: Called after each piece with the saved and the total number of bytes.
    /// - Returns: The length and digest of the content.
    /// - Throws: ``ClientError/file(_:code:)`` with `EEXIST` if a file of that name exists.
    @discardableResult
    public func content(
        ofTask number: Int64, in session: String, to path: String, replacing: Bool = false,
        progress: @Sendable (_ received: Int64, _ length: Int64) -> Void = { _, _ in }
    ) async throws -> Content {
        let content = try await Patience.insist(limit: 10) { try await task(number, in: session).content }
        guard let content else { throw ClientError.noContent }
        try await save(Self.contentPath(number, session), content, to: path, replacing: replacing, progress: progress)
        return content
    }

    /// Saves the bytes of a resource with ranges, as ``content(ofTask:in:to:replacing:progress:)`` does.
    ///
    /// - Parameters:
    ///   - content: The length and digest of the bytes.
    ///   - verifying: Whether the digest is compared in any case, not only after a resumption.
    func save(
        _ resource: [String], _ content: Content, to path: String, replacing: Bool, verifying: Bool = false,
        progress: @Sendable (_ received: Int64, _ length: Int64) -> Void
    ) async throws {
        if !replacing, LocalFile.exists(path) { throw ClientError.file(path, code: LocalFile.alreadyExists) }
        let part = LocalFile.neighbour(of: path, ending: ".part-\(content.digest.value.prefix(16))")
        let file = try LocalFile(writing: part)
        var start = try file.length()
        if start > content.length {
            try file.truncate()
            start = 0
        }
        let isResumed = start > 0
        progress(start, content.length)
        if start < content.length {
            try await bytes(at: resource, from: start) { piece in
                try file.write(piece.bytes, at: piece.offset)
                progress(piece.offset + Int64(piece.bytes.count), piece.length)
            }
        }
        if isResumed || verifying, content.digest.algorithm == .sha256, try file.sha256() != content.digest.value {
            LocalFile.remove(part)
            guard isResumed else { throw ClientError.contentChanged }
            // The file was no beginning of the content. A crash of the machine can leave such a file.
            return try await save(
                resource, content, to: path, replacing: replacing, verifying: verifying, progress: progress)
        }
        guard try file.length() == content.length else { throw ClientError.contentChanged }
        try file.publish(as: path, replacing: replacing)
    }

    /// Whether the file at a path has the length and SHA-256 of a content; `false` if there is no such file.
    package static func file(_ path: String, has content: Content) -> Bool {
        guard content.digest.algorithm == .sha256 else { return false }
        do {
            let file = try LocalFile(reading: path)
            return try file.length() == content.length && file.sha256() == content.digest.value
        } catch {
            return false
        }
    }

    /// Whether the file in which a content was saved still has it. Without a SHA-256 only the length is compared.
    package static func file(_ path: String, stillHas content: Content) -> Bool {
        guard content.digest.algorithm != .sha256 else { return file(path, has: content) }
        return (try? LocalFile(reading: path).length()) == content.length
    }

    /// Frees the content at once, because the app has it.
    public func claimContent(ofTask number: Int64, in session: String) async throws -> SessionTask {
        try await send("POST", Self.contentPath(number, session) + ["claim"])
    }

    /// Frees the contents of all matching tasks of a session.
    public func claimContents(
        ofTasks selection: TaskSelection = TaskSelection(), in session: String
    ) async throws -> SelectionAnswer {
        try await send(
            "POST", ["v1", "sessions", session, "tasks", "claim"], body: selection.jsonBytes, mayTakeLong: true)
    }

    /// - Returns: `nil` if there are no bytes after the offset.
    private func piece(
        of resource: [String], at offset: Int64, tag: String?
    ) async throws -> (Piece, tag: String?)? {
        var headers = ["Range": "bytes=\(offset)-\(offset + Int64(Self.pieceLength) - 1)"]
        headers["If-Range"] = tag
        let request = try request("GET", resource, headers: headers)
        let reply: Reply
        do {
            reply = try await answer(to: request)
        } catch let problem as Problem where problem.code == .rangeNotSatisfiable && (offset == 0 || tag != nil) {
            return nil
        }
        guard reply.status == 206, let length = Self.length(inRange: reply.field("Content-Range"), from: offset) else {
            throw ClientError.contentChanged
        }
        return (Piece(offset: offset, bytes: reply.body, length: length), reply.field("ETag"))
    }

    /// The total length in `bytes 0-99/1000`; `nil` if the field names another range.
    private static func length(inRange field: String?, from offset: Int64) -> Int64? {
        guard let field, field.hasPrefix("bytes \(offset)-") else { return nil }
        return field.split(separator: "/").last.flatMap { Int64($0) }
    }

    static func contentPath(_ number: Int64, _ session: String) -> [String] {
        ["v1", "sessions", session, "tasks", String(number), "content"]
    }
}
