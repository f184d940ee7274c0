package import Core
package import Wire

extension SessionTask {
    package init(_ record: TaskRecord, _ live: LiveState = LiveState()) {
        let specification = record.specification
        let isDownload = specification.kind == .download
        self.init()
        taskIdentifier = record.number
        sessionIdentifier = record.sessionIdentifier
        kind = isDownload ? .download : .upload
        state = Wire.TaskState(record.state)
        originalRequest = Wire.TransferRequest(
            specification.request, body: isDownload ? specification.body : nil)
        createdAt = record.createdAt.rfc3339
        revision = record.revision
        let progress = record.result?.progress ?? record.progress ?? Core.TaskProgress()
        terms = TaskTerms(specification)
        showStage(record, progress, live)
        showRequests(record, progress)
        showCounts(record, progress, live)
        self.progress = Wire.TaskProgress(self, live.throughput)
        if record.state == .running { segmentStates = live.segments?.map(SegmentState.init) }
        attempts = TaskAttempts(record, progress)
        response = (record.result?.response ?? live.response).map(Wire.TaskResponse.init)
        error = record.result?.error.map(Wire.TaskError.init)
        cacheStatus = record.result?.cacheStatus.map { Wire.CacheStatus($0) }
        if let content = record.content, !content.isExpired { self.content = Content(content) }
        startedAt = record.startedAt?.rfc3339
        completedAt = record.completedAt?.rfc3339
        if !isDownload { body = specification.body.map(BodySource.id) }
        retryOf = specification.retryOf
    }

    private mutating func showStage(_ record: TaskRecord, _ progress: Core.TaskProgress, _ live: LiveState) {
        outcome = record.outcome.map { TaskOutcome($0) }
        guard record.state == .running else { return }
        let hasMoved = kind == .upload ? progress.countOfBytesSent > 0 : progress.kept.count ?? 0 > 0
        let stored: LiveState.Phase = !hasMoved ? .connecting : kind == .upload ? .sending : .receiving
        phase = TaskPhase(record.phase, live, stored: stored)
        waitingFor = live.waiting.map(Wire.WaitingReason.init)
    }

    private mutating func showRequests(_ record: TaskRecord, _ progress: Core.TaskProgress) {
        let original = record.specification.request
        currentRequest = Wire.TransferRequest(original.current(after: progress))
        var from = original.url
        for redirect in progress.redirects {
            redirects.append(
                Wire.Redirect {
                    $0.statusCode = Int64(redirect.statusCode)
                    $0.from = from
                    $0.to = redirect.url
                })
            from = redirect.url
        }
    }

    private mutating func showCounts(_ record: TaskRecord, _ progress: Core.TaskProgress, _ live: LiveState) {
        let result = record.result
        countOfBytesReceived =
            live.sample?.received ?? result?.contentLength
            ?? (result == nil ? progress.kept.count ?? 0 : progress.countOfBytesReceived)
        countOfBytesSent = live.sample?.sent ?? progress.countOfBytesSent
        countOfBytesFetchedTwice = progress.bytesFetchedTwice
        countOfBytesExpectedToReceive =
            live.sample?.expected ?? result?.response?.expectedContentLength
            ?? (result == nil ? progress.kept.point?.totalLength : nil)
        countOfBytesExpectedToSend = record.specification.expectedBytesToSend
    }
}

extension TaskPhase {
    /// The phase of a running task for clients, from its stored phase and, while that is active, from its transfer.
    ///
    /// - Parameter stored: The phase that the stored progress shows, for a transfer that another node performs.
    package init?(_ phase: TaskLife.Phase?, _ live: LiveState, stored: LiveState.Phase) {
        switch phase {
        case nil, .suspended: return nil
        case .delayed: self = .delayed
        case .awaitingAnswer: self = .awaitingAnswer
        case .retryWait: self = .retryWait
        case .waitingForConnectivity: self = .waitingForConnectivity
        case .waitingForDisk, .following: self = .queued
        case .queued, .quarantined: self = live.waiting.first?.kind.phase ?? .queued
        case .active:
            switch live.sample?.phase ?? stored {
            case .connecting: self = .connecting
            case .sending: self = .sending
            case .receiving: self = .receiving
            case .finalizing: self = .finalizing
            }
        }
    }
}

extension Core.WaitingReason.Kind {
    /// The phase of a queued task whose first waiting reason this is.
    fileprivate var phase: TaskPhase {
        switch self {
        case .connectivity, .cellularAccess, .expensiveAccess, .constrainedAccess: .waitingForConnectivity
        case .power, .cheapNetwork, .unconstrainedNetwork, .load, .window: .deferred
        case .earliestBeginDate, .answer, .retry, .originPause, .capacity, .disk, .sameTransfer: .queued
        }
    }
}

extension Core.TransferRequest {
    /// The request as sent after redirects, without the fields that they dropped.
    func current(after progress: Core.TaskProgress) -> Core.TransferRequest {
        var request = self
        request.url = progress.redirects.last?.url ?? progress.currentURL ?? url
        request.method = progress.redirects.reduce(method) { method, redirect in
            Core.Redirect.nextMethod(status: redirect.statusCode, method: method)
        }
        guard !progress.redirects.isEmpty else { return request }
        request.headers = Core.Redirect.fields(
            headers, dropBody: request.method != method,
            dropHeaders: !progress.redirects.allSatisfy { Self.origin(of: $0.url) == Self.origin(of: url) },
            sensitive: sensitiveHeaders)
        return request
    }

    /// Scheme, host and port of a URL that was parsed before, without the scheme's default port.
    private static func origin(of url: String) -> String {
        let parts = url.asciiLowercased.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return url }
        var authority = parts[2].prefix { !"/?#".contains($0) }
        let port = parts[0] == "https:" ? ":443" : ":80"
        if authority.hasSuffix(port) { authority = authority.dropLast(port.count) }
        return "\(parts[0])//\(authority)"
    }
}
