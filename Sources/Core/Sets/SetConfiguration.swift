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

    /// Names the destination; `nil` if several sets may have it.
    package var place: String? {
        guard layout == .versions, let destination else { return nil }
        if let bucket = destination.bucket { return "bucket/\(bucket)/\(destination.prefix ?? "")" }
        return "root/\(destination.root ?? "")/\(destination.path ?? "")"
    }

    /// Names the folder of a repository in the cache of huggingface_hub; `nil` with another layout.
    package func place(of source: SetSource) -> String? {
        guard layout == .hfCache, let destination, let repository = source.repository else { return nil }
        return "hf-cache/\(destination.root ?? "")/\(destination.path ?? "")/\(source.type.rawValue)/\(repository)"
    }
}
