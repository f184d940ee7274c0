import Base
import Buckets
import Core
import Store
import TransferEngine

/// A fault of this machine rather than of an origin. The task is retried a limited number of times, and ends with an
/// error that names the fault.
enum LocalFault {
    case disk(SystemError)
    /// The database did not store the row that refers to the content.
    case store(any Error)
    case start(any Error)
    case credentials(any Error)
    case bucket(BucketFault)
    /// The bucket of contents could not be written.
    case contents(BucketFault)
    /// An object could not be read from its bucket.
    case source(BucketFault)

    init(storing error: any Error) {
        self =
            switch error {
            case let error as SystemError: .disk(error)
            case let error as ContentsFault: .contents(error.fault)
            default: .store(error)
            }
    }

    /// The fault of a content that could not become an object.
    init(storing error: any Error, in destination: ObjectDestination) {
        guard let fault = error as? BucketFault else {
            self.init(storing: error)
            return
        }
        self = destination.isContent ? .contents(fault) : .bucket(fault)
    }

    /// The task's error. The words of the store are for the operator's log alone.
    var error: TaskError {
        switch self {
        case .disk(let error): taskError(.cannotWriteToFile, "disk", error.description)
        case .store: taskError(.cannotWriteToFile, "store", "The content could not be stored in the database.")
        case .bucket(let fault), .contents(let fault): fault.taskError
        case .source(let fault):
            TaskError(.cannotOpenFile, "The object could not be read from its bucket.", underlying: fault.underlying)
        case .start(let error):
            taskError(
                .unknown, "start", (error as? SystemError)?.description ?? "The transfer could not be prepared.")
        case .credentials: taskError(.unknown, "credentials", "The stored credentials could not be read.")
        }
    }

    /// The remedy, if a bucket is at fault.
    fileprivate var remedy: BucketFault.Remedy? {
        switch self {
        case .bucket(let fault), .contents(let fault), .source(let fault): fault.remedy
        default: nil
        }
    }

    /// Whether the task waits for the operator, as it does for a full disk: no app can fix the bucket of contents.
    fileprivate var waitsForOperator: Bool {
        if case .contents(let fault) = self { fault.isOperators } else { false }
    }

    private func taskError(_ code: URLErrorCode, _ name: String, _ message: String) -> TaskError {
        TaskError(code, underlying: TaskError.Underlying(domain: "urlsessiond", code: name, message: message))
    }
}

extension BucketFault {
    fileprivate var underlying: TaskError.Underlying {
        TaskError.Underlying(domain: "s3", code: code, message: message)
    }

    /// The app's error for a content that could not be written.
    fileprivate var taskError: TaskError {
        remedy == .exists
            ? TaskError(.cannotCreateFile, "There is an object of that key already.", underlying: underlying)
            : TaskError(.cannotWriteToFile, "The content could not be written into its bucket.", underlying: underlying)
    }
}

extension Settlement.Verdict {
    /// The verdict on a local fault: a retry, or the end after too many.
    ///
    /// - Parameters:
    ///   - result: The task's result so far; an attempt, if there was one, is already counted.
    ///   - jitter: A number in `0..<1`.
    static func after(
        _ fault: LocalFault, _ result: TaskResult, of task: ClaimedTask, _ policy: RetryPolicy, jitter: Double,
        at now: Timestamp
    ) -> Settlement.Verdict {
        var result = result
        if fault.waitsForOperator {
            result.progress.attempts = task.progress.attempts
            let at = now + result.progress.pauseForContents(since: task.progress.keptOffset)
            return .retry(at: at, waitsForConnectivity: false, result.progress)
        }
        let error = fault.error
        result.progress.attempts.recordLocalFault()
        result.progress.lastAttempt = AttemptRecord(
            number: max(1, result.progress.attempts.attempts),
            startedAt: result.progress.lastAttempt?.startedAt ?? now, endedAt: now, offset: result.progress.keptOffset,
            statusCode: result.response?.statusCode, error: error)
        let request = RetryableRequest(
            method: task.specification.request.method, isUpload: task.specification.kind == .upload,
            hasIdempotencyKey: false)
        if let remedy = fault.remedy {
            switch remedy {
            case .change, .exists:
                result.progress.forgetBytes()
                return .completed(.failed, result.failing(with: error), nil)
            case .anew: result.progress.forgetBytes()
            case .later: break
            }
        }
        let decision = policy.decide(
            after: .local, ledger: result.progress.attempts, request: request, jitter: jitter, now: now,
            deadline: task.resourceDeadline)
        switch decision {
        case .retry(let at): return .retry(at: at, waitsForConnectivity: false, result.progress)
        case .giveUp:
            result.progress.forgetBytes()
            return .completed(.failed, result.failing(with: error), nil)
        }
    }

    /// Whether the partial file was moved to its place, and not copied to the bucket of contents.
    var hasMovedFile: Bool {
        guard case .completed(_, _, let content?) = self else { return false }
        if case .object = content.storage { return false }
        return true
    }

    /// Whether the partial file is useless after the verdict, and unknown to the commit that stores the verdict.
    var abandonsPartialFile: Bool {
        switch self {
        case .retry(_, _, let progress), .asked(_, _, _, let progress), .interrupted(let progress),
            .waitsForDisk(_, _, let progress):
            progress.kept.point == nil
        case .completed, .advanced, .released: false
        }
    }
}
