public import Foundation
import Synchronization
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension BackgroundSession {
    /// The resume data for the error of a task, if any.
    ///
    /// A task that the app cancelled has resume data only if the app requested it.
    func resumeData(of task: BackgroundSessionTask, after error: TaskError) async -> Data? {
        // A repetition cannot change what a policy forbids.
        guard task is BackgroundSessionDownloadTask, error.policy == nil else { return nil }
        if URLError.Code(rawValue: Int(error.code)) == .cancelled, error.backgroundTaskCancelledReason == nil {
            let step = task.facts.withLock { $0.producesResumeData ? $0.lastStep : nil }
            await step?.value
            return task.facts.withLock { $0.resumeData }
        }
        guard let number = task.facts.withLock({ $0.number }), let incarnation = try? await incarnation else {
            return nil
        }
        return FailedDownload(session: identifier, incarnation: incarnation, number: number).data
    }

    // MARK: Tasks that repeat others

    /// Records the number of a task that repeats another. Its events have this number.
    func knowsNumber(of task: BackgroundSessionTask, _ number: Int64) {
        let key = Self.key(clientTaskId: nil, number: number)
        let old = task.facts.withLock { facts in
            defer { facts.key = key }
            return facts.key
        }
        facts.withLock { facts in
            facts.tasks[old] = nil
            facts.tasks[key] = task
            facts.repeating.removeAll { $0 === task }
        }
    }

    /// Waits until the service has responded about each task that repeats another.
    ///
    /// The service chooses the number of such a task, which has no other name. Its events may arrive before the
    /// response.
    func waitForRepeatingTasks() async {
        let steps = facts.withLock { $0.repeating }.compactMap { task in task.facts.withLock { $0.lastStep } }
        for step in steps { await step.value }
    }
}

extension Client {
    /// Creates a new task from a completed one. Calls with the same key return the same task.
    func retry(_ number: Int64, in session: String, idempotencyKey: String) async throws -> SessionTask {
        let request = try request(
            "POST", ["v1", "sessions", session, "tasks", String(number), "retry"],
            headers: ["Idempotency-Key": idempotencyKey])
        return try Self.read(Array(try await answer(to: request).body))
    }
}

extension URLError {
    /// The error of a task, with Apple's code, the service's description, and the resume data of a download.
    init(_ error: TaskError, resumeData: Data? = nil) {
        var info: [String: Any] = [
            NSLocalizedDescriptionKey: error.localizedDescription, NSUnderlyingErrorKey: error,
        ]
        info[NSURLErrorFailingURLErrorKey] = error.failingURL.flatMap { URL(string: $0) }
        info[Self.cancelledReasonKey] = error.backgroundTaskCancelledReason.map { Int($0) }
        info[Self.unavailableReasonKey] = error.networkUnavailableReason.map { Int($0) }
        info[Self.resumeDataKey] = resumeData
        self.init(URLError.Code(rawValue: Int(error.code)) ?? .unknown, userInfo: info)
    }

    // The values of Apple's constants, which Foundation on Linux lacks.
    private static let cancelledReasonKey = "NSURLErrorBackgroundTaskCancelledReasonKey"
    private static let unavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"
    private static let resumeDataKey = "NSURLSessionDownloadTaskResumeData"

    #if canImport(FoundationNetworking)
        /// The data for ``BackgroundSession/downloadTask(withResumeData:)``; `nil` if the error has none.
        ///
        /// A failed download has resume data for 24 hours. A download that the app cancelled has resume data only after
        /// ``BackgroundSessionDownloadTask/cancel(byProducingResumeData:)``.
        public var downloadTaskResumeData: Data? { userInfo[Self.resumeDataKey] as? Data }

        /// The reason for which the service cancelled the task; `nil` if it did not.
        public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
            (userInfo[Self.cancelledReasonKey] as? Int).flatMap { BackgroundTaskCancelledReason(rawValue: $0) }
        }

        /// The reason for which there is no network that the task may use; `nil` for other errors.
        public var networkUnavailableReason: NetworkUnavailableReason? {
            (userInfo[Self.unavailableReasonKey] as? Int).flatMap { NetworkUnavailableReason(rawValue: $0) }
        }

        /// The reasons for which the service cancels a task, with Apple's numbers.
        public enum BackgroundTaskCancelledReason: Int, Sendable {
            /// The app was force-quit.
            case userForceQuitApplication = 0
            /// Background updates are disabled for the app.
            case backgroundUpdatesDisabled = 1
            /// The service has too few resources for the task.
            case insufficientSystemResources = 2
        }

        /// The reasons for which a task has no network, with Apple's numbers.
        public enum NetworkUnavailableReason: Int, Sendable {
            /// The network is cellular, and the session's configuration does not allow it.
            case cellular = 0
            /// The network is expensive, and the session's configuration does not allow it.
            case expensive = 1
            /// The network is constrained, and the session's configuration does not allow it.
            case constrained = 2
        }
    #endif
}
