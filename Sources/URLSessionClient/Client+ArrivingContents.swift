public import Foundation
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The durable bytes of unfinished downloads.
extension Client {
    /// Passes on the bytes of a download from an offset to the end, as they become durable. The task may be unfinished,
    /// nor begun.
    ///
    /// Waits for as long as the task does. A connection that breaks is made again behind the last byte, and a service that
    /// goes away is waited for, a minute and a half at most. When this returns, the task has succeeded with these bytes.
    ///
    /// - Throws: What `use` throws, which ends the reading; ``Wire/Problem``, for instance because the task failed;
    ///   ``ClientError/contentChanged`` when the download restarted, because its bytes may be those of another version.
    public func arrivingContent(
        ofTask number: Int64, in session: String, from offset: Int64 = 0,
        each use: (_ offset: Int64, _ bytes: Data) throws -> Void
    ) async throws {
        var (place, tag, patience) = (offset, String?.none, Patience(limit: 10))
        var answer: AsyncThrowingStream<StreamedAnswer.Piece, any Error>.Iterator?
        while true {
            try Task.checkCancellation()
            var bytes: [UInt8]?
            do {
                if answer == nil { (answer, tag) = try await follow(number, session, at: place, tag: tag) }
                if case .bytes(let next)? = try await answer?.next() { bytes = next }
            } catch let problem as Problem where problem.code == .contentNotReady && problem.status == 503 {
                continue
            } catch let problem as Problem where problem.code == .rangeNotSatisfiable && (place == 0 || tag != nil) {
                return
            } catch {
                answer = nil
                try await patience.wait(after: error)
                continue
            }
            guard let bytes else {
                // The stream of a cancelled reader ends like a complete one.
                try Task.checkCancellation()
                return
            }
            try use(place, Data(bytes))
            place += Int64(bytes.count)
            patience.succeeded()
        }
    }

    /// Reads from an offset to the end.
    private func follow(
        _ number: Int64, _ session: String, at offset: Int64, tag: String?
    ) async throws -> (AsyncThrowingStream<StreamedAnswer.Piece, any Error>.Iterator, tag: String?) {
        // The last position reaches the end of a content whose length is not known (RFC 8673).
        var headers = ["Range": "bytes=\(offset)-9007199254740991", "Prefer": "wait=60"]
        // A trailer ends the process on Linux (`_NativeProtocol.transferCompleted` of swift-corelibs-foundation).
        headers["Want-Repr-Digest"] = "sha-256=0"
        headers["If-Range"] = tag
        var request = try request(
            "GET", Self.contentPath(number, session), query: ["arriving": "1"], headers: headers)
        request.timeoutInterval = 120
        var knock = try self.request("GET", ["healthz"])
        knock.timeoutInterval = 15
        var pieces = StreamedAnswer.open(request, after: knock).makeAsyncIterator()
        guard case .head(let status, let range, let newTag, let retryAfter)? = try await pieces.next() else {
            throw ClientError.streamEnded
        }
        guard status < 300 else {
            var body: [UInt8] = []
            while case .bytes(let bytes)? = try await pieces.next() { body += bytes }
            throw Self.refusal(status, body, retryAfter: retryAfter)
        }
        guard status == 206, range?.hasPrefix("bytes \(offset)-") == true else { throw ClientError.contentChanged }
        return (pieces, newTag)
    }
}
