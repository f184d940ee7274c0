/// What is known of a task besides its record while it runs.
package struct LiveState: Sendable {
    package enum Phase: String, Sendable { case connecting, sending, receiving, finalizing }

    /// What a transfer is doing now.
    package struct Sample: Hashable, Sendable {
        package var phase: Phase
        /// Bytes of content at hand, resumed ones included.
        package var received: Int64
        package var sent: Int64
        package var expected: Int64?

        package init(phase: Phase, received: Int64, sent: Int64, expected: Int64?) {
            self.phase = phase
            self.received = received
            self.sent = sent
            self.expected = expected
        }
    }

    package var sample: Sample?
    /// Bytes per second.
    package var throughput: Double?
    package var waiting: [WaitingReason]

    package init(sample: Sample? = nil, throughput: Double? = nil, waiting: [WaitingReason] = []) {
        self.sample = sample
        self.throughput = throughput
        self.waiting = waiting
    }
}
