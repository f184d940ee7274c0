import Core
import HTTPServer
import Service
import TransferEngine
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// The cache of the app behind the key.
    var cacheRoutes: [Route] {
        [
            route("GET", "/v1/cache", .ownApp) { call in
                let (record, capacity) = try await call.service.cacheUsage(of: call.app)
                return .json(CacheUsage(record, capacity: capacity))
            },
            route("DELETE", "/v1/cache", .ownApp, query: ["url"], body: .empty) { call in
                // No response is stored for a URL that a task cannot have.
                let text = call.query("url")
                let url = text.flatMap { try? ParsedURL($0) }
                if text == nil || url != nil { try await call.service.emptyCache(of: call.app, url: url) }
                return .nothing
            },
        ]
    }
}
