import Base
import Buckets
import Core
import Files
import Store
import Transfers
import Wire
import WireMapping

extension Service {
    /// The places from which the files of versions are read.
    var publishedSources: PublishedSources { PublishedSources(folder: folder, contents: settings.contents?.client) }

    /// Nil for a set that is read through the API only.
    ///
    /// - Throws: ``ServiceError`` if the operator removed the root or the bucket.
    func outlet(of set: SetRecord) throws(ServiceError) -> SetOutlet? {
        guard let destination = set.configuration.destination else { return nil }
        if let name = destination.bucket {
            guard let client = settings.buckets[name] else {
                throw .unknownBucket(index: 0, name: name, place: .destination)
            }
            let prefix = SetPrefix(client, prefix: destination.prefix ?? "", sources: publishedSources)
            return SetOutlet(set: set, place: .prefix(prefix), service: self)
        }
        guard let name = destination.root, let root = settings.filesRoots[name] else {
            throw .unknownRoot(index: 0, name: destination.root ?? "")
        }
        return SetOutlet(set: set, place: .folder(root: root, path: destination.path ?? "."), service: self)
    }
}

/// The destination of a set. Each step may be repeated.
struct SetOutlet: Sendable {
    enum Place: Sendable {
        case folder(root: String, path: String)
        case prefix(SetPrefix)
    }

    let set: SetRecord
    let place: Place
    let service: Service

    private static let filesAtOnce = 1000

    /// The folder of a version. In the cache of huggingface_hub each repository has its own.
    private func folder(_ root: String, _ path: String, _ version: SetVersionRecord) -> SetFolder {
        folder(root, path, layout(of: version))
    }

    private func folder(_ root: String, _ path: String, _ layout: SetFolder.Layout) -> SetFolder {
        SetFolder(root: root, path: path, layout: layout, sources: service.publishedSources)
    }

    private func layout(of version: SetVersionRecord) -> SetFolder.Layout {
        guard set.configuration.layout == .hfCache, let source = version.source, let repository = source.repository
        else { return .versions }
        return .hfCache(repository: repository, type: source.type, revision: source.revision)
    }

    /// The name of a version at the destination. The cache of huggingface_hub names snapshots by their commits.
    func name(of version: SetVersionRecord) -> String {
        set.configuration.layout == .hfCache ? version.commit ?? version.name : version.name
    }

    func place(_ files: [KeptSetFile], of version: SetVersionRecord) async throws {
        var published = files.map(PublishedFile.init)
        switch place {
        case .folder(let root, let path):
            try await folder(root, path, version).place(published, of: name(of: version))
        case .prefix(let prefix):
            if let current = set.current {
                let digests = try await service.store.sets.digests(of: published.map(\.path), in: current.id)
                for (index, digest) in digests.enumerated() where digest == published[index].digest {
                    published[index].earlier = prefix.key(published[index].path, of: name(of: current))
                }
            }
            try await prefix.place(published, of: name(of: version))
        }
    }

    /// Completes the version at the destination, before readers are pointed to it.
    func seal(_ version: SetVersionRecord, manifestDigest: String) async throws {
        switch place {
        case .folder(let root, let path):
            try await folder(root, path, version).seal(name(of: version), files: version.files.total)
        case .prefix(let prefix):
            var manifest = SetManifest(version, of: set.name)
            manifest.manifestDigest = manifestDigest
            manifest.publishedAt = service.clock.now.rfc3339
            while true {
                let after = manifest.files.last?.path ?? ""
                let files = try await service.manifestFiles(of: version.id, after: after, limit: Self.filesAtOnce)
                guard !files.isEmpty else { break }
                manifest.files += files.map(Wire.SetManifestFile.init)
            }
            try await prefix.write(manifest: manifest.jsonBytes, of: name(of: version))
        }
    }

    /// Checks that nothing of another program is in the place of the readers' link.
    ///
    /// - Throws: ``SetFolderFault/currentIsNoLink(_:)``.
    func checkPointer(for version: SetVersionRecord) async throws {
        guard case .folder(let root, let path) = place else { return }
        try await folder(root, path, version).checkPointer()
    }

    /// Shows the version to readers of the destination.
    func point(to version: SetVersionRecord) async throws {
        switch place {
        case .folder(let root, let path): try await folder(root, path, version).point(to: name(of: version))
        case .prefix(let prefix):
            let pointer = SetPointer {
                $0.name = set.name
                $0.version = version.name
                $0.versionId = version.publicId
                $0.manifest = "manifests/\(prefix.manifestName(of: name(of: version)))"
                $0.publishedAt = service.clock.now.rfc3339
            }
            try await prefix.point(pointer.jsonBytes)
        }
    }

    /// Shows another version, or none, to readers who may see one that was not published.
    ///
    /// - Parameter published: The versions that may be shown instead.
    func withdraw(_ version: SetVersionRecord, for published: [SetVersionRecord]) async throws {
        let others = published.filter { layout(of: $0) == layout(of: version) }
        if let other = others.first(where: { $0.id == set.current?.id }) ?? others.max(by: { $0.id < $1.id }) {
            return try await point(to: other)
        }
        switch place {
        case .folder(let root, let path): try await folder(root, path, version).removePointer()
        case .prefix(let prefix): try await prefix.removePointer()
        }
    }

    /// Removes the files of a version.
    ///
    /// - Parameter others: The versions whose files stay. One of them may have taken the name of a failed version.
    func remove(_ version: SetVersionRecord, but others: [SetVersionRecord]) async throws {
        guard !others.contains(where: { $0.id != version.id && name(of: $0) == name(of: version) }) else { return }
        switch place {
        case .folder(let root, let path): try await folder(root, path, version).remove(name(of: version))
        case .prefix(let prefix): try await prefix.remove(name(of: version))
        }
    }

    /// Removes what steps that were interrupted left, but no file of the given versions.
    func sweep(keeping versions: [SetVersionRecord]) async throws {
        guard case .folder(let root, let path) = place, let version = versions.last else { return }
        let swept = folder(root, path, version)
        let names = versions.filter { layout(of: $0).isSameFolder(as: swept.layout) }.map(name)
        try await swept.sweep(keeping: Swift.Set(names))
    }

    /// Removes everything that the set published.
    ///
    /// - Parameters:
    ///   - current: The version whose files stay, if any.
    ///   - versions: All versions of the set.
    func removeAll(keeping current: SetVersionRecord?, known versions: [SetVersionRecord]) async throws {
        switch place {
        case .prefix(let prefix): try await prefix.removeAll(keeping: current.map(name))
        case .folder(let root, let path):
            let kept = current.map(layout)
            let others = Swift.Set(versions.map(layout)).filter { $0 != kept }
            for layout in others { try await folder(root, path, layout).removePointer() }
            // The pointer of the kept version alone says what stays in its folder.
            if let kept { try await folder(root, path, kept).removeAll(keepingCurrent: true) }
            var done = [kept].compactMap(\.self)
            for layout in others where !done.contains(where: layout.isSameFolder) {
                done.append(layout)
                try await folder(root, path, layout).removeAll(keepingCurrent: false)
            }
        }
    }
}

extension SetFolder.Layout {
    /// Whether versions of both layouts lie in one folder.
    fileprivate func isSameFolder(as other: Self) -> Bool {
        switch (self, other) {
        case (.versions, .versions): true
        case (.hfCache(let repository, let type, _), .hfCache(let other, let otherType, _)):
            repository == other && type == otherType
        default: false
        }
    }
}

extension PublishedFile {
    init(_ file: KeptSetFile) {
        self.init(
            path: file.file.path, length: file.file.length, digest: file.file.digest, blobName: file.blobName,
            storage: file.storage)
    }
}
