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

    /// A server's key or a client's certificate is in question, in Apple's shape. The library calls this method.
    ///
    /// The default calls the method of the same name that takes a ``Wire/AuthenticationChallenge``.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// A server's key or a client's certificate is in question. The default asks the task's method instead.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// All events that were stored before the app attached have been delivered. Call the completion handler of the launch now.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession)
}

/// The messages of a task, as in Apple's `URLSessionTaskDelegate`. All methods are optional.
///
/// The protocol has associated types, therefore a variable of this type is written `any BackgroundSessionTaskDelegate`.
public protocol BackgroundSessionTaskDelegate: BackgroundSessionDelegate {
    /// The return type of the method for delayed requests: `Void`, or ``BackgroundSession/NotImplemented`` in a delegate
    /// without that method.
    ///
    /// The compiler infers it. With Apple the Objective-C runtime tells whether a delegate has the method.
    associatedtype DelayedRequestReply = BackgroundSession.NotImplemented

    /// The return type of the `async` method for delayed requests: a disposition and a request, or
    /// ``BackgroundSession/NotImplemented``.
    associatedtype DelayedRequestDecision: Sendable = BackgroundSession.NotImplemented

    /// The return type of the `async` method for a task's challenges: a disposition and a credential, or
    /// ``BackgroundSession/NotImplemented``.
    associatedtype ChallengeDecision: Sendable = BackgroundSession.NotImplemented

    /// The return type of the `async` method for a session's challenges: a disposition and a credential, or
    /// ``BackgroundSession/NotImplemented``.
    associatedtype SessionChallengeDecision: Sendable = BackgroundSession.NotImplemented

    /// A task was made by this session object. The first message of a task, and the place to configure it.
    ///
    /// As with Apple this method is not called on the delegate queue: it returns before the method does that makes the
    /// task.
    func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask)

    /// The last message of a task. Without an error there is a ``BackgroundSessionTask/response``, whatever its status.
    ///
    /// The error is a `URLError`. Where the service refused the task, its `problem` has the service's reason.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?)

    /// A credential is wanted, in Apple's shape. The library calls this method.
    ///
    /// The completion handler may be called at any time before the challenge's `deadline`, once. A credential with a user
    /// and a password answers Basic and Digest; ``Wire/Credential`` has the other kinds. The default calls the method of
    /// the same name that takes a ``Wire/AuthenticationChallenge``.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// A credential is wanted. By default the service uses a stored credential, else the 401 or 407 is the response.
    ///
    /// The completion handler may be called at any time before the challenge's `deadline`, once.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// A task with an ``BackgroundSessionTask/earliestBeginDate`` is about to start, and waits for the answer.
    ///
    /// Only a delegate that has this method is asked: a question costs a launch where the program does not run.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (BackgroundSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) -> DelayedRequestReply

    /// The `async` form of the method for a session's challenges. A delegate has one of the two forms.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> SessionChallengeDecision

    /// The `async` form of the method for a task's challenges. A delegate has one of the two forms.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> ChallengeDecision

    /// The `async` form of the method for delayed requests. A delegate has one of the two forms.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> DelayedRequestDecision

    /// Never called, as in Apple's background sessions: the service follows redirects by itself.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// Bytes of the body were sent. A live message: it is never stored.
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

    /// Bytes were received. Live. `totalBytesExpectedToWrite` is -1 if it is unknown.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// The download went on after an interruption; at 0 it began anew.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

/// A delegate that has the method for delayed requests. The conformance is optional, and has the compiler check the method.
public protocol BackgroundSessionDelayedRequestDelegate: BackgroundSessionTaskDelegate
where DelayedRequestReply == Void {}

extension BackgroundSession {
    /// The decision about a challenge: Apple's own type.
    public typealias AuthChallengeDisposition = URLSession.AuthChallengeDisposition

    /// The decision about a delayed request: Apple's own type.
    public typealias DelayedRequestDisposition = URLSession.DelayedRequestDisposition

    /// The return type of the default of a delegate's method, by which the library knows that the delegate has none.
    public struct NotImplemented: Sendable {}
}

extension BackgroundSessionDelegate {
    public func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // A challenge that the library did not make has no question at the service.
        guard let asked = challenge as? ServiceChallenge else { return completionHandler(.performDefaultHandling, nil) }
        if let delegate = self as? any BackgroundSessionTaskDelegate,
            delegate.decides(about: asked, session, completionHandler)
        {
            return
        }
        urlSession(session, didReceive: asked.challenge) { disposition, credential in
            completionHandler(disposition, credential.map { ServiceCredential($0) })
        }
    }

    public func urlSession(
        _ session: BackgroundSession, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void
    ) {
        guard let delegate = self as? any BackgroundSessionTaskDelegate,
            let task = session.taskWaiting(forQuestion: challenge.questionId)
        else { return completionHandler(.performDefaultHandling, nil) }
        let asked = ServiceChallenge(challenge) { session.answer($0, $1, to: challenge, with: completionHandler) }
        delegate.urlSession(session, task: task, didReceive: asked) {
            session.answer($0, $1, to: challenge, with: completionHandler)
        }
    }

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession) {}
}

extension BackgroundSessionTaskDelegate {
    public func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
    ) {}

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let asked = challenge as? ServiceChallenge else { return completionHandler(.performDefaultHandling, nil) }
        if ChallengeDecision.self != BackgroundSession.NotImplemented.self {
            return BackgroundSession.decide(completionHandler, else: .performDefaultHandling) {
                await self.urlSession(session, task: task, didReceive: challenge) as ChallengeDecision
            }
        }
        urlSession(session, task: task, didReceive: asked.challenge) { disposition, credential in
            completionHandler(disposition, credential.map { ServiceCredential($0) })
        }
    }

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (BackgroundSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) -> BackgroundSession.NotImplemented {
        BackgroundSession.decide(completionHandler, else: .continueLoading) {
            await self.urlSession(session, task: task, willBeginDelayedRequest: request) as DelayedRequestDecision
        }
        return BackgroundSession.NotImplemented()
    }

    public func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> BackgroundSession.NotImplemented { BackgroundSession.NotImplemented() }

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> BackgroundSession.NotImplemented { BackgroundSession.NotImplemented() }

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> BackgroundSession.NotImplemented { BackgroundSession.NotImplemented() }

    public func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(request)
    }

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
