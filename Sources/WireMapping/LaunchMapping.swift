package import Core
package import Wire

extension Wire.Launch {
    package init(_ record: LaunchRecord) {
        self.init()
        launchId = record.launchId
        kind = record.kind.rawValue
        state = State(rawValue: record.state.name)
        createdAt = record.createdAt.rfc3339
        sessionIdentifier = record.sessionIdentifier
        reasons = record.reasons.names
        lastSeq = record.kind == .handleEvents ? record.lastSeq : nil
        if case .pending(_, let moment) = record.state { nextAttemptAt = moment.rfc3339 }
        if case .completed(let moment) = record.state { completedAt = moment.rfc3339 }
        attempts = record.attempts.map(Wire.LaunchAttempt.init)
    }
}

extension Wire.LaunchAttempt {
    package init(_ attempt: Core.LaunchAttempt) {
        self.init()
        number = Int64(attempt.number)
        startedAt = attempt.startedAt.rfc3339
        duration = attempt.duration.seconds
        statusCode = attempt.statusCode.map(Int64.init)
        error = attempt.error
        excerpt = attempt.excerpt
    }
}

extension LaunchFilter {
    package init(_ wire: LaunchSelection) {
        self.init()
        createdAfter = Timestamp(rfc3339: wire.createdAfter)
        createdBefore = wire.createdBefore.flatMap { Timestamp(rfc3339: $0) }
        session = wire.session
        states = Set(wire.state?.words.compactMap { LaunchState.Phase(rawValue: $0.rawValue) } ?? [])
    }
}

extension LaunchRule.Reasons {
    /// The reasons' names, in the order of the documentation.
    package var names: [String] {
        let all: [(LaunchRule.Reasons, String)] = [
            (.tasksFinished, "tasksFinished"), (.authenticationRequired, "authenticationRequired"),
            (.delayedRequestReady, "delayedRequestReady"), (.tasksStalled, "tasksStalled"),
            (.setPublished, "setPublished"), (.setFailed, "setFailed"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}

extension LaunchAnswer {
    /// An app's answer through the completion route.
    ///
    /// - Throws: A fault for an answer that does not fit the kind of the launch.
    package init(_ completion: LaunchCompletion, to launch: LaunchRecord) throws(JSONError) {
        self =
            completion.result.flatMap { Core.BackgroundRefresh.Result($0) }.map { .fetched($0) }
            ?? .completed(through: completion.through)
        guard fits(launch.kind) else {
            let detail =
                launch.kind == .performFetch
                ? "A fetch is completed with newData, noData or failed." : "Only fetches have a result."
            throw .invalid(detail, at: "/result")
        }
    }
}
