public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The messages of a session as a whole, as in Apple's `URLSessionDelegate`. All methods are optional.
///
/// Messages come one after the other, in the order of the session's events, on the session's
/// ``BackgroundSession/delegateQueue``. Each is acknowledged when its method has returned; what was not acknowledged
/// when the process ended comes again, so handle each message in a way that may be repeated.
public protocol BackgroundSessionDelegate: AnyObject, Sendable {
    /// The last message of a session: it was invalidated, or the service refuses it (a ``Wire/Problem``).
    func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?)

    /// A server's key or a client's certificate is in question. Not implemented, the task's method is asked instead.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// All that happened while nobody listened has been told. Call the completion handler of the launch now.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession)
}

/// The messages of a task, as in Apple's `URLSessionTaskDelegate`. All methods are optional.
public protocol BackgroundSessionTaskDelegate: BackgroundSessionDelegate {
    /// A task was made by this session object. The first message of a task.
    func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask)

    /// The last message of a task. Without an error there is a ``BackgroundSessionTask/response``, whatever its status.
    ///
    /// The error is a `URLError`, or a ``Wire/Problem`` where the service refused the task.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?)

    /// A credential is wanted. Not implemented, what is stored is used, else the 401 or 407 is the response.
    ///
    /// The completion handler may be called at any time before the challenge's `deadline`, once.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// Bytes of the body were sent. Live: nobody is told later.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64)

    /// How the task went in detail, before it completes.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask,
        didFinishCollecting metrics: BackgroundSessionTaskMetrics)

    /// A task waits for a network that it may use. Live. Apple's background sessions never say so; this one does.
    func urlSession(_ session: BackgroundSession, taskIsWaitingForConnectivity task: BackgroundSessionTask)

    /// An attempt failed and another follows. Live, and the service's own.
    func urlSession(_ session: BackgroundSession, task: BackgroundSessionTask, willRetry retry: EventData.WillRetry)
}

/// The messages of an upload, as in Apple's `URLSessionDataDelegate`.
public protocol BackgroundSessionDataDelegate: BackgroundSessionTaskDelegate {
    /// A piece of what the server answered to an upload, in order, before the task completes.
    func urlSession(_ session: BackgroundSession, dataTask: BackgroundSessionDataTask, didReceive data: Data)
}

/// The messages of a download, as in Apple's `URLSessionDownloadDelegate`.
public protocol BackgroundSessionDownloadDelegate: BackgroundSessionTaskDelegate {
    /// The download is in a file, which is removed when this returns: move it, or open it.
    ///
    /// As with Apple it comes for every status; look at the task's response.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Bytes were received. Live. `totalBytesExpectedToWrite` is -1 where nobody knows.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// The download went on after an interruption; at 0 it began anew.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

/// For a delegate that wants to be asked before a task with an ``BackgroundSessionTask/earliestBeginDate`` starts.
///
/// With Apple the method is one of `URLSessionTaskDelegate` and is found at run time. Swift cannot see whether it is
/// there, and to be asked costs a launch, so who wants to be asked says so with this protocol.
public protocol BackgroundSessionDelayedRequestDelegate: BackgroundSessionTaskDelegate {
    /// A delayed task is about to start, and waits for the answer.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (BackgroundSession.DelayedRequestDisposition, URLRequest?) -> Void)
}

extension BackgroundSession {
    /// What is to be done about a challenge.
    public enum AuthChallengeDisposition: Sendable, Hashable {
        /// Use the credential; without one, the same as default handling.
        case useCredential
        /// Go on as if there were no delegate.
        case performDefaultHandling
        /// End the task.
        case cancelAuthenticationChallenge
        /// Try the next scheme offered.
        case rejectProtectionSpace
    }

    /// What is to be done about a delayed request.
    public enum DelayedRequestDisposition: Sendable, Hashable {
        /// Start it as it is.
        case continueLoading
        /// Start the request that comes with it.
        case useNewRequest
        /// End the task.
        case cancel
    }
}

extension BackgroundSessionDelegate {
    public func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSession(
        _ session: BackgroundSession, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void
    ) {
        guard let delegate = self as? any BackgroundSessionTaskDelegate,
            let task = session.taskWaiting(forQuestion: challenge.questionId)
        else { return completionHandler(.performDefaultHandling, nil) }
        delegate.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession) {}
}

extension BackgroundSessionTaskDelegate {
    public func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
    ) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void
    ) {
        completionHandler(.performDefaultHandling, nil)
    }

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask,
        didFinishCollecting metrics: BackgroundSessionTaskMetrics
    ) {}

    public func urlSession(_ session: BackgroundSession, taskIsWaitingForConnectivity task: BackgroundSessionTask) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willRetry retry: EventData.WillRetry
    ) {}
}

extension BackgroundSessionDataDelegate {
    public func urlSession(_ session: BackgroundSession, dataTask: BackgroundSessionDataTask, didReceive data: Data) {}
}

extension BackgroundSessionDownloadDelegate {
    public func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {}

    public func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {}
}
