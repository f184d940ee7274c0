import Core
import Formats
import Store
import TransferEngine

/// The use of stored responses by an attempt, after it has consulted the store.
struct Reuse: Sendable {
    let key: CacheKey
    /// Whether other tasks may wait for the transfer.
    var leads = false
    /// A stored response that the origin is asked to confirm.
    var stored: StoredResponse?
    /// Whether a request of the attempt presented an identity that ``key`` does not name.
    var isPrivate = false
}

/// The shareable parts of a response, without its content.
struct Sharing: Sendable {
    let cached: CachedResponse
    let key: CacheKey
    let isReusable: Bool
    var isPrivate = false

    /// The result of a settlement for other tasks.
    ///
    /// - Parameter content: Nil for the task's own content.
    func landing(of verdict: Settlement.Verdict, _ content: NewContent? = nil) -> Landing? {
        guard case .completed(_, _, let own?) = verdict else { return nil }
        let shared = content ?? own
        if case .moved = shared.storage { return nil }
        return landing(shared)
    }

    /// The result of a settlement for other tasks, with its content.
    func landing(_ content: NewContent) -> Landing {
        Landing(cached, key, isReusable: isReusable, isPrivate: isPrivate, content: content)
    }
}

extension Transfer {
    var cachePolicy: CachePolicy { specification.request.cachePolicy ?? configuration.requestCachePolicy }

    /// Whether the store is consulted before the next request: once in an attempt, for the task's own URL.
    var consultsCache: Bool {
        cachePolicy != .reloadIgnoringLocalCacheData && attempt.reuse == nil && !progress.avoidsCache
            && request.hops == 0 && request.source == 0 && specification.mayUseCache
            && !Self.conditionalFields.contains { ownHeaders.contains($0) }
    }

    private static let conditionalFields = [
        "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range",
    ]

    /// The query to the store.
    ///
    /// - Parameter cookies: Lines of the session's cookies for the request.
    func cacheQuestion(cookies: [String]) -> CacheQuestion {
        let access = attempt.accesses[taskURL.origin] ?? attempt.access
        let credential = [access.credential, access.proxyCredential].compactMap { $0 }
        let key = CacheKey(
            taskURL, ownHeaders, cookies: sent(cookies).map(Self.identity),
            credential: credential.isEmpty ? nil : String(decoding: credential.bytesAtRest, as: UTF8.self),
            configuration)
        return CacheQuestion(task: id, key: key, headers: ownHeaders, policy: cachePolicy)
    }

    /// The session's cookies that a request sends.
    private func sent(_ cookies: [String]) -> [String] {
        configuration.httpShouldSetCookies && !ownHeaders.contains("Cookie") ? cookies : []
    }

    /// Notes the identity that a request presents. Other tasks get no response to an identity that the cache key does not
    /// name: of the target of a redirect, or of a credential or cookies that were stored since the store was consulted.
    ///
    /// - Returns: Whether tasks of other sessions may wait for the transfer.
    mutating func noteIdentity(_ cookies: [String], at url: ParsedURL) -> Bool {
        guard let reuse = attempt.reuse, !reuse.isPrivate else { return false }
        let isNamed =
            url.origin == taskURL.origin
            ? cacheQuestion(cookies: cookies).key == reuse.key : sent(cookies).isEmpty && credential(for: url) == nil
        guard !isNamed else { return false }
        attempt.reuse?.isPrivate = true
        return reuse.leads
    }

    /// The parts of a cookie's line that a server sees, and its path. Each response may change the expiry.
    private static func identity(of line: String) -> String {
        let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
        return parts.count < 7 ? line : "\(parts[2])\t\(parts[5])\t\(parts[6])"
    }

    /// Follows the decision of the store.
    mutating func take(_ answer: CacheAnswer, _ world: Surroundings) -> [Effect] {
        guard case .consulting = stage else { return [] }
        stage = .ready
        switch answer {
        case .follow:
            return [.settle(Settlement(task: id, .released))]
        case _ where stop != nil: return [.settle(Settlement(task: id, .interrupted(progress)))]
        case .gone: return [.settle(Settlement(task: id, .interrupted(progress)))]
        case .load(let stored, let leads):
            let usable = stored.flatMap { attempt.resuming == nil && canServe($0) ? $0 : nil }
            attempt.reuse?.leads = leads
            attempt.reuse?.stored = usable
            return progress.kept.segments == nil ? start(world) : [.find]
        case .use(let stored, _) where !canServe(stored): return start(world)
        case .use(let stored, let status): return serve(stored, status, world)
        case .fail: return end(TaskError(.resourceUnavailable, failingURL: taskURL.text))
        }
    }

    /// Whether the stored bytes can become the content here. An object is neither copied nor digested once more.
    private func canServe(_ stored: StoredResponse) -> Bool {
        guard case .objects = stored.storage else { return true }
        return specification.destination == nil && specification.expectedDigest?.algorithm ?? .sha256 == .sha256
    }

    /// Ends the task with a stored response.
    private mutating func serve(_ stored: StoredResponse, _ status: CacheStatus, _ world: Surroundings) -> [Effect] {
        let response = stored.cached.response
        if let limit = specification.maximumContentLength, stored.length > limit {
            return end(TaskError(.dataLengthExceedsMaximum, failingURL: response.url))
        }
        var metrics = TransactionMetrics(url: response.url, fetchStartDate: world.now)
        metrics.statusCode = response.statusCode
        metrics.resourceFetchType = .localCache
        (metrics.responseStartDate, metrics.responseEndDate) = (world.now, world.now)
        var result = TaskResult(progress: progress)
        result.progress.record(metrics)
        result.progress.currentURL = response.url
        result.progress.share(version: stored.cached.version)
        result.response = response
        result.cacheStatus = status
        let isAcceptable = specification.accepts(response.statusCode)
        guard isAcceptable || !specification.failOnHTTPError else {
            return end(TaskError(.badServerResponse, failingURL: response.url), response)
        }
        stage = .finishing
        return [
            .finalize,
            .place(
                Finish(
                    outcome: isAcceptable ? .succeeded : .httpError, taskResult: result, source: .stored(stored),
                    result: nil)),
        ]
    }

    private func end(_ error: TaskError, _ response: TaskResponse? = nil) -> [Effect] {
        var result = TaskResult(progress: progress).failing(with: error)
        result.response = response
        return [.settle(Settlement(task: id, .completed(.failed, result, nil), leavesPartialFile: hasPartialFile))]
    }

    // MARK: For others

    func mayBeReused(_ head: ResponseHead) -> Bool { CachedResponse.mayStore(head.fields, ownHeaders) }

    /// The shareable parts of a response; `nil` if there are none, or if the store was not consulted.
    func sharing(_ result: TaskResult, _ exchange: ExchangeResult, _ world: Surroundings) -> Sharing? {
        guard let reuse = attempt.reuse, let head = exchange.head, let response = result.response?.asWhole else {
            return nil
        }
        if head.status == 304 {
            return exchange.freshened(of: self, at: world.now).map {
                Sharing(
                    cached: $0, key: reuse.key, isReusable: CachedResponse.mayStore($0.fields, ownHeaders),
                    isPrivate: reuse.isPrivate)
            }
        }
        // The response to a range that this task alone has requested, or a redirect that others may follow.
        if exchange.judgement?.verdict == .alreadyComplete || Redirect.isRedirect(head.status) { return nil }
        let (requestedAt, receivedAt) = exchange.times(world.now)
        let entry = CachedResponse(
            response, head.fields, to: ownHeaders, requestedAt: requestedAt, receivedAt: receivedAt,
            isRedirected: request.url.text != taskURL.text)
        guard entry != nil || reuse.leads else { return nil }
        var cached = entry ?? CachedResponse { $0.response = response }
        cached.version = result.progress.version
        return Sharing(
            cached: cached, key: reuse.key,
            isReusable: entry != nil || mayBeReused(head) && response.statusCode != 200, isPrivate: reuse.isPrivate)
    }
}

extension ExchangeResult {
    /// The times of the request and of its response.
    fileprivate func times(_ now: Timestamp) -> (requestedAt: Timestamp, receivedAt: Timestamp) {
        (metrics.requestStartDate ?? metrics.fetchStartDate, metrics.responseStartDate ?? now)
    }

    /// The stored response that a 304 confirms; nil if the 304 is about another one.
    func freshened(of transfer: Transfer, at now: Timestamp) -> CachedResponse? {
        guard let head, let stored = transfer.attempt.reuse?.stored else { return nil }
        let (requestedAt, receivedAt) = times(now)
        return stored.cached.freshened(
            by: head.fields, from: transfer.request.url.text, to: transfer.ownHeaders, requestedAt: requestedAt,
            receivedAt: receivedAt)
    }
}

extension TaskResponse {
    /// The response for the whole content. The last request may have fetched only its end.
    fileprivate var asWhole: TaskResponse {
        guard statusCode == 206 else { return self }
        var whole = self
        whole.statusCode = 200
        whole.headers.remove("Content-Range")
        whole.headers.remove("Content-Length")
        return whole
    }
}

extension Judgement.ContentSource {
    var isStored: Bool { if case .stored = self { true } else { false } }
}

extension TaskProgress {
    var avoidingCache: TaskProgress {
        var progress = self
        progress.avoidsCache = true
        return progress
    }
}

extension Judge {
    /// Judges a 304 to a request that asks for the confirmation of a stored response; nil for any other request.
    mutating func judgeConfirmation(_ head: ResponseHead) -> Judgement? {
        guard let stored = transfer.attempt.reuse?.stored else { return nil }
        guard let fresh = result.freshened(of: transfer, at: now) else { return .send(.unconditional) }
        note(nil)
        var taskResult = TaskResult(progress: progress)
        taskResult.progress.attempts.attempts += 1
        taskResult.response = fresh.response
        taskResult.cacheStatus = .revalidated
        return .finish(.succeeded, taskResult, .stored(stored))
    }

    /// Leaves a content with another digest than its own task expects to the followers.
    ///
    /// - Parameter next: The judgement for the task alone.
    func leave(_ content: Judgement.ContentSource, _ response: TaskResponse, then next: Judgement) -> Judgement {
        guard transfer.attempt.reuse?.leads == true, transfer.segmented == nil else { return next }
        switch content {
        case .bytes, .partialFile: break
        default: return next
        }
        switch next {
        case .send(.again(let cause)):
            var progress = progress.avoidingCache
            progress.restartCause = cause
            return .leave(content, response, .retry(at: now, waitsForConnectivity: false, progress))
        case .finish(let outcome, let result, _): return .leave(content, response, .completed(outcome, result, nil))
        default: return next
        }
    }
}
