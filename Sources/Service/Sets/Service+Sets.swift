import Base
package import Core
import Files
import Store

/// A change of a set's configuration; `nil` leaves a member as it is.
package struct SetChange: Sendable {
    /// `.some(nil)` removes the destination.
    package var destination: SetDestination??
    package var layout: SetLayout?
    package var keep: Int64?
    package var grace: Int64?
    package var cachePolicy: CachePolicy?

    package init() {}
}

/// An app's request for a version. Its files follow.
package struct SetVersionOrder: Sendable {
    /// `nil` for the commit of a source, or the `versionId`.
    package var name: String?
    package var source: SetSource?
    package var metadata: [String: String] = [:]

    package init() {}
}

/// A version whose files are being received. Readers do not see it.
package struct SetDraft: Sendable {
    package let id: SetVersionID
}

extension Service {
    /// Creates or changes a set of an app.
    ///
    /// - Parameter revision: The set's revision that the caller expects, or nil.
    /// - Throws: ``DomainError/setHasVersions``, ``DomainError/revisionMismatch``.
    package func putSet(
        _ name: String, of app: AppID, _ change: SetChange, ifRevision revision: Int64?
    ) async throws -> (set: SetRecord, isNew: Bool) {
        throw DomainError.notFound
    }

    /// - Throws: ``DomainError/notFound``.
    package func set(_ name: String, of app: AppID) async throws -> SetRecord { throw DomainError.notFound }

    /// Sets of an app, after a position (the number of a set).
    package func sets(
        of app: AppID, _ span: ListSpan, after position: Int64?, limit: Int
    ) async throws -> [SetRecord] { throw DomainError.notFound }

    /// Deletes a set. Its files are removed soon afterwards.
    ///
    /// - Parameter keepsFiles: Whether the files of the current version stay at the destination.
    package func deleteSet(_ set: SetID, keepsFiles: Bool, ifRevision revision: Int64?) async throws {
        throw DomainError.notFound
    }

    /// Begins to receive a version.
    package func beginVersion(
        _ order: SetVersionOrder, of set: SetRecord, in session: SessionRecord
    ) async throws -> SetDraft { throw DomainError.notFound }

    /// Adds files to a version that is being received; up to 1,000 at once.
    package func add(_ files: [SetFile], to draft: SetDraft) async throws { throw DomainError.notFound }

    /// Ends the reception of a version, which is fetched from then on. A name that the same request has taken before
    /// yields its version.
    ///
    /// - Parameter fingerprint: The identity of the request: a digest of its body.
    /// - Throws: ``DomainError/setVersionExists``; ``ServiceError`` for colliding paths.
    package func finish(
        _ draft: SetDraft, fingerprint: [UInt8]
    ) async throws -> (version: SetVersionRecord, isNew: Bool) { throw DomainError.notFound }

    /// Forgets a version that was not received whole.
    package func discard(_ draft: SetDraft) async {}

    /// A version by its name or `versionId`.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func version(_ name: String, of set: SetID) async throws -> SetVersionRecord {
        throw DomainError.notFound
    }

    /// The versions of a set in all states, after a position (the number of a version).
    package func versions(
        of set: SetID, _ span: ListSpan, after position: Int64?, limit: Int
    ) async throws -> [SetVersionRecord] { throw DomainError.notFound }

    /// Fetches the failed files of a version again.
    ///
    /// - Throws: ``DomainError/setVersionState(_:)`` unless the version has failed.
    package func retryVersion(_ version: SetVersionID, ifRevision revision: Int64?) async throws -> SetVersionRecord {
        throw DomainError.notFound
    }

    /// Gives a version up. Repeating it changes nothing.
    ///
    /// - Throws: ``DomainError/setVersionState(_:)`` if the version is published.
    package func cancelVersion(_ version: SetVersionID, ifRevision revision: Int64?) async throws -> SetVersionRecord {
        throw DomainError.notFound
    }

    /// Makes a kept version current, and waits until its destination shows it.
    ///
    /// - Parameter revision: The set's revision that the caller expects, or nil.
    package func switchSet(
        _ set: SetID, to version: SetVersionID, ifRevision revision: Int64?
    ) async throws -> SetRecord { throw DomainError.notFound }

    /// The files of a published version in the order of their paths' bytes, after a path.
    package func manifestFiles(
        of version: SetVersionID, after path: String?, limit: Int
    ) async throws -> [SetManifestFile] { throw DomainError.notFound }

    /// A file of a published version.
    ///
    /// - Returns: Also the response head of the origin, for the fields of the content.
    /// - Throws: ``DomainError/notFound``.
    package func file(
        _ path: String, of version: SetVersionRecord
    ) async throws -> (file: SetManifestFile, source: ContentSource) { throw DomainError.notFound }
}
