/// The size and use of an app's cache.
package struct CacheRecord: Hashable, Sendable {
    package var entries: Int64 = 0
    package var bytes: Int64 = 0
    package var hits: Int64 = 0
    package var revalidations: Int64 = 0
    package var collapsed: Int64 = 0

    package init() {}
}
