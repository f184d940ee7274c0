import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One answer in the pieces in which it arrives.
final class StreamedAnswer: NSObject, URLSessionDataDelegate {
    enum Piece: Sendable {
        /// The status, and two fields of the head.
        case head(Int, range: String?, tag: String?)
        case bytes([UInt8])
    }

    /// Pieces that may wait for a slow reader. With more the connection ends: the reader gets these, then
    /// ``ClientError/streamEnded``, and connects again.
    private static let room = 256

    private let pieces: AsyncThrowingStream<Piece, any Error>.Continuation

    private init(_ pieces: AsyncThrowingStream<Piece, any Error>.Continuation) { self.pieces = pieces }

    /// Sends a request. Its connection is closed when the answer is not read any more.
    ///
    /// - Parameter knock: A request that is answered at once, which opens the connection. On Linux a URLSession goes on
    ///   asking whether a connection can be written to until the first answer over it is whole, and takes a whole
    ///   processor for that (`_SocketSources` of swift-corelibs-foundation). The request itself is the second one.
    static func open(_ request: URLRequest, after knock: URLRequest) -> AsyncThrowingStream<Piece, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: Piece.self, bufferingPolicy: .bufferingOldest(room))
        let session = URLSession(
            configuration: .ephemeral, delegate: StreamedAnswer(continuation), delegateQueue: nil)
        // On another thread, since it waits for the session's queue, and who cancels a reader must not.
        continuation.onTermination = { _ in DispatchQueue.global().async { session.invalidateAndCancel() } }
        // Made first: a session that has been invalidated makes no tasks.
        let task = session.dataTask(with: request)
        session.dataTask(with: knock) { _, _, _ in task.resume() }.resume()
        return stream
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let head = response as? HTTPURLResponse
        pieces.yield(
            .head(
                head?.statusCode ?? 0, range: head?.value(forHTTPHeaderField: "Content-Range"),
                tag: head?.value(forHTTPHeaderField: "ETag")))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if case .dropped = pieces.yield(.bytes(Array(data))) { pieces.finish(throwing: ClientError.streamEnded) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        pieces.finish(throwing: error)
    }
}
