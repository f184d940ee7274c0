import Core
import Launches
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
        self.init()
        count = Int64(max(progress.attempts.attempts, progress.lastAttempt?.number ?? 0) + (isActive ? 1 : 0))
        last = progress.lastAttempt.map(Attempt.init)
        if record.stage?.hasDueDate == true { nextAt = record.dueAt?.rfc3339 }
    }
}

extension TaskAttempts.Attempt {
    init(_ record: AttemptRecord) {
        self.init()
        startedAt = record.startedAt.rfc3339
        endedAt = record.endedAt.rfc3339
        statusCode = record.statusCode.map(Int64.init)
        error = record.error.map(Wire.TaskError.init)
    }
}

extension Wire.TaskResponse {
    init(_ core: Core.TaskResponse) { self = EventContent.response(core) }
}

extension Wire.TaskError {
    init(_ core: Core.TaskError) { self = EventContent.error(core) }
}

extension Wire.WaitingReason {
    init(_ core: Core.WaitingReason) {
        self.init()
        kind = core.kind.rawValue
        detail = core.detail
        until = core.until?.rfc3339
        questionId = core.questionId
    }
}

extension Content {
    init(_ record: ContentRecord) {
        self.init()
        length = record.length
        digest = Wire.ContentDigest(record.digest)
        expiresAt = record.expiresAt?.rfc3339
    }
}
