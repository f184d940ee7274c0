public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The messages of a session as a whole, as in Apple's `URLSessionDelegate`. All methods are optional.
///
/// Messages are delivered one after the other, in the order of the session's events, on the session's
/// ``BackgroundSession/delegateQueue``. Each is acknowledged after its method has returned. Messages that were
/// unacknowledged at the end of the process are delivered again, so each method must tolerate a repetition.
public protocol BackgroundSessionDelegate: AnyObject, Sendable {
    /// The last message of a session: it was invalidated, or the service refused it (a ``Wire/Problem``).
    func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?)

    /// A server's key or a client's certificate is requested, in Apple's shape. The library calls this method.
    ///
    /// The default calls the method of the same name with a ``Wire/AuthenticationChallenge``.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// A server's key or a client's certificate is requested. The default calls the task's method.
    func urlSession(
        _ session: BackgroundSession, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// All events that were stored before the app attached were delivered. Call the launch's completion handler now.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession)
}

/// The messages of a task, as in Apple's `URLSessionTaskDelegate`. All methods are optional.
///
/// The protocol has associated types, so a variable of this type is written `any BackgroundSessionTaskDelegate`.
public protocol BackgroundSessionTaskDelegate: BackgroundSessionDelegate {
    /// The return type of the method for delayed requests: `Void`, or ``BackgroundSession/NotImplemented`` in a delegate
    /// without that method.
    ///
    /// The compiler infers it. With Apple the Objective-C runtime reports whether a delegate has the method.
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

    /// This session object created a task. The first message of a task, and the place to configure it.
    ///
    /// As with Apple, this method is not called on the delegate queue: it returns before the method that creates the
    /// task.
    func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask)

    /// The last message of a task. Without an error there is a ``BackgroundSessionTask/response`` of any status.
    ///
    /// The error is a `URLError`. If the service refused the task, its `problem` has the service's reason.
    func urlSession(_ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?)

    /// A credential is requested, in Apple's shape. The library calls this method.
    ///
    /// The completion handler may be called once, at any time before the challenge's `deadline`. A credential with a
    /// user and a password answers Basic and Digest; ``Wire/Credential`` has the other kinds. The default calls the
    /// method of the same name with a ``Wire/AuthenticationChallenge``.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// A credential is requested. By default the service uses a stored credential, else the 401 or 407 is the response.
    ///
    /// The completion handler may be called once, at any time before the challenge's `deadline`.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void)

    /// A task with an ``BackgroundSessionTask/earliestBeginDate`` is about to start, and waits for the answer.
    ///
    /// Only a delegate with this method is called: a question causes a launch if the program does not run.
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

    /// Never called, as in Apple's background sessions: the service itself follows redirects.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// Bytes of the body were sent. A live message: it is never stored.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64)

    /// The metrics of the task, before it completes.
    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask,
        didFinishCollecting metrics: BackgroundSessionTaskMetrics)

    /// A task waits for a network that it may use. Live. Apple's background sessions never send this message.
    func urlSession(_ session: BackgroundSession, taskIsWaitingForConnectivity task: BackgroundSessionTask)

    /// An attempt failed, and another one follows. Live, and specific to the service.
    func urlSession(_ session: BackgroundSession, task: BackgroundSessionTask, willRetry retry: EventData.WillRetry)
}

/// The messages of an upload, as in Apple's `URLSessionDataDelegate`.
public protocol BackgroundSessionDataDelegate: BackgroundSessionTaskDelegate {
    /// A piece of the server's response to an upload, in order, before the task completes.
    func urlSession(_ session: BackgroundSession, dataTask: BackgroundSessionDataTask, didReceive data: Data)
}

/// The messages of a download, as in Apple's `URLSessionDownloadDelegate`.
public protocol BackgroundSessionDownloadDelegate: BackgroundSessionTaskDelegate {
    /// The download is in a file that is removed when this method returns: move it, or open it.
    ///
    /// As with Apple, the message is sent for every status; check the task's response.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Bytes were received. Live. `totalBytesExpectedToWrite` is -1 if it is unknown.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// The download resumed after an interruption; at offset 0 it restarted.
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

/// A delegate with the method for delayed requests. The conformance is optional; with it the compiler checks the
/// method.
public protocol BackgroundSessionDelayedRequestDelegate: BackgroundSessionTaskDelegate
where DelayedRequestReply == Void {}

extension BackgroundSession {
    /// The decision about a challenge: Apple's own type.
    public typealias AuthChallengeDisposition = URLSession.AuthChallengeDisposition

    /// The decision about a delayed request: Apple's own type.
    public typealias DelayedRequestDisposition = URLSession.DelayedRequestDisposition

    /// The return type of default implementations, by which the library detects that a delegate has no such method.
    public struct NotImplemented: Sendable {}
}

extension BackgroundSessionDelegate {
    public func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSession(
        _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // A challenge that the library did not create has no question at the service.
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
