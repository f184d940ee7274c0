import Base
import Core
import Service

/// The rules of the cache, and of transfers that tasks share.
extension Client {
    func policy(of task: KnownTask) -> CachePolicy {
        task.order.specification.request.cachePolicy ?? configuration.requestCachePolicy
    }

    func emptyCache() async throws {
        let app = world.app
        _ = try await attempt("empty the cache") { service, _ in try await service.emptyCache(of: app, url: nil) }
    }

    /// Checks that a succeeded task has shared or reused a response only as its policy allows.
    func checkReuse(_ task: KnownTask, _ found: TaskRecord) throws {
        guard let status = found.result?.cacheStatus else { return }
        let policy = policy(of: task)
        trace.met("cache \(status) with \(policy)")
        // A changed request has another resource, and the session's policy.
        guard task.resources.count == 1, let resource = task.resources.first else { return }
        guard task.isDownload, policy != .reloadIgnoringLocalCacheData else {
            throw Violation("\(task.name) has the cache status \(status) with the policy \(policy).")
        }
        guard found.result?.response?.statusCode == 200 else { return }
        if resource.reuse.isNeverStored, status != .collapsed || policy == .useProtocolCachePolicy {
            throw Violation(
                "\(task.name) has the cache status \(status) with \(policy), and its response may not be reused.")
        }
        guard status == .hit else { return }
        if policy == .reloadRevalidatingCacheData {
            throw Violation("\(task.name) was answered from the cache without revalidation.")
        }
        guard policy == .useProtocolCachePolicy, !plan.has(.clockJumps), let digest = found.result?.contentDigest,
            let bytes = [UInt8](hexadecimal: digest.value), let servedAt = resource.lastServed(bytes)
        else { return }
        // Times of fields are in seconds.
        if servedAt + resource.reuse.freshness + 2000 < task.askedAt {
            throw Violation("\(task.name) was answered with a stale response of \(servedAt) at \(task.askedAt).")
        }
    }
}
