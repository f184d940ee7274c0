import Base
import Core
import Formats
import Store
import Transfers

extension Service {
    private static let filesAtOnce = 500
    /// Files of smaller versions are placed after the last one only.
    private static let manyFiles: Int64 = 200
    /// The placed files that are held in memory, for all versions together.
    private static let mostPlacedFiles = 200_000
    /// The least time between two placements of files while others are fetched.
    private static let placementPause = Duration.seconds(1)
    private static let pauseAfterFailure = Duration.seconds(30)

    /// The versions of a set that have taken their names at the destination.
    func namedVersions(of set: SetRecord) async throws -> [SetVersionRecord] {
        try await store.sets.livingVersions(of: set.id).filter { $0.state == .publishing || $0.state == .published }
    }

    /// Writes fetched files of a large version to the destination while others are fetched, so that less is left to do
    /// after the last one.
    ///
    /// - Returns: When this is due again; `nil` if the files are written by the publication only.
    func placeFetched(_ standing: SetVersionStanding) async throws -> Timestamp? {
        let (version, set) = (standing.version, standing.set)
        guard version.files.total >= Self.manyFiles,
            placedFiles.withLock({ $0.values.reduce(0) { $0 + $1.count } }) <= Self.mostPlacedFiles,
            set.configuration.layout == .versions, !standing.isOvertaken,
            let outlet = try self.outlet(of: set), try await !store.sets.isOccupied(set.id),
            try await store.sets.isOnlyOne(version)
        else { return nil }
        let began = clock.monotonic()
        let placed = placedFiles.withLock { $0[version.id] } ?? [:]
        var rest = try await store.sets.keptPaths(of: version.id).filter { placed[$0] == nil }[...]
        while !rest.isEmpty {
            let paths = Array(rest.prefix(Self.filesAtOnce))
            let files = try await store.sets.keptFiles(paths, of: version.id)
            do {
                try await outlet.place(files, of: version)
            } catch  where !(error is CancellationError) {
                // The publication reports a destination that cannot be written in the end.
                log.warning("files of a set could not be placed yet", ("set", set.name), ("error", "\(error)"))
                return clock.now + Self.pauseAfterFailure
            }
            placedFiles.withLock { placed in
                for file in files { placed[version.id, default: [:]][file.file.path] = file.file.digest }
            }
            rest = rest.dropFirst(paths.count)
        }
        return clock.now + max(Self.placementPause, .milliseconds(4 * (clock.monotonic() - began)))
    }

    /// Writes the files of a version to the destination, shows them there, and makes the version current.
    func publish(_ standing: SetVersionStanding) async throws {
        let (version, set) = (standing.version, standing.set)
        if standing.isOvertaken { return try await move(version.id, .overtaken) }
        let outlet = try self.outlet(of: set)
        if try await store.sets.isOccupied(set.id) {
            return try await store.sets.postpone(version, until: clock.now + .seconds(1))
        }
        if let outlet,
            let other = try await namedVersions(of: set).first(where: { other in
                other.id != version.id && outlet.name(of: other) == outlet.name(of: version)
            })
        {
            return try await fail(version.id, "The same commit is published as version \(other.name).")
        }
        // A repeated publication compares all files with those at the destination.
        let placed = placedFiles.withLock { $0.removeValue(forKey: version.id) } ?? [:]
        let digest = Digest(.sha256)
        var after = ""
        while true {
            let files = try await store.sets.keptFiles(of: version.id, after: after, limit: Self.filesAtOnce)
            guard let last = files.last else { break }
            after = last.file.path
            for file in files { digest.update(file.file.manifestLine) }
            try await outlet?.place(files.filter { placed[$0.file.path] != $0.file.digest }, of: version)
        }
        let manifestDigest = digest.finish().hexadecimal
        try await outlet?.seal(version, manifestDigest: manifestDigest)
        if let outlet {
            try await outlet.checkPointer(for: version)
            // The app may have cancelled the version in the meantime. From now on it cannot.
            guard try await store.sets.note(mayBeShown: true, version.id) else { return }
            try await outlet.point(to: version)
        }
        self.outlet.handle(try await store.sets.publish(version.id, manifestDigest: manifestDigest, at: clock.now))
        log.info(
            "set published", ("set", set.name), ("version", version.name), ("files", version.files.total),
            ("bytes", version.bytes.total), ("reused", version.files.reused))
    }
}

extension SetManifestFile {
    /// The file's part of the manifest's digest.
    fileprivate var manifestLine: [UInt8] {
        Array("\(digest.algorithm.rawValue):\(digest.value) \(length) \(path)\n".utf8)
    }
}
