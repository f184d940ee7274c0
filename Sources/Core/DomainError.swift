/// The domain's refusals that clients receive. Each becomes one problem.
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
    /// A position in the events that this incarnation of the session never had.
    case cursorInvalid(incarnation: Int64, lastSeq: Int64)
    case attachmentFenced
    case sessionInUse
    case questionAnswered
    case resumeDataSpent(index: Int)
    case launchNotOpen
    case fetchLate
    case refreshUnavailable(why: String)
    case bodyNotFound(index: Int)
    case contentNotFound(index: Int)
    case revisionMismatch
    /// The destination and layout of a set with versions do not change.
    case setHasVersions
    /// Another set has the destination, or one above or below it.
    case setDestinationTaken
    /// The destination of a task is among the published files of a set.
    case destinationOfSet(index: Int)
    /// A layout that the set's destination cannot have.
    case setLayoutNeedsFolder
    /// The folder of a repository in the cache of huggingface_hub belongs to another set, or the set has another folder.
    case setRepositoryTaken
    /// The name of a version belongs to another request.
    case setVersionExists
    /// The version of a set has a state in which the command is not possible.
    case setVersionState(SetVersionState)
    /// `index`: the position among several requests, if there are several.
    case storedBytesExceeded(index: Int?)
    case contentExpired
    /// Another node has answered the same request in the meantime.
    case answeredMeanwhile
}
