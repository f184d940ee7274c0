import Base
import Core
import Store
import TransferEngine

/// A fault of this machine rather than of an origin. The task is tried again a bounded number of times, and ends with an
/// error that names it.
enum LocalFault {
    case disk(SystemError)
    /// The database did not take the row that says where the content is.
    case store(any Error)
    case start(any Error)
    case credentials(any Error)

    init(storing error: any Error) {
        self = (error as? SystemError).map(LocalFault.disk) ?? .store(error)
    }

    var error: TaskError {
        switch self {
        case .disk(let error): taskError(.cannotWriteToFile, "disk", error.description)
        case .store(let error): taskError(.cannotWriteToFile, "store", "\(error)")
        case .start(let error): taskError(.unknown, "start", "\(error)")
        case .credentials(let error): taskError(.unknown, "credentials", "\(error)")
        }
    }

    private func taskError(_ code: URLErrorCode, _ name: String, _ message: String) -> TaskError {
        TaskError(code, underlying: TaskError.Underlying(domain: "urlsessiond", code: name, message: message))
    }
}

extension Settlement.Verdict {
    /// What follows a local fault: another try, or the end where there were too many.
    ///
    /// - Parameters:
    ///   - result: What the task has behind it; an attempt, where there was one, is counted already.
    ///   - jitter: A number in `0..<1`.
    static func after(
        _ fault: LocalFault, _ result: TaskResult, of task: ClaimedTask, _ policy: RetryPolicy, jitter: Double,
        at now: Timestamp
    ) -> Settlement.Verdict {
        var result = result
        let error = fault.error
        result.progress.attempts.recordLocalFault()
        result.progress.lastAttempt = AttemptRecord(
            number: max(1, result.progress.attempts.attempts),
            startedAt: result.progress.lastAttempt?.startedAt ?? now, endedAt: now, offset: result.progress.keptOffset,
            statusCode: result.response?.statusCode, error: error)
        let request = RetryableRequest(
            method: task.specification.request.method, isUpload: task.specification.kind == .upload,
            hasIdempotencyKey: false)
        let decision = policy.decide(
            after: .local, ledger: result.progress.attempts, request: request, jitter: jitter, now: now,
            deadline: task.resourceDeadline)
        switch decision {
        case .retry(let at): return .retry(at: at, waitsForConnectivity: false, result.progress)
        case .giveUp:
            result.progress.resume = nil
            result.progress.segments = nil
            return .completed(.failed, result.failing(with: error), nil)
        }
    }

    /// Whether the partial file is of no use to what follows, nor known to the commit that stores this.
    var abandonsPartialFile: Bool {
        switch self {
        case .retry(_, _, let progress), .asked(_, _, _, let progress), .interrupted(let progress),
            .waitsForDisk(_, _, let progress):
            progress.resume == nil
        case .completed, .advanced: false
        }
    }
}
