/// A page of a session's event log.
package struct EventPage: Sendable {
    /// The maximum size of the page's events as stored, in bytes.
    package static let maximumBytes = 4 << 20

    package var events: [EventRecord]
    package var lastSeq: Int64
    package var acknowledgedSeq: Int64
    /// Whether the page reaches the end and no task is running.
    package var isFinished: Bool

    /// Whether no further events are stored.
    package var isAtEnd: Bool { (events.last?.seq ?? .max) >= lastSeq }

    package init(events: [EventRecord], lastSeq: Int64, acknowledgedSeq: Int64, isFinished: Bool) {
        self.events = events
        self.lastSeq = lastSeq
        self.acknowledgedSeq = acknowledgedSeq
        self.isFinished = isFinished
    }
}
