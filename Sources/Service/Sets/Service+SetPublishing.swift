import Base
import Core
import Formats
import Store
import Transfers

extension Service {
    private static let filesAtOnce = 500

    /// Writes the files of a version to the destination, shows them there, and makes the version current.
    func publish(_ standing: SetVersionStanding) async throws {
        let (version, set) = (standing.version, standing.set)
        if standing.isOvertaken { return try await move(version.id, .overtaken) }
        let outlet = try self.outlet(of: set)
        if try await store.sets.isOccupied(set) {
            return try await store.sets.postpone(version, until: clock.now + .seconds(1))
        }
        if let outlet,
            let other = try await store.sets.livingVersions(of: set.id).first(where: { other in
                other.id != version.id && outlet.name(of: other) == outlet.name(of: version)
            })
        {
            return try await fail(version.id, "The same commit is published as version \(other.name).")
        }
        let digest = Digest(.sha256)
        var after = ""
        while true {
            let files = try await store.sets.keptFiles(of: version.id, after: after, limit: Self.filesAtOnce)
            guard let last = files.last else { break }
            after = last.file.path
            for file in files { digest.update(file.file.manifestLine) }
            try await outlet?.place(files, of: version)
        }
        let manifestDigest = digest.finish().hexadecimal
        try await outlet?.seal(version, manifestDigest: manifestDigest)
        // The app may have cancelled the version in the meantime.
        guard try await store.sets.standing(of: version.id)?.version.state == .publishing else { return }
        try await outlet?.point(to: version)
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
