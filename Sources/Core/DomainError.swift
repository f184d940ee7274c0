/// What the domain refuses, for reasons that the client must hear. Each becomes one problem.
package enum DomainError: Error, Hashable, Sendable {
    case notFound
    case appExists
    case sessionExists
    case sessionInvalidated
    case configurationMismatch([String])
    case clientTaskConflict(index: Int)
    case tooManyTasks(limit: Int64, index: Int)
    case taskCompleted
    case acknowledgementOutOfRange(lastSeq: Int64)
    case eventsExpired(oldestSeq: Int64)
    /// A place in the events that this incarnation of the session never had.
    case cursorInvalid(incarnation: Int64, lastSeq: Int64)
    case attachmentFenced
    case sessionInUse
    case questionAnswered
    case resumeDataSpent
    case launchNotOpen
    case fetchLate
    case refreshUnavailable(why: String)
    case bodyNotFound(index: Int)
    case contentNotFound(index: Int)
    case revisionMismatch
    /// `index`: which of several orders, where there are such.
    case storedBytesExceeded(index: Int?)
    case contentExpired
    /// The same request was answered by another node since it was asked for.
    case answeredMeanwhile
}
