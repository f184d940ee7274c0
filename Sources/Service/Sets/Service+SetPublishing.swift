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
        let destination = destination(of: set)
        let digest = Digest(.sha256)
        var after = ""
        while true {
            let files = try await store.sets.keptFiles(of: version.id, after: after, limit: Self.filesAtOnce)
            guard let last = files.last else { break }
            after = last.file.path
            for file in files { digest.update(file.file.manifestLine) }
            try await destination?.place(files.map(PublishedFile.init), of: version)
        }
        let manifestDigest = digest.finish().hexadecimal
        try await destination?.seal(version) { after in
            try await self.manifestFiles(of: version.id, after: after, limit: Self.filesAtOnce)
        }
        // The app may have cancelled the version in the meantime.
        guard try await store.sets.standing(of: version.id)?.version.state == .publishing else { return }
        try await destination?.point(to: version)
        outlet.handle(try await store.sets.publish(version.id, manifestDigest: manifestDigest, at: clock.now))
    }
}

extension SetManifestFile {
    /// The file's part of the manifest's digest.
    fileprivate var manifestLine: [UInt8] {
        Array("\(digest.algorithm.rawValue):\(digest.value) \(length) \(path)\n".utf8)
    }
}
