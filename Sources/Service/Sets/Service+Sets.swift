import Base
package import Core
import Files
import Glibc
import Store
import Transfers

/// A change of a set's configuration; `nil` leaves a member as it is.
package struct SetChange: Sendable {
    /// `.some(nil)` removes the destination.
    package var destination: SetDestination??
    package var layout: SetLayout?
    package var keep: Int64?
    package var grace: Int64?
    package var cachePolicy: CachePolicy?

    package init() {}

    fileprivate func apply(to configuration: inout SetConfiguration) {
        if let destination { configuration.destination = destination }
        if let layout { configuration.layout = layout }
        if let keep { configuration.keep = keep }
        if let grace { configuration.grace = grace }
        if let cachePolicy { configuration.cachePolicy = cachePolicy }
    }
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
    fileprivate let name: String?
}

extension Service {
    /// Creates or changes a set of an app.
    ///
    /// - Parameter revision: The set's revision that the caller expects, or nil.
    /// - Throws: ``DomainError/setHasVersions``, ``DomainError/setDestinationTaken``,
    ///   ``DomainError/setLayoutNeedsFolder``, ``DomainError/revisionMismatch``; ``ServiceError`` for an unknown root or
    ///   bucket.
    package func putSet(
        _ name: String, of app: AppID, _ change: SetChange, ifRevision revision: Int64?
    ) async throws -> (set: SetRecord, isNew: Bool) {
        if let root = change.destination??.root, settings.filesRoots[root] == nil {
            throw ServiceError.unknownRoot(index: 0, name: root)
        }
        if let bucket = change.destination??.bucket, settings.buckets[bucket] == nil {
            throw ServiceError.unknownBucket(index: 0, name: bucket, place: .destination)
        }
        try await store.sets.indexContents(of: app)
        let (set, isNew, aftermath) = try await store.sets.put(name, of: app, ifRevision: revision, at: clock.now) {
            change.apply(to: &$0)
        }
        outlet.handle(aftermath)
        return (set, isNew)
    }

    /// - Throws: ``DomainError/notFound``.
    package func set(_ name: String, of app: AppID) async throws -> SetRecord {
        try await store.sets.read(name, of: app)
    }

    /// Sets of an app, after a position (the number of a set).
    package func sets(
        of app: AppID, _ span: ListSpan, after position: Int64, limit: Int
    ) async throws -> [SetRecord] { try await store.sets.list(of: app, span, after: position, limit: limit) }

    /// Deletes a set. Its files are removed soon afterwards.
    ///
    /// - Parameter keepsFiles: Whether the files of the current version stay at the destination.
    package func deleteSet(_ set: SetID, keepsFiles: Bool, ifRevision revision: Int64?) async throws {
        outlet.handle(
            try await store.sets.forget(set, keepsFiles: keepsFiles, ifRevision: revision, at: clock.now))
    }

    // MARK: Versions

    /// Begins to receive a version.
    package func beginVersion(
        _ order: SetVersionOrder, of set: SetRecord, in session: SessionRecord
    ) async throws -> SetDraft {
        try requireRoom()
        let new = NewSetVersion(
            publicId: Identifier.make(prefix: "sver_"), source: order.source, metadata: order.metadata)
        return SetDraft(id: try await store.sets.begin(new, of: set, in: session, at: clock.now), name: order.name)
    }

    /// Adds files to a version that is being received; up to 1,000 at once.
    ///
    /// - Throws: ``ServiceError/collidingPaths(_:_:)``.
    package func add(_ files: [SetFile], to draft: SetDraft) async throws {
        do {
            try await store.sets.add(files, to: draft.id)
        } catch let error as SetPathCollision {
            throw ServiceError.collidingPaths(error.path, error.other)
        }
    }

    /// Ends the reception of a version, which is fetched from then on. A name that the same request has taken before
    /// yields its version.
    ///
    /// - Parameter fingerprint: The identity of the request: a digest of its body.
    /// - Throws: ``DomainError/setVersionExists``, ``DomainError/setRepositoryTaken``, ``DomainError/sessionInvalidated``.
    package func finish(
        _ draft: SetDraft, fingerprint: [UInt8], recording: Recording<ReceivedSetVersion>?
    ) async throws -> ReceivedSetVersion {
        let (received, aftermath) = try await store.sets.finish(
            draft.id, named: draft.name, fingerprint: fingerprint, at: clock.now, recording: recording)
        outlet.handle(aftermath)
        return received
    }

    /// Forgets a version that was not received whole.
    package func discard(_ draft: SetDraft) async {
        // A version that stays is removed an hour later.
        guard let aftermath = try? await store.sets.discard(draft.id, at: clock.now) else { return }
        outlet.handle(aftermath)
    }

    /// A version by its name or `versionId`.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func version(_ name: String, of set: SetID) async throws -> SetVersionRecord {
        try await store.sets.version(name, of: set)
    }

    /// The versions of a set in all states, after a position (the number of a version).
    package func versions(
        of set: SetID, _ span: ListSpan, after position: Int64, limit: Int
    ) async throws -> [SetVersionRecord] {
        try await store.sets.versions(of: set, span, after: position, limit: limit)
    }

    /// Fetches the failed files of a version again.
    ///
    /// - Throws: ``DomainError/setVersionState(_:)`` unless the version has failed.
    package func retryVersion(_ version: SetVersionID, ifRevision revision: Int64?) async throws -> SetVersionRecord {
        try requireRoom()
        let (retried, aftermath) = try await store.sets.retry(version, ifRevision: revision, at: clock.now)
        outlet.handle(aftermath)
        return retried
    }

    /// Gives a version up. Repeating it changes nothing.
    ///
    /// - Throws: ``DomainError/setVersionState(_:)`` if the version has ended otherwise, or readers may see it already.
    package func cancelVersion(_ version: SetVersionID, ifRevision revision: Int64?) async throws -> SetVersionRecord {
        let (cancelled, aftermath) = try await store.sets.handle(
            .cancel, version, ifRevision: revision, isOfApp: true, at: clock.now)
        outlet.handle(aftermath)
        guard cancelled.state == .cancelled else { throw DomainError.setVersionState(cancelled.state) }
        return cancelled
    }

    /// Makes a kept version current, and waits until its destination shows it.
    ///
    /// - Parameter revision: The set's revision that the caller expects, or nil.
    /// - Throws: ``DomainError/setVersionState(_:)``, ``DomainError/revisionMismatch``; ``ServiceError`` if the
    ///   destination does not show it within half a minute. The service repeats the attempt.
    package func switchSet(
        _ set: SetID, to version: SetVersionID, ifRevision revision: Int64?
    ) async throws -> SetRecord {
        outlet.handle(
            try await store.sets.beginSwitch(of: set, to: version, ifRevision: revision, at: clock.now))
        let deadline = clock.monotonic() + Self.longestSwitch.milliseconds
        var pause = Duration.milliseconds(5)
        while clock.monotonic() < deadline {
            guard let standing = try await store.sets.standing(of: set), !standing.isForgotten else {
                throw DomainError.notFound
            }
            if standing.switching?.id != version {
                guard standing.set.current?.id == version else { throw ServiceError.destinationUnavailable }
                return standing.set
            }
            try await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(500))
        }
        throw ServiceError.destinationUnavailable
    }

    private static let longestSwitch = Duration.seconds(30)

    // MARK: Reading

    /// The files of a published version in the order of their paths' bytes, after a path.
    package func manifestFiles(
        of version: SetVersionID, after path: String, limit: Int
    ) async throws -> [SetManifestFile] {
        try await store.sets.keptFiles(of: version, after: path, limit: limit).map(\.file)
    }

    /// A file of a published version.
    ///
    /// - Returns: Also a hold on the version, which is not removed while a reader keeps it.
    /// - Throws: ``DomainError/notFound``; ``DomainError/contentExpired`` if the bytes are damaged.
    package func file(
        _ path: String, of version: SetVersionRecord
    ) async throws -> (file: SetManifestFile, source: ContentSource, hold: SetReaders.Hold) {
        let hold = setReaders.hold(version.id)
        let kept = try await store.sets.keptFile(at: path, of: version.id)
        switch kept.storage {
        case .bytes(let bytes): return (kept.file, .here(.bytes(bytes)), hold)
        case .objects(let objects): return (kept.file, .bucket(objects), hold)
        case .file(let path):
            do throws(SystemError) {
                let file = try await folder.open(path)
                if try file.size() == kept.file.length { return (kept.file, .here(.file(file)), hold) }
            } catch {
                guard error.errno == ENOENT else { throw error }
            }
            log.error("the file of a set's version is damaged", ("version", version.publicId), ("file", path))
            throw DomainError.contentExpired
        }
    }
}

/// The versions that readers of the API have open at this node.
package final class SetReaders: Sendable {
    private let counts = Locked<[SetVersionID: Int]>([:])

    /// Keeps a version from being removed while it exists.
    package final class Hold: Sendable {
        private let readers: SetReaders
        private let version: SetVersionID

        fileprivate init(_ readers: SetReaders, _ version: SetVersionID) {
            self.readers = readers
            self.version = version
            readers.counts.withLock { $0[version, default: 0] += 1 }
        }

        deinit {
            readers.counts.withLock { counts in
                let left = (counts[version] ?? 1) - 1
                counts[version] = left > 0 ? left : nil
            }
        }
    }

    func hold(_ version: SetVersionID) -> Hold { Hold(self, version) }

    var held: Set<SetVersionID> { counts.withLock { Set($0.keys) } }
}
