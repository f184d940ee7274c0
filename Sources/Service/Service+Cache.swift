package import Core
import Store
import TransferEngine
import Transfers

extension Service {
    /// The size of an app's cache, and the capacity for the caches of all apps.
    package func cacheUsage(of app: AppID) async throws -> (record: CacheRecord, capacity: Int64) {
        (try await store.cache.usage(of: app), settings.cacheCapacity)
    }

    /// Empties the cache of an app.
    ///
    /// - Parameter url: Removes only responses of tasks with this URL.
    package func emptyCache(of app: AppID, url: ParsedURL?) async throws {
        try await repeatStep { try await store.cache.empty(of: app, url: url?.text, at: clock.now) }
    }
}
