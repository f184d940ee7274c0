package import Formats

/// The arrangement of a set's files below its destination.
package enum SetLayout: String, Word, CaseIterable {
    /// `.versions/VERSION/…` and `current`, or the same as objects.
    case versions
    /// The cache of huggingface_hub: `models--ORG--NAME/{blobs,snapshots,refs}`.
    case hfCache = "hf-cache"
}

/// The place of a set's published files: a folder below one of the operator's roots, or the objects below a prefix.
package struct SetDestination: Shape {
    package var root: String?
    package var path: String?
    package var bucket: String?
    package var prefix: String?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("root", &root)
        members.optional("path", &path)
        members.optional("bucket", &bucket)
        members.optional("prefix", &prefix)
    }
}

/// The configuration of a set.
package struct SetConfiguration: Shape {
    /// `nil` for a set that is read through the API only.
    package var destination: SetDestination?
    package var layout = SetLayout.versions
    /// The published versions that are kept besides the current one.
    package var keep: Int64 = 3
    /// Seconds for which a version is kept after it stopped being current.
    package var grace: Int64 = 3600
    package var cachePolicy = CachePolicy.reloadRevalidatingCacheData

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("destination", &destination)
        members.member("layout", &layout)
        members.member("keep", &keep)
        members.member("grace", &grace)
        members.member("cachePolicy", &cachePolicy)
    }

    /// The folder or the prefix of the published files; `nil` without a destination. With ``SetLayout/hfCache`` the
    /// folder contains those of repositories, which may be many sets'.
    package var folder: String? {
        guard let destination else { return nil }
        if let bucket = destination.bucket { return SetPlace.prefix(destination.prefix ?? "", bucket: bucket) }
        return SetPlace.folder(destination.path ?? "", root: destination.root ?? "")
    }

    /// The place of the set; `nil` if it has none, or if its place is that of a repository.
    package var place: String? { layout == .versions ? folder : nil }

    /// The place of a repository in the cache of huggingface_hub; `nil` with another layout.
    package func place(of source: SetSource) -> String? {
        guard layout == .hfCache, let folder, let repository = source.repository else { return nil }
        return "\(folder)/\(source.type.folder(of: repository))"
    }
}
