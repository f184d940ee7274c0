import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The stored bodies of uploads.
extension Client {
    /// Stores a body that tasks can send.
    public func storeBody(_ bytes: [UInt8], mediaType: String = "application/octet-stream") async throws -> StoredBody {
        try await send("POST", ["v1", "bodies"], body: bytes, mediaType: mediaType)
    }

    /// Stores a file as a body that tasks can send. The file is read and sent in pieces, so that memory use is
    /// constant.
    ///
    /// If the service becomes unavailable, the call waits for up to a minute and a half, and resumes. A cancelled call
    /// deletes the incomplete body.
    ///
    /// - Parameter progress: Called after each piece with the stored and the total number of bytes.
    public func storeBody(
        fileAt path: String, mediaType: String = "application/octet-stream",
        progress: @Sendable (_ stored: Int64, _ length: Int64) -> Void = { _, _ in }
    ) async throws -> StoredBody {
        let file = try LocalFile(reading: path)
        let length = try file.length()
        progress(0, length)
        guard length > Int64(Self.pieceLength) else {
            let body = try await createBody(try file.read(at: 0, count: Int(length)), ["Content-Type": mediaType])
            progress(length, length)
            return body
        }
        let draft = try await beginBody(file, mediaType: mediaType, length: length)
        do {
            return try await append(file, to: draft, length: length, progress)
        } catch {
            // A task of its own, because the current one is cancelled.
            _ = await Task.detached { try? await self.deleteBody(draft) }.value
            throw error
        }
    }

    /// The length and digest of a body.
    public func body(_ id: String) async throws -> StoredBody { try await send("GET", ["v1", "bodies", id]) }

    /// Deletes a body. Tasks that use it keep its bytes.
    public func deleteBody(_ id: String) async throws { _ = try await exchange("DELETE", ["v1", "bodies", id]) }

    /// A page of the stored bodies, optionally by completeness or by use.
    public func bodies(
        complete: Bool? = nil, inUse: Bool? = nil, cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<ListedBody> {
        let state = complete.map { $0 ? "complete" : "partial" }
        return try await page(["v1", "bodies"], cursor, limit, ["state": state, "inUse": inUse.map { String($0) }])
    }

    // MARK: Drafts

    /// Stores the first piece of a body, and announces the others.
    private func beginBody(_ file: borrowing LocalFile, mediaType: String, length: Int64) async throws -> String {
        let headers = ["Content-Type": mediaType, "Upload-Complete": "?0", "Upload-Length": String(length)]
        return try await createBody(try file.read(at: 0, count: Self.pieceLength), headers).id
    }

    /// Creates one body, however often the request has to be repeated.
    private func createBody(_ bytes: Data, _ headers: [String: String]) async throws -> StoredBody {
        var request = try request(
            "POST", ["v1", "bodies"],
            headers: headers.merging(["Idempotency-Key": UUID().uuidString]) { own, _ in own })
        request.httpBody = bytes
        let creation = request
        let reply = try await Patience.insist(limit: 10) { try await answer(to: creation) }
        return try Self.read(Array(reply.body))
    }

    private func append(
        _ file: borrowing LocalFile, to id: String, length: Int64, _ progress: (Int64, Int64) -> Void
    ) async throws -> StoredBody {
        var (offset, patience) = (Int64(Self.pieceLength), Patience(limit: 10))
        while true {
            progress(offset, length)
            do {
                let bytes = try file.read(at: offset, count: Int(min(Int64(Self.pieceLength), length - offset)))
                let isLast = offset + Int64(bytes.count) == length
                var request = try request(
                    "PATCH", ["v1", "bodies", id],
                    headers: [
                        "Content-Type": "application/partial-upload", "Upload-Offset": String(offset),
                        "Upload-Complete": isLast ? "?1" : "?0",
                    ])
                request.httpBody = bytes
                let reply = try await answer(to: request)
                offset += Int64(bytes.count)
                patience.succeeded()
                if isLast {
                    progress(length, length)
                    return try Self.read(Array(reply.body))
                }
            } catch {
                // The bytes of an append with a lost response are already stored.
                let isThere = (error as? Problem)?.code == .uploadOffsetMismatch
                if !isThere { try await patience.wait(after: error) }
                guard let now = try await self.offset(ofBody: id, &patience) else {
                    progress(length, length)
                    return try await body(id)
                }
                offset = now
            }
        }
    }

    /// The received length of a draft; `nil` if it is complete. The response to an append may have been lost.
    private func offset(ofBody id: String, _ patience: inout Patience) async throws -> Int64? {
        while true {
            do {
                let reply = try await answer(to: try request("HEAD", ["v1", "bodies", id]))
                guard reply.field("Upload-Complete") != "?1" else { return nil }
                guard let offset = reply.field("Upload-Offset").flatMap({ Int64($0) }) else {
                    throw ClientError.unreadableAnswer("Upload-Offset is missing")
                }
                return offset
            } catch {
                try await patience.wait(after: error)
            }
        }
    }
}
