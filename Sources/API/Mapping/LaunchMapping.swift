import Core
import Wire

extension Wire.Launch {
    init(_ record: LaunchRecord) {
        self.init()
        launchId = record.launchId
        kind = record.kind.name
        state = State(rawValue: record.state.name)
        createdAt = record.createdAt.rfc3339
        sessionIdentifier = record.sessionIdentifier
        reasons = record.reasons.names
        lastSeq = record.kind == .handleEvents ? record.lastSeq : nil
        if case .pending(_, let moment) = record.state { nextAttemptAt = moment.rfc3339 }
        if case .completed(let moment) = record.state { completedAt = (record.completedAt ?? moment).rfc3339 }
        attempts = record.attempts.map(Wire.LaunchAttempt.init)
    }
}

extension Wire.LaunchAttempt {
    init(_ attempt: Core.LaunchAttempt) {
        self.init()
        number = Int64(attempt.number)
        startedAt = attempt.startedAt.rfc3339
        duration = attempt.duration.seconds
        statusCode = attempt.statusCode.map(Int64.init)
        error = attempt.error
        excerpt = attempt.excerpt
    }
}

extension LaunchRule.Reasons {
    /// The reasons' names, in the order of the documentation.
    var names: [String] {
        var names: [String] = []
        if contains(.tasksFinished) { names.append("tasksFinished") }
        if contains(.authenticationRequired) { names.append("authenticationRequired") }
        if contains(.delayedRequestReady) { names.append("delayedRequestReady") }
        return names
    }
}

extension LaunchKind {
    /// The kind with a name that clients use; nil for any other text.
    init?(name: String) {
        guard let kind = LaunchKind.allCases.first(where: { $0.name == name }) else { return nil }
        self = kind
    }
}

extension Core.BackgroundRefresh.Result {
    init?(_ word: LaunchCompletion.FetchResult) { self.init(rawValue: word.rawValue) }
}

extension LaunchCompletion.FetchResult {
    init(_ result: Core.BackgroundRefresh.Result) { self.init(rawValue: result.rawValue) }
}
