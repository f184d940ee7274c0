import Core
import Wire

extension Wire.TaskProgress {
    /// How far a task is, from its counts.
    ///
    /// - Parameter throughput: Bytes per second of a transfer under way.
    init(_ task: SessionTask, _ throughput: Double?) {
        self.init()
        let isUpload = task.kind == .upload
        let done = isUpload ? task.countOfBytesSent : task.countOfBytesReceived
        let expected =
            isUpload
            ? task.countOfBytesExpectedToSend
            : task.countOfBytesExpectedToReceive ?? task.countOfBytesClientExpectsToReceive
        switch task.outcome {
        case .succeeded, .httpError, .notModified: fractionCompleted = 1
        default:
            if let expected, expected > 0 { fractionCompleted = min(1, Double(done) / Double(expected)) }
        }
        guard task.state == .running, let throughput else { return }
        self.throughput = throughput
        if let expected, throughput > 0 { estimatedTimeRemaining = Double(max(0, expected - done)) / throughput }
    }
}

extension TaskAttempts {
    init(_ record: TaskRecord, _ progress: Core.TaskProgress) {
        // An attempt under way has begun, though it is counted only when it ends.
        let isActive = record.stage == .active
        self.init(count: Int64(max(progress.attempts.attempts, progress.lastAttempt?.number ?? 0) + (isActive ? 1 : 0)))
        last = progress.lastAttempt.map(Attempt.init)
        if record.stage?.hasDueDate == true { nextAt = record.dueAt?.rfc3339 }
    }
}

extension TaskAttempts.Attempt {
    init(_ record: AttemptRecord) {
        self.init(
            startedAt: record.startedAt.rfc3339, endedAt: record.endedAt.rfc3339,
            statusCode: record.statusCode.map(Int64.init), error: record.error.map(Wire.TaskError.init))
    }
}

extension Wire.TaskResponse {
    init(_ core: Core.TaskResponse) {
        self.init(
            statusCode: Int64(core.statusCode), headers: StringMap(answer: core.headers), mimeType: core.mimeType,
            expectedContentLength: core.expectedContentLength, suggestedFilename: core.suggestedFilename,
            url: core.url)
    }
}

extension Wire.TaskError {
    init(_ core: Core.TaskError) {
        self.init(
            code: Int64(core.code.rawValue), name: core.code.name, localizedDescription: core.localizedDescription,
            failingURL: core.failingURL, policy: core.policy, underlying: core.underlying.map(Underlying.init))
        backgroundTaskCancelledReason = core.backgroundTaskCancelledReason.map(Int64.init)
        networkUnavailableReason = core.networkUnavailableReason.map(Int64.init)
    }
}

extension Wire.TaskError.Underlying {
    /// libcurl's codes are numbers, the service's own are names.
    init(_ core: Core.TaskError.Underlying) {
        let number = core.domain == "curl" ? Int64(core.code) : nil
        self.init(
            domain: core.domain, code: number.map(JSON.integer) ?? .string(core.code), message: core.message)
    }
}

extension Wire.WaitingReason {
    init(_ core: Core.WaitingReason) {
        self.init(kind: core.kind.rawValue, detail: core.detail, until: core.until?.rfc3339)
    }
}

extension Content {
    init(_ record: ContentRecord) {
        self.init(
            length: record.length, digest: Wire.ContentDigest(record.digest), expiresAt: record.expiresAt?.rfc3339)
    }
}

extension TaskMetrics {
    init(_ result: TaskResult, createdAt: Timestamp, completedAt: Timestamp) {
        self.init(
            taskInterval: TaskInterval(
                start: createdAt.rfc3339, duration: max(0, (completedAt - createdAt).seconds)),
            redirectCount: Int64(result.progress.redirects.count),
            transactionMetrics: result.progress.transactions.map(Wire.TransactionMetrics.init))
    }
}

extension Wire.TransactionMetrics {
    init(_ core: Core.TransactionMetrics) {
        self.init(
            url: core.url, statusCode: core.statusCode.map(Int64.init), error: core.error, offset: core.offset,
            fetchStartDate: core.fetchStartDate.rfc3339, domainLookupStartDate: core.domainLookupStartDate?.rfc3339,
            domainLookupEndDate: core.domainLookupEndDate?.rfc3339, connectStartDate: core.connectStartDate?.rfc3339,
            secureConnectionStartDate: core.secureConnectionStartDate?.rfc3339,
            secureConnectionEndDate: core.secureConnectionEndDate?.rfc3339,
            connectEndDate: core.connectEndDate?.rfc3339, requestStartDate: core.requestStartDate?.rfc3339,
            requestEndDate: core.requestEndDate?.rfc3339, responseStartDate: core.responseStartDate?.rfc3339,
            responseEndDate: core.responseEndDate?.rfc3339, networkProtocolName: core.networkProtocolName,
            isReusedConnection: core.isReusedConnection, isProxyConnection: core.isProxyConnection,
            localAddress: core.localAddress, localPort: core.localPort.map(Int64.init),
            remoteAddress: core.remoteAddress, remotePort: core.remotePort.map(Int64.init),
            countOfRequestHeaderBytesSent: core.countOfRequestHeaderBytesSent,
            countOfRequestBodyBytesSent: core.countOfRequestBodyBytesSent,
            countOfResponseHeaderBytesReceived: core.countOfResponseHeaderBytesReceived,
            countOfResponseBodyBytesReceived: core.countOfResponseBodyBytesReceived)
    }
}
