import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

/// One task under way: what was asked, where the current attempt stands.
struct Transfer {
    /// Why the scheduler told the engine to stop.
    enum StopReason {
        /// Suspended, cancelled, timed out, or conditions ended: the store knows already.
        case decided
        /// The service shuts down, or the transfer goes back to the queue.
        case interrupted
    }

    let task: ClaimedTask
    let session: Scheduler.KnownSession
    let name: TaskName
    var exchange = ExchangeID(rawValue: 0)
    var progress: TaskProgress
    /// The task's own URL.
    let taskURL: ParsedURL
    /// The request of the current hop.
    var url: ParsedURL
    var method: String
    var headers: HTTPFields
    var sendsBody: Bool
    var hops: Int
    /// How often this attempt's request was sent anew because a kept connection had been closed.
    var repeats = 0
    /// The resume point that the current request's `Range` was made from.
    var resuming: ResumePoint?
    var attemptStartedAt: Timestamp
    var stopReason: StopReason?
    /// Whether the task has another request by now, so that this one's answer does not count.
    var isOutdated = false
    /// Whether a partial file may be there, of this exchange or one before.
    var hasPartialFile: Bool
    /// Whether this attempt began at 0 although bytes were there.
    var restartCause: String?
    /// What the server that the current request goes to is sent or shown, or trusted for.
    var credential: Credential?
    /// The origin that ``credential`` is for.
    var credentialOrigin: String?
    var proxyCredential: Credential?
    /// What is stored for the server that the current request goes to, the best first.
    var storedCredentials: [KnownCredential] = []
    /// What is stored for the session's proxy, the best first.
    var storedProxyCredentials: [KnownCredential] = []
    /// What signs the request to the bucket of the object that it asks for, and what may be reached there.
    var bucketAccess: (fields: HTTPFields, egress: EgressPolicy)?
    /// What of the session's cookies the current request was given; nil where it has none.
    var cookies: [String]?
    /// Where an upload stands that may survive interruptions.
    var upload: ResumableUpload?
    /// How often its upload resource moved in this attempt.
    var uploadMoves = 0
    /// The header fields of requests to the task's own URL.
    let ownHeaders: HTTPFields
    /// Whether its content becomes an object in the bucket of contents while it arrives.
    let becomesContent: Bool
    /// Where the current request goes first: 0 is the task's own URL, then come its mirrors.
    var source = 0
    /// Sources that this attempt has asked.
    var triedSources: Set<Int> = []
    /// Shared by all who write to its partial file.
    let sync = SharedSync()
    /// Where its content comes in segments.
    var segmented: SegmentedTransfer?
    /// How its last request ended when all of the content was there, which is read once more.
    var whole: (result: ExchangeResult, reader: ContentReader)?
    /// What writes its content into a bucket, and how its request ended when all of that came.
    var writing: (writer: ObjectWriter, result: ExchangeResult?)?
    /// What the origin says that the content is, for the object that it becomes.
    var mediaType: String?
    /// What fetches its body.
    var fetching: (client: BucketClient, exchange: ExchangeID)?
    /// Rung when the task was decided about elsewhere, so that its object is not made any more.
    let decided = Doorbell()
    /// What was written of a content that becomes an object.
    var written: ObjectWriter.Finished?
    /// A piece of the content is not what the app expects.
    var wrongPiece: Range<Int64>?

    var specification: TaskSpecification { task.specification }
    var configuration: SessionConfiguration { session.configuration }

    /// Whether its bytes stay of use when it is interrupted.
    var canGoOnLater: Bool { progress.resume != nil || progress.segments != nil || upload?.resource != nil }

    /// What this attempt could choose from.
    var credentialsKnown: Set<String> {
        Set((storedCredentials + storedProxyCredentials).map(\.credentialId) + progress.credentialsTried)
    }

    /// Whether a protection space is where the current request goes.
    func isAt(_ space: ProtectionSpace) -> Bool {
        space.isAt(scheme: url.scheme, host: url.host, port: Int(url.port))
    }

    /// Chooses the credential that was stored for the same after a moment, where there is one.
    mutating func prefersStored(for space: ProtectionSpace, since time: Timestamp) -> Bool {
        let stored = space.isProxy ? storedProxyCredentials : storedCredentials
        guard let newer = stored.first(where: { $0.createdAt > time && $0.space.asksSame(as: space) }) else {
            return false
        }
        if !progress.credentialsTried.contains(newer.credentialId) {
            progress.credentialsTried.append(newer.credentialId)
        }
        return true
    }

    /// What the stored credentials say for the next request: those of the connection, and one for HTTP where a challenge
    /// named it, or where there is no other to choose from.
    var storedCredential: Credential {
        var credential = Credential()
        for known in storedCredentials.reversed() where !known.space.isHTTP { credential.adopt(known.credential) }
        if let chosen = chosen(of: storedCredentials, unasked: true) { credential.adopt(chosen) }
        return credential
    }

    /// The same for the proxy. A credential of the session's configuration goes first.
    var storedProxyCredential: Credential? {
        chosen(of: storedProxyCredentials, unasked: configuration.proxy?.user == nil)
    }

    /// The credential that a challenge led to, or, where it may be sent unasked, the only one there is.
    private func chosen(of known: [KnownCredential], unasked: Bool) -> Credential? {
        let forHTTP = known.filter(\.space.isHTTP)
        let named = progress.credentialsTried.reversed().lazy
            .compactMap { id in forHTTP.first { $0.credentialId == id } }.first
        let realms = Set(forHTTP.map { [$0.space.realm, $0.space.authenticationMethod.rawValue] })
        return (named ?? (unasked && realms.count == 1 ? forHTTP.first : nil))?.credential
    }

    /// Where to go on when all bytes are in the partial file and could not be put in their place.
    func progressOfWhole(_ source: Judgement.ContentSource) -> TaskProgress {
        var progress = progress
        guard case .partialFile(let length, let digest) = source, progress.resume != nil else { return progress }
        progress.resume?.reach(length, digest: digest.hexadecimal)
        progress.segments = nil
        progress.durableOffset = length
        return progress
    }
}

extension Settlement {
    /// The end of a task that failed here, through no fault of its origin.
    static func failed(
        _ task: TaskID, _ error: TaskError, _ progress: TaskProgress = TaskProgress(),
        of request: TransferRequest? = nil
    ) -> Settlement {
        let result = TaskResult(progress: progress).failing(with: error)
        return Settlement(task: task, .completed(.failed, result, nil), of: request, leavesPartialFile: true)
    }
}

extension Transfer {
    /// Prepares the first request of a claimed task.
    ///
    /// - Parameters:
    ///   - url: Of the object that it asks for.
    ///   - node: The name of this node, where there are many.
    ///   - hasContentsBucket: Whether contents are kept in a bucket.
    /// - Throws: `BadURL`.
    init(
        _ task: ClaimedTask, to url: ParsedURL? = nil, in session: Scheduler.KnownSession, version: String,
        node: String?, hasContentsBucket: Bool = false, at now: Timestamp
    ) throws(BadURL) {
        let specification = task.specification
        self.task = task
        name = TaskName(
            app: session.app, session: session.identifier, number: task.number,
            clientTaskId: specification.clientTaskId)
        self.session = session
        progress = task.progress
        progress.loseMemory()
        if let url { taskURL = url } else { taskURL = try ParsedURL(specification.request.url) }
        self.url = taskURL
        method = specification.request.method
        sendsBody = task.body != nil
        hops = 0
        attemptStartedAt = now
        progress.redirects = []
        // What may come out of order is gathered in a file first.
        becomesContent = hasContentsBucket && specification.bringsContent && !specification.mayComeInSegments
        let writesObject = becomesContent || specification.destinationObject != nil
        hasPartialFile = progress.resume != nil && progress.multipart == nil
        // What was written elsewhere before is of no use.
        let isInBucket = progress.multipart?.canBeGoneOnWith(specification, progress.resume) ?? false
        if writesObject ? !isInBucket : progress.multipart != nil { progress.forgetBytes() }
        if !writesObject, let node {
            if let other = progress.node, other != node, progress.resume != nil {
                progress.restartCause = "partialFileMissing"
                progress.forgetBytes()
                progress.adoptedFile = nil
            }
            progress.node = node
        }
        resuming = specification.kind == .download ? progress.resume.flatMap { $0.offset > 0 ? $0 : nil } : nil
        restartCause = resuming == nil ? progress.restartCause : nil
        ownHeaders = Self.headers(specification, session.configuration, body: task.body, version: version)
        headers = ownHeaders
        if progress.source > 0 { turn(to: progress.source) }
    }

    /// The header fields of the first request: the task's own win over the session's, and both over the defaults.
    private static func headers(
        _ specification: TaskSpecification, _ configuration: SessionConfiguration, body: BodyLocation?,
        version: String
    ) -> HTTPFields {
        var headers = specification.request.headers
        for field in configuration.httpAdditionalHeaders.fields where !headers.contains(field.name) {
            headers.append(field.name, field.value)
        }
        if !headers.contains("User-Agent") { headers.append("User-Agent", "urlsessiond/\(version)") }
        if !headers.contains("Accept") { headers.append("Accept", "*/*") }
        if !headers.contains("Accept-Encoding") { headers.append("Accept-Encoding", "identity") }
        if let tag = specification.ifNoneMatch, !headers.contains("If-None-Match") {
            headers.append("If-None-Match", tag)
        }
        if let mediaType = body?.mediaType, !headers.contains("Content-Type") {
            headers.append("Content-Type", mediaType)
        }
        return headers
    }

    /// The engine's request for the current hop.
    func request(folder: DataFolder, settings: ServiceSettings, bandwidthLimit: Int64?) -> ExchangeRequest {
        var request = ExchangeRequest(
            id: exchange, pool: task.app.rawValue, method: method, url: url, sink: sink(folder),
            egress: accessHere?.egress ?? settings.egress, judge: judge())
        request.headers = requestFields
        if credential?.token == nil { request.httpAuthentication = credential?.httpAuthentication }
        if sendsBody {
            request.body = body(folder, settings.contents)
            request.bodySHA256 = task.body.flatMap { [UInt8](hexadecimal: $0.digest) }
        }
        request.maximumBytes = specification.maximumContentLength ?? settings.maximumContentLength
        request.idleTimeout = .milliseconds(Int64(configuration.timeoutIntervalForRequest * 1000))
        request.connectTimeout = min(request.idleTimeout, .seconds(30))
        request.tls = tls
        request.proxy = configuration.proxy.map { ProxySettings($0, proxyCredential) }
        request.bandwidthLimit = bandwidthLimit
        if specification.kind == .download, !writesObject { request.maximumUnrecorded = maximumUnrecordedOfEach }
        request.cookies = cookies
        // The request's own cookies win.
        request.sendsCookies = configuration.httpShouldSetCookies && !request.headers.contains("Cookie")
        request.usesFreshConnection = isSentOnceAtMost
        if let upload { shape(&request, for: upload) }
        return request
    }

    private func sink(_ folder: DataFolder) -> SinkPlan {
        if writesObject { return .parts(resuming == nil ? nil : progress.multipart?.plan, after: storedParts) }
        let path = folder.absolute(folder.partial(task.id.rawValue))
        if comesInParts, resuming == nil { return .stretch(path: path, from: 0, sync: sync) }
        return .content(
            path: path, resumeOffset: resuming?.offset ?? 0,
            resumeDigest: resuming?.digest.flatMap { [UInt8](hexadecimal: $0) },
            digests: Array(specification.digestsWanted))
    }

    /// The header fields with those of the resume point and the credential.
    private var requestFields: HTTPFields {
        var fields = headers
        if let resuming {
            for field in resuming.requestFields.fields { fields.set(field.name, field.value) }
            fields.remove("If-None-Match")
        }
        for field in accessHere?.fields.fields ?? [] { fields.set(field.name, field.value) }
        if let token = credential?.token { fields.set("Authorization", "Bearer \(token)") }
        return fields
    }

    /// Whether the app wants the request sent no second time, and a second time could do harm.
    private var isSentOnceAtMost: Bool {
        configuration.retryPolicy.settings.maximumAttempts == 1 && !RetryableRequest.isIdempotent(method)
            && !headers.contains("Idempotency-Key")
    }

    /// Bytes of a download that came and whose offset is not stored yet, at most. A kill shall cost no more than 8 MiB, of
    /// which one is for what the connection's buffers may hold besides.
    static let maximumUnrecorded: Int64 = 7 << 20

    private var tls: TLSSettings {
        var tls = TLSSettings()
        tls.minimumVersion = configuration.tlsMinimumSupportedProtocolVersion
        tls.pinnedPublicKeys = configuration.pinnedPublicKeys[requestURL.host] ?? []
        tls.trustedServerKey = credential?.trustPublicKey
        if let certificate = credential?.certificate, let key = credential?.key {
            tls.clientCertificate = ClientCertificate(certificates: Array(certificate.utf8), key: Array(key.utf8))
        }
        return tls
    }

    private func body(_ folder: DataFolder, _ contents: ContentsBucket?) -> ExchangeBody {
        guard let body = task.body else { return .none }
        switch body.place {
        case .bytes(let bytes): return .bytes(bytes)
        case .file(let path): return .file(path: folder.absolute(path), offset: 0, length: body.length)
        case .objects(let objects):
            return .fetched(ObjectFetcher.fetching(objects, contents?.fetcher), offset: 0, length: body.length)
        }
    }

    /// Decides on the engine's thread what an answer is to the bytes at hand, and where its body goes.
    private func judge() -> @Sendable (ResponseHead) -> HeadJudgement {
        let resuming = resuming
        let isDownload = specification.kind == .download
        let namesObject = specification.destinationObject != nil
        let hasOwnRange = specification.request.headers.contains("Range")
        let acceptable = specification.acceptableStatusCodes
        let policy = configuration.retryPolicy
        @Sendable func mayGoOn(after status: Int) -> Bool {
            Redirect.isRedirect(status) || policy.retries(status: status) || status == 401 || status == 407
        }
        return { head in
            guard isDownload else { return HeadJudgement(.keep(at: 0)) }
            let verdict = ResumeVerdict.judge(head: head, resuming: resuming, requestHasOwnRange: hasOwnRange)
            // No page becomes the object that the app named.
            if namesObject, !verdict.asksAgain, !acceptable.contains(where: { $0.contains(head.status) }) {
                return HeadJudgement(.discard(limit: Self.sideLimit), verdict)
            }
            let body: BodyDisposition =
                switch verdict {
                case .append(let offset): .keep(at: offset)
                case .restartWithThisBody: .keep(at: 0)
                case .askAgainFromZero: .stop
                case .alreadyComplete: .discard(limit: Self.sideLimit)
                // What was fetched so far stays while the task may still go on.
                case .notADownload(let status):
                    resuming == nil || acceptable.contains { $0.contains(status) } || !mayGoOn(after: status)
                        ? .keep(at: 0) : .discard(limit: Self.sideLimit)
                }
            return HeadJudgement(body, verdict)
        }
    }

    /// How much of an error page is kept while the partial content has to stay.
    static let sideLimit = 64 * 1024
}

extension Credential {
    /// What the engine makes of user and password; nil without.
    fileprivate var httpAuthentication: HTTPAuthentication? {
        guard let user else { return nil }
        return HTTPAuthentication(user: user, password: password ?? "", isDigest: usesDigest)
    }
}

extension ProxySettings {
    /// - Parameter credential: What the app answered to the proxy's challenge, in place of the session's.
    init(_ proxy: SessionConfiguration.Proxy, _ credential: Credential?) {
        let own = proxy.user.map { HTTPAuthentication(user: $0, password: proxy.password ?? "") }
        self.init(
            kind: proxy.kind, host: proxy.host, port: UInt16(clamping: proxy.port),
            authentication: credential?.httpAuthentication ?? own)
    }
}
