import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One response in the pieces in which it arrives.
final class StreamedAnswer: NSObject, URLSessionDataDelegate {
    enum Piece: Sendable {
        /// The status, and three fields of the head.
        case head(Int, range: String?, tag: String?, retryAfter: String?)
        case bytes([UInt8])
    }

    /// The maximum number of pieces that wait for a slow reader. Beyond it the connection ends: the reader gets these
    /// pieces, then ``ClientError/streamEnded``, and reconnects.
    private static let room = 256

    /// Without a cache: a URLSession of swift-corelibs-foundation looks up a cached response on another thread, and ends
    /// the process if a task is cancelled and completed meanwhile (`URLSession.behaviour(for:)`).
    private static let configuration = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        return configuration
    }()

    private let pieces: AsyncThrowingStream<Piece, any Error>.Continuation

    private init(_ pieces: AsyncThrowingStream<Piece, any Error>.Continuation) { self.pieces = pieces }

    /// Sends a request. Its connection is closed when the response is no longer read.
    ///
    /// - Parameter knock: A request with an immediate response, which opens the connection. On Linux a URLSession polls
    ///   without a pause whether a connection is writable until its first response is complete, which uses a whole
    ///   processor (`_SocketSources` of swift-corelibs-foundation). The request itself is the second one.
    static func open(_ request: URLRequest, after knock: URLRequest) -> AsyncThrowingStream<Piece, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: Piece.self, bufferingPolicy: .bufferingOldest(room))
        let session = URLSession(
            configuration: configuration, delegate: StreamedAnswer(continuation), delegateQueue: nil)
        let task = session.dataTask(with: request)
        let knock = session.dataTask(with: knock) { _, _, _ in task.resume() }
        // On another thread: these calls wait for the session's queue, and cancelling a reader must not.
        // `invalidateAndCancel` reads the list of tasks on this thread while the session's queue changes it.
        continuation.onTermination = { _ in
            DispatchQueue.global().async {
                knock.cancel()
                task.cancel()
                session.finishTasksAndInvalidate()
            }
        }
        knock.resume()
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
                tag: head?.value(forHTTPHeaderField: "ETag"),
                retryAfter: head?.value(forHTTPHeaderField: "Retry-After")))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if case .dropped = pieces.yield(.bytes(Array(data))) { pieces.finish(throwing: ClientError.streamEnded) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        pieces.finish(throwing: error)
    }
}
