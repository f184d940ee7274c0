import Core
import Store
import TransferEngine

/// Start and stop of a transfer.
extension Transfer {
    mutating func begin(_ world: Surroundings) -> [Effect] {
        if specification.confirmBeforeStart, !progress.isConfirmed {
            let question = Question(kind: .delayedRequest, request: specification.request)
            return [.ask(question, progress, Settlement(task: id, .interrupted(progress)))]
        }
        if let refusal = refusalOfPlainHTTP() { return refusal }
        var effects: [Effect] = []
        if progress.hasPassedBytes {
            progress.hasPassedBytes = false
            effects += [.withdrawPartialFile, .advance()]
        }
        if let file = progress.adoptedFile {
            progress.adoptedFile = nil
            hasPartialFile = true
            // A command that ends the task before the response keeps the file that the stored progress names.
            effects += [.adopt(file: file), .advance()]
        }
        if progress.kept.parts?.whole != nil {
            stage = .finishing
            return effects + [.completeObject]
        }
        if specification.bodyObject != nil, task.body == nil {
            stage = .fetchingBody
            return effects + [.fetchBody]
        }
        return effects + (progress.kept.segments == nil || consultsCache ? ready(world) : [.find])
    }

    private mutating func ready(_ world: Surroundings) -> [Effect] {
        prepareUpload(world.uploadVersions.version(for: request.url.origin))
        return [.note(.started), .authorize]
    }

    /// Resumes a download from its interrupted segments, unless the partial file does not match them.
    mutating func restoreSegments(_ size: Int64?, _ world: Surroundings) -> [Effect] {
        guard case .ready = stage else { return [] }
        guard let record = progress.kept.segments else { return ready(world) }
        guard let segmented = restoredSegments else {
            // The bytes before the first gap can be resumed with one request.
            progress.kept.forgetRanges()
            return ready(world)
        }
        if record.held.isEmpty {
            progress.forgetBytes()
            turn(to: 0)
            return [.removePartialFile] + ready(world)
        }
        guard let size, size >= record.end else {
            progress.forgetBytes()
            (attempt.resuming, attempt.restartCause) = (nil, "partialFileMissing")
            turn(to: 0)
            return ready(world)
        }
        stage = .segmented(segmented)
        // Bytes outside the recorded segments, left by a kill, are removed before the next kill.
        return [.keep(record.ranges)] + ready(world)
    }

    /// Starts a request with the credentials for its server.
    mutating func start(with found: Access.Found, _ world: Surroundings) -> [Effect] {
        switch stage {
        case .ready where stop != nil: return [.settle(Settlement(task: id, .interrupted(progress)))]
        case .ready where consultsCache:
            adopt(found)
            stage = .consulting
            return [.consult]
        case .ready, .segmented:
            adopt(found)
            return start(world)
        default: return []
        }
    }

    /// Starts the next request, or resumes segments.
    mutating func start(_ world: Surroundings) -> [Effect] {
        attempt.startedAt = world.now
        guard case .segmented(var segmented) = stage else {
            stage = .asking(world.exchange)
            // Unique, even if a crash has lost the versions of contents that cannot be resumed.
            attempt.version = max(world.now.milliseconds, progress.version + 1)
            attempt.askedSources.insert(request.source)
            return [.start(world.exchange)]
        }
        // A credential may now exist for the target of one of their redirects.
        segmented.routes = [:]
        stage = .segmented(segmented)
        return [.resumeSegments, .show, .widenLater, .widen(proceeds: false)]
    }

    /// Ends a task with a plain http URL if the session requires TLS; nil if the request is allowed.
    mutating func refusalOfPlainHTTP() -> [Effect]? {
        guard configuration.requiresSecureTransport, !request.url.isSecure else { return nil }
        var result = TaskResult(progress: progress)
        result.progress.attempts.attempts += 1
        result.error = TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: request.url.text)
        return [
            .settle(Settlement(task: id, .completed(.failed, result, nil), leavesPartialFile: hasPartialFile))
        ]
    }

    // MARK: The end from outside

    mutating func halt(_ reason: Stop) -> [Effect] {
        if stop != .outdated { stop = reason }
        let effects = exchanges.map(Effect.stop)
        guard let segmented, segmented.connections.isEmpty, !segmented.isReading else { return effects }
        // No exchange is in flight whose end would be reported.
        return effects + [.settle(Settlement(task: id, .interrupted(progress)))]
    }

    /// Ends an attempt by a fault of this machine.
    func settle(_ fault: LocalFault, _ world: Surroundings) -> [Effect] {
        var result = TaskResult(progress: progress)
        // The fetch of a body is an attempt of its own.
        if case .fetchingBody = stage {
            if stop != nil { return [.settle(Settlement(task: id, .interrupted(progress)))] }
            result.progress.attempts.attempts += 1
            return [.note(.bodyFault(fault))] + settle(fault, result, world)
        }
        return settle(fault, result, world)
    }

    private func settle(_ fault: LocalFault, _ result: TaskResult, _ world: Surroundings) -> [Effect] {
        let verdict = Settlement.Verdict.after(
            fault, result, of: task, configuration.retryPolicy, jitter: world.jitter, at: world.now)
        var effects: [Effect] = []
        if case .contents(let fault) = fault { effects.append(.note(.contentsFault(fault))) }
        if case .retry(let at, _, let progress) = verdict {
            effects.append(.note(.willRetry(progress.lastAttempt, at: at)))
        }
        return effects + [.settle(Settlement(task: id, verdict, leavesPartialFile: hasPartialFile))]
    }
}
