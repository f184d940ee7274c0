package import Core
package import Wire

extension Wire.TaskProgress {
    /// The progress of a task, from its byte counts.
    ///
    /// - Parameter throughput: Bytes per second of a transfer in flight.
    package init(_ task: SessionTask, _ throughput: Double?) {
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
    package init(_ record: TaskRecord, _ progress: Core.TaskProgress) {
        // An attempt in flight has begun, though it is counted only when it ends.
        let isActive = record.phase == .active
        self.init()
        count = Int64(max(progress.attempts.attempts, progress.lastAttempt?.number ?? 0) + (isActive ? 1 : 0))
        last = progress.lastAttempt.map(Attempt.init)
        nextAt = record.life.dueAt?.rfc3339
    }
}

extension TaskAttempts.Attempt {
    package init(_ record: AttemptRecord) {
        self.init()
        startedAt = record.startedAt.rfc3339
        endedAt = record.endedAt.rfc3339
        statusCode = record.statusCode.map(Int64.init)
        error = record.error.map(Wire.TaskError.init)
    }
}

extension Wire.TaskResponse {
    /// An origin's cookies are secrets like credentials, and therefore hidden.
    package init(_ core: Core.TaskResponse) {
        self.init()
        statusCode = Int64(core.statusCode)
        headers = StringMap(core.headers.withoutCookies)
        droppedHeaders = core.droppedHeaders
        mimeType = core.mimeType
        expectedContentLength = core.expectedContentLength
        suggestedFilename = core.suggestedFilename
        url = core.url
    }
}

extension Wire.TaskError {
    package init(_ core: Core.TaskError) {
        self.init()
        code = Int64(core.code.rawValue)
        name = core.code.name
        localizedDescription = core.localizedDescription
        failingURL = core.failingURL
        policy = core.policy
        underlying = core.underlying.map(Underlying.init)
        backgroundTaskCancelledReason = core.backgroundTaskCancelledReason.map(Int64.init)
        networkUnavailableReason = core.networkUnavailableReason.map(Int64.init)
    }
}

extension Wire.TaskError.Underlying {
    /// libcurl's codes are numbers, the service's own are names.
    init(_ core: Core.TaskError.Underlying) {
        let number = core.domain == "curl" ? Int64(core.code) : nil
        self.init()
        domain = core.domain
        code = number.map { .integer($0) } ?? .string(core.code)
        message = core.message
    }
}

extension Wire.WaitingReason {
    package init(_ core: Core.WaitingReason) {
        self.init()
        kind = core.kind.rawValue
        detail = core.detail
        until = core.until?.rfc3339
        questionId = core.questionId
        taskIdentifier = core.leader?.number
        sessionIdentifier = core.leader?.session
    }
}

extension Content {
    package init(_ record: ContentRecord) {
        self.init()
        length = record.length
        digest = Wire.ContentDigest(record.digest)
        expiresAt = record.expiresAt?.rfc3339
    }
}

extension HTTPFields {
    fileprivate var withoutCookies: HTTPFields {
        HTTPFields(
            fields.map { field in
                let setsCookies = ["Set-Cookie", "Set-Cookie2"].contains { field.name.equalsIgnoringASCIICase($0) }
                guard setsCookies else { return field }
                return HTTPField(name: field.name, value: SecretHeaders.placeholder)
            })
    }
}

extension SegmentState {
    init(_ segment: LiveState.Segment) {
        self.init()
        offset = segment.offset
        length = segment.length
        received = segment.received
        source = segment.source.map(Int64.init)
    }
}
