import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session's events as they occur: stored ones in order and live ones between them. The sequence has no end.
///
/// While the sequence is read, the app counts as attached and is not launched, unless the stream was opened without
/// attaching. After a broken connection or a restart of the service the stream reconnects after the last returned
/// stored event: none is lost or repeated. Live events (without ``Wire/Event/seq``), such as progress, are lost in
/// between.
public struct EventStream: AsyncSequence, Sendable {
    let client: Client
    let session: String
    let after: Int64?
    /// Whether the app counts as attached.
    let attaching: Bool

    /// Connects with the first call of `next()`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(client: client, session: session, after: after, attaching: attaching)
    }

    /// The position of one reader. Its connection closes when it is released.
    public struct Iterator: AsyncIteratorProtocol {
        private let client: Client
        private let session: String
        private let attaching: Bool
        private var last: Int64?
        private var answer: AsyncThrowingStream<StreamedAnswer.Piece, any Error>.Iterator?
        private var parser = ServerSentEvents()
        /// Events that were read and not returned yet, the next one last.
        private var read: [Event] = []
        private var patience = Patience()

        init(client: Client, session: String, after: Int64?, attaching: Bool) {
            self.client = client
            self.session = session
            self.attaching = attaching
            last = after
        }

        /// The next event; waits until there is one.
        ///
        /// - Throws: `CancellationError` when the task is cancelled; ``Wire/Problem`` when the service refuses for
        ///   good, for instance because the next events have expired.
        public mutating func next() async throws -> Event? {
            while true {
                try Task.checkCancellation()
                while let event = read.popLast() {
                    guard let seq = event.seq else { return event }
                    guard seq > last ?? 0 else { continue }
                    last = seq
                    return event
                }
                try await readOn()
            }
        }

        /// Reads more events. Connects first, or waits if the service is unavailable.
        private mutating func readOn() async throws {
            do {
                guard answer != nil else { return try await connect() }
                // The service ends its streams when it stops.
                guard case .bytes(let bytes)? = try await answer?.next() else { throw ClientError.streamEnded }
                for data in parser.add(bytes) { read.insert(try Client.read(data), at: 0) }
                if !read.isEmpty { patience.succeeded() }
            } catch {
                answer = nil
                try await patience.wait(after: error)
            }
        }

        private mutating func connect() async throws {
            var headers = ["Accept": "text/event-stream"]
            headers["Last-Event-ID"] = last.map { String($0) }
            var request = try client.request(
                "GET", ["v1", "sessions", session, "events"], query: attaching ? [:] : ["attach": "false"],
                headers: headers)
            // The service sends a heartbeat every 15 s.
            request.timeoutInterval = 60
            var knock = try client.request("GET", ["healthz"])
            knock.timeoutInterval = 15
            var pieces = StreamedAnswer.open(request, after: knock).makeAsyncIterator()
            guard case .head(let status, _, _, let retryAfter)? = try await pieces.next() else {
                throw ClientError.streamEnded
            }
            guard status == 200 else {
                var body: [UInt8] = []
                while case .bytes(let bytes)? = try await pieces.next() { body += bytes }
                throw Client.refusal(status, body, retryAfter: retryAfter)
            }
            parser = ServerSentEvents()
            answer = pieces
        }
    }
}
