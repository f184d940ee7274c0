import Core
import Store
import TransferEngine

/// The influence of a resumable upload on a transfer's requests.
extension Transfer {
    /// Makes the next request one of a resumable upload if the session wants it, the request has content, and the app's
    /// own request does not use the draft.
    ///
    /// - Parameter version: The version of the draft for the origin, if the upload is a new one.
    mutating func prepareUpload(_ version: ResumableUpload.Version) {
        attempt.upload = nil
        guard configuration.resumableUploads == .auto, specification.kind == .upload, request.sendsBody,
            let body = task.body, body.length > 0, ResumableUpload.mayUpgrade(request.method),
            !ResumableUpload.isSpoken(in: request.headers)
        else { return }
        if progress.uploadRequest == specification.request.identity,
            let resource = progress.uploadURL.flatMap({ try? ParsedURL($0) }),
            let version = progress.uploadVersion.flatMap(ResumableUpload.Version.init(rawValue:))
        {
            attempt.upload = ResumableUpload(
                version: version, length: body.length, resource: resource, offset: progress.uploadOffset ?? 0)
        } else {
            attempt.upload = ResumableUpload(version: version, length: body.length)
        }
    }

    /// Adopts the state of the upload.
    mutating func take(_ upload: ResumableUpload) {
        attempt.upload = upload
        progress.note(upload, for: specification.request)
    }

    /// The URL of the next request.
    var requestURL: ParsedURL {
        attempt.upload?.method == nil ? request.url : attempt.upload?.resource ?? request.url
    }

    /// Whether the next request goes to an upload resource at another origin than the target's, without its secrets.
    var goesToOtherOrigin: Bool { requestURL.origin != request.url.origin }

    /// The offset in the body from which the next request sends.
    var uploadOffset: Int64 { if case .append(let offset)? = attempt.upload?.step { offset } else { 0 } }

    /// The URL of an upload resource. As with a redirect, https never leads to http.
    func uploadResource(at location: String) -> ParsedURL? {
        guard let target = try? ParsedURL(location: location, from: requestURL),
            target.isSecure || !requestURL.isSecure && !configuration.requiresSecureTransport
        else { return nil }
        return target
    }

    /// Turns the app's own request into the one of the upload's current step.
    func shape(_ request: inout ExchangeRequest, for upload: ResumableUpload) {
        if let method = upload.method {
            let isElsewhere = goesToOtherOrigin
            request.method = method
            request.url = requestURL
            request.headers = Redirect.fields(
                request.headers, dropBody: true, dropHeaders: isElsewhere,
                sensitive: specification.request.sensitiveHeaders)
            request.headers.fields.removeAll { Self.belongsToTarget($0.name.asciiLowercased) }
            if isElsewhere {
                request.httpAuthentication = nil
                request.tls.trustedServerKey = nil
                request.tls.clientCertificate = nil
            }
            request.body = request.body.from(upload.step)
            // Sending the same bytes at the same offset is wrong once some of them have arrived.
            if case .append = upload.step { request.usesFreshConnection = true }
        }
        for field in upload.fields.fields { request.headers.set(field.name, field.value) }
    }

    /// Whether a field is a condition or key for the target, not for the upload resource.
    private static func belongsToTarget(_ name: String) -> Bool {
        name.hasPrefix("if-") || name == "range" || name == "idempotency-key"
    }
}

extension ExchangeBody {
    /// The range of the body that a step sends.
    fileprivate func from(_ step: ResumableUpload.Step) -> ExchangeBody {
        guard case .append(let start) = step else { return .none }
        switch self {
        case .none: return .none
        case .bytes(let bytes, let offset): return .bytes(bytes, offset: offset + start)
        case .file(let path, let offset, let length):
            return .file(path: path, offset: offset + start, length: length - start)
        case .fetched(let fetch, let offset, let length):
            return .fetched(fetch, offset: offset + start, length: length - start)
        }
    }
}

extension TransferRequest {
    /// The properties that distinguish the request from others of the task.
    fileprivate var identity: String { "\(method) \(url)" }
}

extension TaskProgress {
    /// Notes the state of an upload, so that it survives the process.
    mutating func note(_ upload: ResumableUpload, for request: TransferRequest) {
        uploadURL = upload.resource?.text
        uploadVersion = upload.resource == nil ? nil : upload.version.rawValue
        uploadOffset = upload.resource == nil ? nil : upload.offset
        uploadRequest = upload.resource == nil ? nil : request.identity
    }
}
