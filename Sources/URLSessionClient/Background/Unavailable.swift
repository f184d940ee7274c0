public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

// Declarations of Apple's API that have no meaning for a service, with the compiler's advice for each. Their bodies
// never run.

extension BackgroundSessionConfiguration {
    @available(*, unavailable, message: "background sessions have an identifier: use background(withIdentifier:)")
    public static var `default`: BackgroundSessionConfiguration { background(withIdentifier: "") }

    @available(*, unavailable, message: "background sessions have an identifier: use background(withIdentifier:)")
    public static var ephemeral: BackgroundSessionConfiguration { background(withIdentifier: "") }

    @available(
        *, unavailable,
        message:
            "the service keeps the files: set temporaryDirectory for those of the delegate, or a task's destination"
    )
    public var sharedContainerIdentifier: String? {
        get { nil }
        set {}
    }

    @available(*, unavailable, message: "the service has the cache: set requestCachePolicy, and use Client to empty it")
    public var urlCache: URLCache? {
        get { nil }
        set {}
    }

    @available(
        *, unavailable,
        message: "each session has its cookies at the service: use httpShouldSetCookies and httpCookieAcceptPolicy"
    )
    public var httpCookieStorage: HTTPCookieStorage? {
        get { nil }
        set {}
    }

    @available(
        *, unavailable,
        message:
            "the service keeps credentials for the app: answer challenges with persistence .permanent, or use Client"
    )
    public var urlCredentialStorage: URLCredentialStorage? {
        get { nil }
        set {}
    }

    @available(*, unavailable, message: "the service makes the requests itself: protocol classes cannot take part")
    public var protocolClasses: [AnyClass]? {
        get { nil }
        set {}
    }

    @available(*, unavailable, message: "use proxy, with a URL such as http://proxy.example:3128")
    public var connectionProxyDictionary: [AnyHashable: Any]? {
        get { nil }
        set {}
    }

    @available(*, unavailable, message: "the service chooses the protocol: remove the line")
    public var httpShouldUsePipelining: Bool {
        get { false }
        set {}
    }

    @available(*, unavailable, message: "no idle time ends a task of the service: remove the line")
    public var shouldUseExtendedBackgroundIdleMode: Bool {
        get { false }
        set {}
    }
}

extension BackgroundSessionTask {
    @available(*, unavailable, message: "the session's delegate receives the events: use init(configuration:delegate:)")
    public var delegate: (any BackgroundSessionTaskDelegate)? {
        get { nil }
        set {}
    }

    @available(*, unavailable, message: "the delegate receives complete downloads: remove the line")
    public var prefersIncrementalDelivery: Bool {
        get { false }
        set {}
    }
}

extension BackgroundSessionConfiguration {
    /// Apple's use of several networks at once.
    public enum MultipathServiceType: Int, Sendable { case none, handover, interactive, aggregate }

    @available(*, unavailable, message: "the service's machine chooses the network: remove the line")
    public var multipathServiceType: MultipathServiceType {
        get { .none }
        set {}
    }
}

extension BackgroundSessionTaskTransactionMetrics {
    @available(*, unavailable, message: "the service cannot determine the kind of its network: remove the line")
    public var isCellular: Bool { false }

    @available(*, unavailable, message: "the service cannot determine the kind of its network: remove the line")
    public var isExpensive: Bool { false }

    @available(*, unavailable, message: "the service cannot determine the kind of its network: remove the line")
    public var isConstrained: Bool { false }

    @available(*, unavailable, message: "the service uses one network at a time: remove the line")
    public var isMultipath: Bool { false }
}

extension BackgroundSession {
    @available(
        *, unavailable,
        message: "the response arrives at the end of the transfer: remove the method"
    )
    public enum ResponseDisposition { case allow, cancel, becomeDownload, becomeStream }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
extension SessionConfiguration.TLSVersion {
    @available(*, unavailable, renamed: "tls12", message: "the version is written .tls12")
    public static var TLSv12: Self { .tls12 }

    @available(*, unavailable, renamed: "tls13", message: "the version is written .tls13")
    public static var TLSv13: Self { .tls13 }
}

extension BackgroundSession {
    @available(*, unavailable, message: "there is no shared background session: create one with an identifier")
    public static var shared: BackgroundSession { BackgroundSession(identifier: "", delegate: nil) }

    @available(*, unavailable, message: "a background session calls a delegate: use init(configuration:delegate:)")
    public convenience init(configuration: BackgroundSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil)
    }

    @available(*, unavailable, message: "the process holds no state to flush: remove the call")
    public func flush(completionHandler: @escaping @Sendable () -> Void) {}

    @available(*, unavailable, message: "the process holds no state to flush: remove the call")
    public func flush() async {}
}

/// Tasks that Apple's background sessions lack as well.
extension BackgroundSession {
    public typealias DataTaskCompletion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    public typealias DownloadTaskCompletion = @Sendable (URL?, URLResponse?, (any Error)?) -> Void

    private var none: BackgroundSessionUploadTask { uploadTask(with: URLRequest(url: nowhere), fromFile: nowhere) }
    private var nowhere: URL { URL(filePath: "/") }

    @available(*, unavailable, message: "background sessions have no data tasks: use downloadTask(with:)")
    public func dataTask(with url: URL) -> BackgroundSessionDataTask { none }

    @available(*, unavailable, message: "background sessions have no data tasks: use downloadTask(with:)")
    public func dataTask(with request: URLRequest) -> BackgroundSessionDataTask { none }

    @available(
        *, unavailable, message: "background sessions have no data tasks: use downloadTask(with:) and the delegate"
    )
    public func dataTask(
        with url: URL, completionHandler: @escaping DataTaskCompletion
    ) -> BackgroundSessionDataTask { none }

    @available(
        *, unavailable, message: "background sessions have no data tasks: use downloadTask(with:) and the delegate"
    )
    public func dataTask(
        with request: URLRequest, completionHandler: @escaping DataTaskCompletion
    ) -> BackgroundSessionDataTask { none }

    @available(
        *, unavailable,
        message:
            "tasks outlive completion handlers: use downloadTask(with:) and urlSession(_:downloadTask:didFinishDownloadingTo:)"
    )
    public func downloadTask(
        with url: URL, completionHandler: @escaping DownloadTaskCompletion
    ) -> BackgroundSessionDownloadTask { downloadTask(with: url) }

    @available(
        *, unavailable,
        message:
            "tasks outlive completion handlers: use downloadTask(with:) and urlSession(_:downloadTask:didFinishDownloadingTo:)"
    )
    public func downloadTask(
        with request: URLRequest, completionHandler: @escaping DownloadTaskCompletion
    ) -> BackgroundSessionDownloadTask { downloadTask(with: request) }

    @available(
        *, unavailable,
        message: "tasks outlive completion handlers: use downloadTask(withResumeData:) and the delegate"
    )
    public func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping DownloadTaskCompletion
    ) -> BackgroundSessionDownloadTask { downloadTask(withResumeData: resumeData) }

    @available(
        *, unavailable,
        message:
            "tasks outlive completion handlers: use uploadTask(with:fromFile:) and urlSession(_:task:didCompleteWithError:)"
    )
    public func uploadTask(
        with request: URLRequest, fromFile file: URL, completionHandler: @escaping DataTaskCompletion
    ) -> BackgroundSessionUploadTask { none }

    @available(
        *, unavailable,
        message: "background sessions upload files: write the data to a file, uploadTask(with:fromFile:)"
    )
    public func uploadTask(with request: URLRequest, from bodyData: Data) -> BackgroundSessionUploadTask { none }

    @available(
        *, unavailable,
        message: "background sessions upload files: write the data to a file, uploadTask(with:fromFile:)"
    )
    public func uploadTask(
        with request: URLRequest, from bodyData: Data?, completionHandler: @escaping DataTaskCompletion
    ) -> BackgroundSessionUploadTask { none }

    @available(*, unavailable, message: "background sessions upload files, not streams: use uploadTask(with:fromFile:)")
    public func uploadTask(withStreamedRequest request: URLRequest) -> BackgroundSessionUploadTask { none }

    @available(*, unavailable, message: "calls end with the process, background tasks do not: use downloadTask(with:)")
    public func data(from url: URL) async throws -> (Data, URLResponse) { throw URLError(.unknown) }

    @available(*, unavailable, message: "calls end with the process, background tasks do not: use downloadTask(with:)")
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) { throw URLError(.unknown) }

    @available(*, unavailable, message: "calls end with the process, background tasks do not: use downloadTask(with:)")
    public func download(from url: URL) async throws -> (URL, URLResponse) { throw URLError(.unknown) }

    @available(*, unavailable, message: "calls end with the process, background tasks do not: use downloadTask(with:)")
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) { throw URLError(.unknown) }

    @available(
        *, unavailable, message: "calls end with the process, background tasks do not: use uploadTask(with:fromFile:)"
    )
    public func upload(for request: URLRequest, fromFile file: URL) async throws -> (Data, URLResponse) {
        throw URLError(.unknown)
    }

    @available(
        *, unavailable, message: "calls end with the process, background tasks do not: use uploadTask(with:fromFile:)"
    )
    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        throw URLError(.unknown)
    }
}
