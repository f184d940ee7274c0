/// The use of stored responses by a download, as in `URLRequest.CachePolicy`.
public struct CachePolicy: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The response is transferred and not stored in the cache; the default.
    public static let reloadIgnoringLocalCacheData: Self = "reloadIgnoringLocalCacheData"
    /// RFC 9111 as a private cache: a fresh response is used, a stale one is revalidated.
    public static let useProtocolCachePolicy: Self = "useProtocolCachePolicy"
    /// The stored response is revalidated, even if it is fresh.
    public static let reloadRevalidatingCacheData: Self = "reloadRevalidatingCacheData"
    /// The stored response is used, whatever its age.
    public static let returnCacheDataElseLoad: Self = "returnCacheDataElseLoad"
    /// The stored response is used, and never transferred.
    public static let returnCacheDataDontLoad: Self = "returnCacheDataDontLoad"
    public static let known: [Self] = [
        .reloadIgnoringLocalCacheData, .useProtocolCachePolicy, .reloadRevalidatingCacheData, .returnCacheDataElseLoad,
        .returnCacheDataDontLoad,
    ]
}

/// The origin of a task's content, in the words of RFC 9211.
public struct CacheStatus: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The response was transferred, and is stored in the cache.
    public static let stored: Self = "stored"
    /// The stored response was used without a request.
    public static let hit: Self = "hit"
    /// The stored response was used after the server had confirmed it.
    public static let revalidated: Self = "revalidated"
    /// Another task transferred the response.
    public static let collapsed: Self = "collapsed"
    public static let known: [Self] = [.stored, .hit, .revalidated, .collapsed]
}

/// The origin of a response, as in `URLSessionTaskMetrics.ResourceFetchType`.
public struct ResourceFetchType: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let networkLoad: Self = "networkLoad"
    public static let localCache: Self = "localCache"
    public static let known: [Self] = [.networkLoad, .localCache]
}

/// The size and savings of an app's cache.
public struct CacheUsage: Shape {
    /// Stored responses.
    public var entries: Int64 = 0
    /// Bytes of their contents.
    public var bytes: Int64 = 0
    /// Bytes that the caches of all apps may hold together.
    public var capacity: Int64 = 0
    /// Tasks that used a stored response without a request.
    public var hits: Int64 = 0
    /// Tasks that used a stored response after the server had confirmed it.
    public var revalidations: Int64 = 0
    /// Tasks that shared the transfer of another task.
    public var collapsed: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("entries", &entries)
        members.member("bytes", &bytes)
        members.member("capacity", &capacity)
        members.member("hits", &hits)
        members.member("revalidations", &revalidations)
        members.member("collapsed", &collapsed)
    }
}
