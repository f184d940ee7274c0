public import Wire

/// A session's events in order, read with long polls. The sequence has no end: it waits while the service is
/// unavailable.
public struct Events: AsyncSequence, Sendable {
    let client: Client
    let session: String

    /// Starts after the last acknowledged event.
    public func makeAsyncIterator() -> Iterator { Iterator(client: client, session: session) }

    /// The position of one reader.
    public struct Iterator: AsyncIteratorProtocol {
        let client: Client
        let session: String
        private var last: Int64?
        private var patience = Patience()
        /// Events that were read and not returned yet, the next one last.
        private var read: [Event] = []

        init(client: Client, session: String) {
            self.client = client
            self.session = session
        }

        /// The next event; waits until there is one.
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
