/// How a download uses what is stored, as `URLRequest.CachePolicy` has it.
public struct CachePolicy: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It is transferred, and the result is not stored in the cache; the default.
    public static let reloadIgnoringLocalCacheData: Self = "reloadIgnoringLocalCacheData"
    /// RFC 9111 as a private cache: a fresh response is used, a stale one is revalidated.
    public static let useProtocolCachePolicy: Self = "useProtocolCachePolicy"
    /// What is stored is revalidated, however fresh it is.
    public static let reloadRevalidatingCacheData: Self = "reloadRevalidatingCacheData"
    /// What is stored is used, however old it is.
    public static let returnCacheDataElseLoad: Self = "returnCacheDataElseLoad"
    /// What is stored is used, and nothing is transferred.
    public static let returnCacheDataDontLoad: Self = "returnCacheDataDontLoad"
    public static let known: [Self] = [
        .reloadIgnoringLocalCacheData, .useProtocolCachePolicy, .reloadRevalidatingCacheData, .returnCacheDataElseLoad,
        .returnCacheDataDontLoad,
    ]
}

/// How a task came by its content, in the words of RFC 9211.
public struct CacheStatus: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// It was transferred, and is stored in the cache.
    public static let stored: Self = "stored"
    /// What was stored was used, without a request.
    public static let hit: Self = "hit"
    /// What was stored was used, after the server had confirmed it.
    public static let revalidated: Self = "revalidated"
    /// Another task transferred it.
    public static let collapsed: Self = "collapsed"
    public static let known: [Self] = [.stored, .hit, .revalidated, .collapsed]
}

/// Where a response came from, as `URLSessionTaskMetrics.ResourceFetchType` has it.
public struct ResourceFetchType: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let networkLoad: Self = "networkLoad"
    public static let localCache: Self = "localCache"
    public static let known: [Self] = [.networkLoad, .localCache]
}

/// What the cache of an app holds, and what it saved.
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
    /// Tasks that shared what another task transferred.
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
