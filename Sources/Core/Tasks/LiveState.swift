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

    /// Consecutive bytes of a content that comes in segments.
    package struct Segment: Hashable, Sendable {
        package var offset: Int64
        package var length: Int64
        /// Bytes of it at hand.
        package var received: Int64
        /// Where they come from: 0 is the task's own URL, then come its mirrors. Nil for what is not being fetched.
        package var source: Int?

        package init(offset: Int64, length: Int64, received: Int64, source: Int?) {
            self.offset = offset
            self.length = length
            self.received = received
            self.source = source
        }
    }

    package var sample: Sample?
    /// Nil where the content does not come in segments.
    package var segments: [Segment]?
    /// Bytes per second.
    package var throughput: Double?
    package var waiting: [WaitingReason]

    package init(
        sample: Sample? = nil, segments: [Segment]? = nil, throughput: Double? = nil, waiting: [WaitingReason] = []
    ) {
        self.sample = sample
        self.segments = segments
        self.throughput = throughput
        self.waiting = waiting
    }
}
