/// The live state of a running task, besides its record.
package struct LiveState: Sendable {
    package enum Phase: String, Sendable { case connecting, sending, receiving, finalizing }

    /// The current activity of a transfer.
    package struct Sample: Hashable, Sendable {
        package var phase: Phase
        /// The length of the received content, including resumed bytes.
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

    /// A segment of a content.
    package struct Segment: Hashable, Sendable {
        package var offset: Int64
        package var length: Int64
        /// The number of received bytes of the segment.
        package var received: Int64
        /// The source: 0 is the task's own URL, followed by its mirrors. `nil` if the segment is not being fetched.
        package var source: Int?

        package init(offset: Int64, length: Int64, received: Int64, source: Int?) {
            self.offset = offset
            self.length = length
            self.received = received
            self.source = source
        }
    }

    /// The attempt in flight of a task.
    package struct CurrentAttempt: Sendable {
        package var startedAt: Timestamp
        /// The offset at which its current request began.
        package var offset: Int64
        /// Bytes of an upload that the server had received before.
        package var sentBefore: Int64
        package var sample: Sample
        package var response: TaskResponse?

        package init(
            startedAt: Timestamp, offset: Int64, sentBefore: Int64, sample: Sample, response: TaskResponse?
        ) {
            self.startedAt = startedAt
            self.offset = offset
            self.sentBefore = sentBefore
            self.sample = sample
            self.response = response
        }

        /// The bytes that its current request has received.
        package var received: Int64 { max(0, sample.received - offset) }
        package var sent: Int64 { max(0, sample.sent - sentBefore) }
    }

    package var sample: Sample?
    /// The response that the received bytes of a download belong to.
    package var response: TaskResponse?
    /// `nil` if the content is not segmented.
    package var segments: [Segment]?
    /// Bytes per second.
    package var throughput: Double?
    package var waiting: [WaitingReason]

    package init(
        sample: Sample? = nil, response: TaskResponse? = nil, segments: [Segment]? = nil, throughput: Double? = nil,
        waiting: [WaitingReason] = []
    ) {
        self.sample = sample
        self.response = response
        self.segments = segments
        self.throughput = throughput
        self.waiting = waiting
    }
}
