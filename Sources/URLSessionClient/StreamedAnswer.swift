import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One answer in the pieces in which it arrives.
final class StreamedAnswer: NSObject, URLSessionDataDelegate {
    enum Piece: Sendable {
        case status(Int)
        case bytes([UInt8])
    }

    /// Pieces that may wait for a slow reader. With more the connection ends: the reader gets these and connects again.
    private static let room = 256

    private let pieces: AsyncThrowingStream<Piece, any Error>.Continuation

    private init(_ pieces: AsyncThrowingStream<Piece, any Error>.Continuation) { self.pieces = pieces }

    /// Sends a request. Its connection is closed when nobody reads the answer any more.
    static func open(_ request: URLRequest) -> AsyncThrowingStream<Piece, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: Piece.self, bufferingPolicy: .bufferingOldest(room))
        let session = URLSession(
            configuration: .ephemeral, delegate: StreamedAnswer(continuation), delegateQueue: nil)
        continuation.onTermination = { _ in session.invalidateAndCancel() }
        session.dataTask(with: request).resume()
        return stream
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        pieces.yield(.status((response as? HTTPURLResponse)?.statusCode ?? 0))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if case .dropped = pieces.yield(.bytes(Array(data))) { pieces.finish() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        pieces.finish(throwing: error)
    }
}
