/// A page of a session's event log.
package struct EventPage: Sendable {
    /// What its events may have together, as they are stored, in bytes.
    package static let maximumBytes = 4 << 20

    package var events: [EventRecord]
    package var lastSeq: Int64
    package var acknowledgedSeq: Int64
    /// The reader is at the end and no task is running.
    package var isFinished: Bool

    /// Whether no more are kept.
    package var isAtEnd: Bool { (events.last?.seq ?? .max) >= lastSeq }

    package init(events: [EventRecord], lastSeq: Int64, acknowledgedSeq: Int64, isFinished: Bool) {
        self.events = events
        self.lastSeq = lastSeq
        self.acknowledgedSeq = acknowledgedSeq
        self.isFinished = isFinished
    }
}
