import Formats

/// The use of stored responses by a download, with the names of Apple's `NSURLRequest.CachePolicy`.
package enum CachePolicy: String, Word, CaseIterable {
    case reloadIgnoringLocalCacheData, useProtocolCachePolicy, reloadRevalidatingCacheData
    case returnCacheDataElseLoad, returnCacheDataDontLoad
}

/// The origin of a task's content, in the words of RFC 9211.
package enum CacheStatus: String, Word, CaseIterable {
    /// Transferred, and stored in the cache.
    case stored
    /// Used as stored, without a request.
    case hit
    /// Used as stored, after the origin had confirmed it with a 304.
    case revalidated
    /// Shared with another task that transferred it.
    case collapsed
}

/// The steps of a task with a cache policy before its request.
package enum CacheDecision: Hashable, Sendable {
    case use
    /// Sends the request with these conditions.
    case revalidate(HTTPFields)
    case load
    /// The policy forbids a transfer, and nothing is stored.
    case fail

    /// - Parameters:
    ///   - stored: The stored response that matches the request, if any.
    ///   - request: The header fields of the request.
    /// - SeeAlso: RFC 9111 section 4.
    package static func decide(
        _ policy: CachePolicy, _ stored: CachedResponse?, for request: HTTPFields, at now: Timestamp
    ) -> CacheDecision {
        switch policy {
        case .reloadIgnoringLocalCacheData: .load
        case .useProtocolCachePolicy:
            stored.map { $0.isFresh(for: request, at: now) ? .use : $0.revalidation } ?? .load
        case .reloadRevalidatingCacheData: stored?.revalidation ?? .load
        case .returnCacheDataElseLoad: stored == nil ? .load : .use
        case .returnCacheDataDontLoad: stored == nil ? .fail : .use
        }
    }
}

extension CachedResponse {
    fileprivate var revalidation: CacheDecision { conditions.map(CacheDecision.revalidate) ?? .load }
}
