public import Foundation
public import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Conversions between Foundation's values and the service's.

extension TransferRequest {
    /// Creates the request from URL, method and header fields. GET of an upload becomes PUT.
    init(_ request: URLRequest, for kind: TaskKind) {
        let method = request.httpMethod == "GET" ? nil : request.httpMethod
        let fields = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        self.init(
            url: request.url?.absoluteString ?? "", method: method,
            headers: StringMap(fields.map { (name: $0.key, value: $0.value) }))
        if kind == .download { cachePolicy = CachePolicy(request.cachePolicy) }
    }
}

extension CachePolicy {
    /// `nil` for the default of a request, with which the session decides.
    init?(_ policy: URLRequest.CachePolicy) {
        switch policy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: self = .reloadIgnoringLocalCacheData
        case .reloadRevalidatingCacheData: self = .reloadRevalidatingCacheData
        case .returnCacheDataElseLoad: self = .returnCacheDataElseLoad
        case .returnCacheDataDontLoad: self = .returnCacheDataDontLoad
        default: return nil
        }
    }
}

extension URLRequest {
    init?(_ request: TransferRequest) {
        guard let url = URL(string: request.url) else { return nil }
        self.init(url: url)
        httpMethod = request.method ?? "GET"
        for field in request.headers { setValue(field.value, forHTTPHeaderField: field.name) }
    }
}

extension HTTPURLResponse {
    convenience init?(_ response: TaskResponse) {
        guard let url = URL(string: response.url) else { return nil }
        var fields: [String: String] = [:]
        for field in response.headers { fields[field.name] = field.value }
        self.init(url: url, statusCode: Int(response.statusCode), httpVersion: "HTTP/1.1", headerFields: fields)
    }
}

extension URLError {
    /// The service's error of the task: description, cause, and refusing policy.
    public var taskError: TaskError? { userInfo[NSUnderlyingErrorKey] as? TaskError }

    /// The service's reason for refusing the task or its content.
    public var problem: Problem? { userInfo[NSUnderlyingErrorKey] as? Problem }

    /// The error of a task or content that was not passed between program and service. The cause is its underlying
    /// error.
    ///
    /// - Parameter url: The URL of the task's request.
    init(notHandedOver cause: any Error, _ url: URL?) {
        var info: [String: Any] = [NSLocalizedDescriptionKey: Self.text(of: cause), NSUnderlyingErrorKey: cause]
        info[NSURLErrorFailingURLErrorKey] = url
        self.init((cause as? URLError)?.code ?? Self.code(of: cause), userInfo: info)
    }

    private static func text(of cause: any Error) -> String {
        switch cause {
        case let error as URLError where error.code == .cancelled: "The task was cancelled."
        case let problem as Problem: problem.text
        default: cause.localizedDescription
        }
    }

    private static func code(of cause: any Error) -> Code {
        switch cause {
        case let problem as Problem where problem.errors.contains { $0.pointer == "/request/url" }: .unsupportedURL
        case is CancellationError: .cancelled
        case ClientError.badURL: .badURL
        case ClientError.file(_, EISDIR): .fileIsDirectory
        case ClientError.file(_, ENOENT), ClientError.noContent: .fileDoesNotExist
        case ClientError.file(_, EACCES): .noPermissionsToReadFile
        case ClientError.file: .cannotOpenFile
        case ClientError.fileShrank: .requestBodyStreamExhausted
        default: .unknown
        }
    }
}

extension BackgroundSessionTask.State {
    init(_ state: TaskState) {
        switch state {
        case .suspended: self = .suspended
        case .canceling: self = .canceling
        case .completed: self = .completed
        default: self = .running
        }
    }
}

extension Answer {
    init(_ disposition: BackgroundSession.AuthChallengeDisposition, _ credential: Credential?) {
        switch (disposition, credential) {
        case (.useCredential, let credential?): self = .useCredential(credential)
        case (.cancelAuthenticationChallenge, _): self.init(.cancelAuthenticationChallenge)
        case (.rejectProtectionSpace, _): self.init(.rejectProtectionSpace)
        default: self.init(.performDefaultHandling)
        }
    }

    init(_ disposition: BackgroundSession.DelayedRequestDisposition, _ request: URLRequest?) {
        switch (disposition, request) {
        case (.useNewRequest, let request?): self = .useNewRequest(TransferRequest(request, for: .download))
        case (.cancel, _): self.init(.cancel)
        default: self.init(.continueLoading)
        }
    }
}

extension Credential {
    /// Creates a credential of a user and a password, like `URLCredential`.
    public init(user: String, password: String, persistence: Persistence) {
        self.init(.password(user: user, password: password), persistence: persistence)
    }
}

extension Date {
    /// Parses a time in the service's form.
    public init?(rfc3339 text: String) {
        guard let milliseconds = TimeText.parse(text) else { return nil }
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }

    /// The time in the service's form, with milliseconds.
    public var rfc3339: String {
        var text: [UInt8] = []
        TimeText.append(Int64((timeIntervalSince1970 * 1000).rounded()), to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
