public import Wire

/// A session's events in order, read by long polls. The sequence has no end: while the service is away, it waits.
public struct Events: AsyncSequence, Sendable {
    let client: Client
    let session: String

    /// Starts after the last acknowledged event.
    public func makeAsyncIterator() -> Iterator { Iterator(client: client, session: session) }

    /// The place of one reader.
    public struct Iterator: AsyncIteratorProtocol {
        let client: Client
        let session: String
        private var last: Int64?
        private var patience = Patience()
        /// Events read and not handed out yet, the next one last.
        private var read: [Event] = []

        init(client: Client, session: String) {
            self.client = client
            self.session = session
        }

        /// The next event, once there is one.
        ///
        /// - Throws: `CancellationError` when the task is cancelled; ``Wire/Problem`` when the service refuses for good.
        public mutating func next() async throws -> Event? {
            while read.isEmpty {
                try Task.checkCancellation()
                do {
                    read = try await client.eventPage(of: session, after: last, waiting: 30).items.reversed()
                    patience.succeeded()
                } catch {
                    try await patience.wait(after: error)
                }
            }
            let event = read.removeLast()
            last = event.seq
            return event
        }
    }
}
