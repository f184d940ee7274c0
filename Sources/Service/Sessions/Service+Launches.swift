package import Core
import Store

extension Service {
    /// A launch with its attempts.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func launch(_ launchId: String, app: AppID) async throws -> LaunchRecord {
        try await store.launch(launchId, app: app)
    }

    /// Up to `limit` launches of an app after a cursor, with the cursor of each, in the order of their creation.
    ///
    /// - Parameter state: A state's code.
    package func launches(
        of app: AppID, session identifier: String?, state: LaunchState.Phase?, kind: LaunchKind?,
        after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, launch: LaunchRecord)] {
        try await store.launches(
            of: app, session: identifier, state: state, kind: kind, after: cursor, limit: limit)
    }
}
