/// The places of sets: `root/ROOT/PATH` for a folder, `bucket/BUCKET/PREFIX` for the objects below a prefix. The place of
/// a set in the cache of huggingface_hub is the folder of its repository.
///
/// A set owns what is below its place, so no set has a place below that of another set.
package enum SetPlace {
    package static func folder(_ path: String, root: String) -> String { "root/\(root)/\(path)" }

    package static func prefix(_ prefix: String, bucket: String) -> String { "bucket/\(bucket)/\(prefix)" }

    /// The places above a place, the outermost first.
    package static func ancestors(of place: String) -> [String] {
        place.utf8.indices.filter { place.utf8[$0] == UInt8(ascii: "/") }.map { String(place[..<$0]) }
    }

    /// The places of sets to whose published files a file belongs, if there are such sets.
    ///
    /// - Parameter file: The place of the file or object.
    package static func owners(of file: String) -> [String] {
        // A combining mark may follow a slash.
        let parts = file.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        return parts.indices.dropFirst(2).filter { index in
            switch (parts[0], parts[index]) {
            case ("root", ".versions"), ("root", "current"): true
            case ("root", "blobs"), ("root", "snapshots"), ("root", "refs"): isRepository(parts[index - 1])
            case ("bucket", "versions"), ("bucket", "manifests"), ("bucket", "current.json"): true
            default: false
            }
        }.map { parts[..<$0].joined(separator: "/") }
    }

    private static func isRepository(_ folder: String) -> Bool {
        SetSource.RepositoryType.allCases.contains { folder.hasPrefix($0.folder(of: "")) }
    }
}

extension TaskSpecification {
    /// The place of the downloaded file or object; `nil` without a destination.
    package var place: String? {
        destination.map { SetPlace.folder($0.path, root: $0.root) }
            ?? destinationObject.map { SetPlace.prefix($0.key, bucket: $0.bucket) }
    }
}
