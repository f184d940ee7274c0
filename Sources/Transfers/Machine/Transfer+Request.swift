import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// The engine's requests.
extension Transfer {
    /// The resources from which a request is made besides the transfer.
    struct Resources: Sendable {
        let folder: DataFolder
        let settings: ServiceSettings
        /// Shared by all writers of the partial file.
        let sync: SharedSync
        /// Receives a new version before its bytes are written.
        let arrival: Arrival
        /// Lines of the session's cookies; nil if the session accepts none.
        let cookies: [String]?
        let bandwidthLimit: Int64?
    }

    /// The engine's request for the current hop, or for the bytes of a connection.
    func exchangeRequest(_ exchange: ExchangeID, _ resources: Resources) -> ExchangeRequest {
        guard let segmented, let connection = segmented.connections[exchange],
            let route = segmented.routes[connection.source]
        else { return wholeRequest(exchange, resources) }
        var transfer = self
        (transfer.request.url, transfer.request.headers) = (route.url, route.headers)
        transfer.attempt.access.credential = route.credential
        transfer.attempt.resuming = nil
        var request = transfer.wholeRequest(exchange, resources)
        let (bytes, total) = (connection.bytes, segmented.plan.total)
        var point = segmented.points[connection.source]
        point?.offset = bytes.lowerBound
        let asked = point ?? ResumePoint { $0.offset = bytes.lowerBound }
        for field in asked.requestFields(upTo: bytes.upperBound).fields { request.headers.set(field.name, field.value) }
        request.headers.remove("If-None-Match")
        request.sink = .stretch(
            path: partialFile(resources.folder), from: bytes.lowerBound, to: bytes.upperBound, sync: resources.sync)
        request.judge = { [point] head in
            let verdict = ResumeVerdict.judge(head: head, segment: bytes, of: total, point)
            switch verdict {
            case .append(let offset): return HeadJudgement(.keep(at: offset), verdict)
            case .notADownload(let status):
                return HeadJudgement(
                    Redirect.isRedirect(status) ? .skip : .discard(limit: Self.sideLimit), verdict)
            default: return HeadJudgement(.stop, verdict)
            }
        }
        return request
    }

    private func wholeRequest(_ exchange: ExchangeID, _ resources: Resources) -> ExchangeRequest {
        let settings = resources.settings
        var request = ExchangeRequest(
            id: exchange, pool: task.app.rawValue, method: self.request.method, url: self.request.url,
            sink: sink(resources), egress: bucketAccess?.egress ?? settings.egress, judge: judge(resources.arrival))
        let credential = attempt.access.credential
        request.headers = requestFields
        if credential?.token == nil { request.httpAuthentication = credential?.httpAuthentication }
        if self.request.sendsBody {
            request.body = body(resources.folder, settings.contents)
            request.bodySHA256 = task.body.flatMap { [UInt8](hexadecimal: $0.digest) }
        }
        request.maximumBytes = specification.maximumContentLength ?? settings.maximumContentLength
        request.idleTimeout = .milliseconds(Int64(configuration.timeoutIntervalForRequest * 1000))
        request.connectTimeout = min(request.idleTimeout, .seconds(30))
        request.tls = tls
        request.proxy = configuration.proxy.map { ProxySettings($0, attempt.access.proxyCredential) }
        request.bandwidthLimit = resources.bandwidthLimit
        if specification.kind == .download, !writesObject { request.maximumUnrecorded = maximumUnrecordedOfEach }
        request.cookies = resources.cookies
        // The request's own cookies win.
        request.sendsCookies = configuration.httpShouldSetCookies && !request.headers.contains("Cookie")
        request.usesFreshConnection = isSentOnceAtMost
        if let upload = attempt.upload { shape(&request, for: upload) }
        return request
    }

    private func partialFile(_ folder: DataFolder) -> String { folder.absolute(folder.partial(id.rawValue)) }

    private func sink(_ resources: Resources) -> SinkPlan {
        let resuming = attempt.resuming
        if writesObject { return .parts(resuming == nil ? nil : progress.kept.parts?.plan, after: storedParts) }
        let path = partialFile(resources.folder)
        if comesInParts, resuming == nil { return .stretch(path: path, from: 0, sync: resources.sync) }
        return .content(
            path: path, resumeOffset: resuming?.offset ?? 0,
            resumeDigest: resuming?.digest.flatMap { [UInt8](hexadecimal: $0) },
            digests: Array(specification.digestsWanted))
    }

    /// The header fields with those of the resume point and the credential.
    private var requestFields: HTTPFields {
        var fields = request.headers
        if let resuming = attempt.resuming {
            // The response of another server restarts the content: it sends all bytes.
            if !isElsewhere {
                for field in resuming.requestFields.fields { fields.set(field.name, field.value) }
            }
            fields.remove("If-None-Match")
        } else if let stored = attempt.reuse?.stored {
            for field in stored.cached.conditions?.fields ?? [] { fields.set(field.name, field.value) }
        }
        // The server has refused the request's own field, if it has one.
        if attempt.access.credential?.user != nil { fields.remove("Authorization") }
        for field in bucketAccess?.fields.fields ?? [] { fields.set(field.name, field.value) }
        if let token = attempt.access.credential?.token { fields.set("Authorization", "Bearer \(token)") }
        return fields
    }

    /// Whether the app allows only one attempt, and sending the request twice could do harm.
    private var isSentOnceAtMost: Bool {
        configuration.retryPolicy.settings.maximumAttempts == 1 && !RetryableRequest.isIdempotent(request.method)
            && !request.headers.contains("Idempotency-Key")
    }

    private var tls: TLSSettings {
        var tls = TLSSettings()
        tls.minimumVersion = configuration.tlsMinimumSupportedProtocolVersion
        tls.pinnedPublicKeys = configuration.pinnedPublicKeys[requestURL.host] ?? []
        let credential = attempt.access.credential
        tls.trustedServerKey = credential?.trustPublicKey
        if let certificate = credential?.certificate, let key = credential?.key {
            tls.clientCertificate = ClientCertificate(certificates: Array(certificate.utf8), key: Array(key.utf8))
        }
        return tls
    }

    private func body(_ folder: DataFolder, _ contents: ContentsBucket?) -> ExchangeBody {
        guard let body = task.body else { return .none }
        switch body.storage {
        case .bytes(let bytes): return .bytes(bytes)
        case .file(let path): return .file(path: folder.absolute(path), offset: 0, length: body.length)
        case .objects(let objects):
            return .fetched(ObjectFetcher.fetching(objects, contents?.fetcher), offset: 0, length: body.length)
        }
    }

    /// Decides on the engine's thread how a response relates to the stored bytes, and where its body goes.
    private func judge(_ arrival: Arrival) -> @Sendable (ResponseHead) -> HeadJudgement {
        let resuming = attempt.resuming
        let specification = specification
        let isDownload = specification.kind == .download
        let namesObject = specification.destinationObject != nil
        let hasOwnRange = specification.request.headers.contains("Range")
        let isElsewhere = isElsewhere
        let policy = configuration.retryPolicy
        let version = attempt.version
        let upload = attempt.upload
        // The next source would overwrite a page in the partial file.
        let keepsFile = resuming != nil || comesInParts && !progress.avoidsSegments && !sourcesLeft.isEmpty
        @Sendable func mayGoOn(after status: Int) -> Bool {
            policy.retries(status: status) || status == 401 || status == 407
        }
        /// Whether the response is a redirect, which ends the task or is followed: its page is never the result.
        @Sendable func leadsElsewhere(_ head: ResponseHead) -> Bool {
            guard Redirect.isRedirect(head.status), !specification.accepts(head.status) else { return false }
            guard var upload else { return true }
            return upload.handle(answer: head, hasSentAll: true) == .judge
        }
        return { head in
            guard isDownload else { return HeadJudgement(leadsElsewhere(head) ? .skip : .keep(at: 0)) }
            let verdict = ResumeVerdict.judge(
                head: head, resuming: resuming, requestHasOwnRange: hasOwnRange, isElsewhere: isElsewhere)
            if leadsElsewhere(head) { return HeadJudgement(.skip, verdict) }
            // An error page never becomes the object that the app named.
            let effective = head.effectiveStatus(verdict, isContinued: resuming != nil)
            if namesObject, !verdict.asksAgain, !specification.accepts(effective) {
                return HeadJudgement(.discard(limit: Self.sideLimit), verdict)
            }
            let body: BodyDisposition =
                switch verdict {
                case .append(let offset): .keep(at: offset)
                case .restartWithThisBody: .keep(at: 0)
                case .askAgainFromZero: .stop
                case .alreadyComplete: .discard(limit: Self.sideLimit)
                // The fetched bytes are kept while the task may still continue, and the page for its result.
                case .notADownload(let status):
                    !keepsFile || specification.accepts(status) || !mayGoOn(after: status)
                        ? .keep(at: 0) : .discard(limit: Self.sideLimit)
                }
            if body == .keep(at: 0) { arrival.begin(version) }
            return HeadJudgement(body, verdict)
        }
    }

    /// Whether the request goes to another server than the one that the kept bytes came from. The bytes remain usable
    /// if the app has named the new URL itself, or a digest of the whole content.
    private var isElsewhere: Bool {
        guard let resuming = attempt.resuming, !specification.provesContent, let url = try? ParsedURL(resuming.url),
            let requested = resuming.requestedURL, let now = sourceURL(request.source)?.text,
            requested.utf8.elementsEqual(now.utf8)
        else { return false }
        return url.origin != request.url.origin
    }

    /// The maximum number of bytes kept of an error page while the partial content has to stay.
    static let sideLimit = 64 * 1024

    // MARK: Resources

    /// The reader that reads the content once more.
    func contentReader(_ folder: DataFolder, total: Int64, checksPieces: Bool = true) -> ContentReader {
        let folder = folder.of(task.app.rawValue)
        return ContentReader(
            partialFile(folder), folder.disk, total: total, specification.digestsWanted,
            checksPieces ? specification.pieces : nil)
    }
}

extension Credential {
    /// The engine's form of user and password; nil without a user.
    fileprivate var httpAuthentication: HTTPAuthentication? {
        guard let user else { return nil }
        return HTTPAuthentication(user: user, password: password ?? "", isDigest: usesDigest)
    }
}

extension ProxySettings {
    /// - Parameter credential: The app's answer to the proxy's challenge, which replaces the session's credential.
    init(_ proxy: SessionConfiguration.Proxy, _ credential: Credential?) {
        let own = proxy.user.map { HTTPAuthentication(user: $0, password: proxy.password ?? "") }
        self.init(
            kind: proxy.kind, host: proxy.host, port: UInt16(clamping: proxy.port),
            authentication: credential?.httpAuthentication ?? own)
    }
}
