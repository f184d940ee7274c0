/// The kind of a task.
public struct TaskKind: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Receives content.
    public static let download: Self = "download"
    /// Sends a body.
    public static let upload: Self = "upload"
    public static let known: [Self] = [.download, .upload]
}

/// The state of a task, as in `URLSessionTask.State`.
public struct TaskState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Waits for `resume`.
    public static let suspended: Self = "suspended"
    /// Runs or is queued.
    public static let running: Self = "running"
    public static let canceling: Self = "canceling"
    public static let completed: Self = "completed"
    public static let known: [Self] = [.suspended, .running, .canceling, .completed]
}

/// The phase of a running task.
public struct TaskPhase: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Waits for its `earliestBeginDate`.
    public static let delayed: Self = "delayed"
    /// Waits for the app's answer to a question.
    public static let awaitingAnswer: Self = "awaitingAnswer"
    /// Waits for good conditions.
    public static let deferred: Self = "deferred"
    /// Waits for a network that it may use.
    public static let waitingForConnectivity: Self = "waitingForConnectivity"
    /// Waits for a slot.
    public static let queued: Self = "queued"
    public static let connecting: Self = "connecting"
    public static let sending: Self = "sending"
    public static let receiving: Self = "receiving"
    /// Waits for its next attempt.
    public static let retryWait: Self = "retryWait"
    /// Stores or moves its content.
    public static let finalizing: Self = "finalizing"
    public static let known: [Self] = [
        .delayed, .awaitingAnswer, .deferred, .waitingForConnectivity, .queued, .connecting, .sending, .receiving,
        .retryWait, .finalizing,
    ]
}

/// The outcome of a task.
public struct TaskOutcome: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// With an acceptable status.
    public static let succeeded: Self = "succeeded"
    /// With any other status.
    public static let httpError: Self = "httpError"
    /// With an error.
    public static let failed: Self = "failed"
    /// By `cancel`.
    public static let cancelled: Self = "cancelled"
    /// With a 304 to the app's own validator.
    public static let notModified: Self = "notModified"
    public static let known: [Self] = [.succeeded, .httpError, .failed, .cancelled, .notModified]
}
