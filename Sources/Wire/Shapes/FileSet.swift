/// A set as the service returns it: a name that readers follow to one complete version of many files.
public struct FileSet: Shape {
    /// The app's name of the set.
    public var name = ""
    /// `nil` for a set that is read through the API only.
    public var destination: SetDestination?
    public var layout = SetLayout.versions
    /// The number of published versions that are kept besides the current one.
    public var keep: Int64 = 3
    /// Seconds for which a version is kept after it stopped being current.
    public var grace: Int64 = 3600
    /// The cache policy of files whose request has none.
    public var cachePolicy = CachePolicy.reloadRevalidatingCacheData
    /// The version that readers see; `nil` before the first one is published.
    public var current: PublishedVersion?
    /// The published versions that are kept: the current one first, then the newest first.
    public var versions: [PublishedVersion] = []
    public var createdAt = ""
    /// Increases with every change.
    public var revision: Int64 = 1

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.nullable("destination", &destination)
        members.member("layout", &layout)
        members.member("keep", &keep)
        members.member("grace", &grace)
        members.member("cachePolicy", &cachePolicy)
        members.nullable("current", &current)
        members.member("versions", &versions)
        members.member("createdAt", &createdAt)
        members.member("revision", &revision)
    }
}

/// A published version in the description of its set.
public struct PublishedVersion: Shape {
    public var version = ""
    /// `sver_…`
    public var versionId = ""
    /// The number of files.
    public var files: Int64 = 0
    /// The bytes of all files.
    public var bytes: Int64 = 0
    /// SHA-256 of the manifest without times, in lower-case hex.
    public var manifestDigest: String?
    public var manifestURL = ""
    public var publishedAt = ""
    /// The time at which another version became current.
    public var replacedAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.member("files", &files)
        members.member("bytes", &bytes)
        members.nullable("manifestDigest", &manifestDigest)
        members.member("manifestURL", &manifestURL)
        members.member("publishedAt", &publishedAt)
        members.nullable("replacedAt", &replacedAt)
    }
}

/// The arrangement of a set's files at its destination.
public struct SetLayout: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// `.versions/VERSION/…` and `current`, or the same as objects; the default.
    public static let versions: Self = "versions"
    /// The cache of huggingface_hub: `models--ORG--NAME/{blobs,snapshots,refs}`.
    public static let hfCache: Self = "hf-cache"
    public static let known: [Self] = [.versions, .hfCache]
}

/// The place of a set's published files: a folder below one of the operator's roots, or the objects below a prefix in
/// one of the operator's buckets.
public struct SetDestination: Shape {
    /// The operator's name of a root.
    public var root: String?
    /// The path of the folder relative to the root, with `/` between its parts.
    public var path: String?
    /// The operator's name of a bucket.
    public var bucket: String?
    /// The beginning of the objects' keys, after the operator's prefix.
    public var prefix: String?

    public init() {}

    public init(root: String, path: String) { (self.root, self.path) = (root, path) }

    public init(bucket: String, prefix: String) { (self.bucket, self.prefix) = (bucket, prefix) }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("root", &root, .handle)
        members.given("path", &path, .relativePath)
        members.given("bucket", &bucket, .handle)
        members.given("prefix", &prefix, .keyPrefix)
    }

    public func check(_ reader: inout ObjectReader) { reader.checkDestination("prefix") }
}

/// The body of `PUT /v1/sets/{name}`, which creates or changes a set. Absent members have their defaults in a new set,
/// and stay in an existing one.
public struct FileSetPut: Shape {
    public var destination: Change<SetDestination> = .unchanged
    public var layout: SetLayout?
    public var keep: Int64?
    public var grace: Int64?
    public var cachePolicy: CachePolicy?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.change("destination", &destination)
        members.given("layout", &layout)
        members.given("keep", &keep, 0...1000)
        members.given("grace", &grace, 0...31_536_000)
        members.given("cachePolicy", &cachePolicy)
    }
}

/// The body of `POST /v1/sets/{name}/current`.
public struct SetSwitch: Shape {
    /// The name or `versionId` of a kept version.
    public var version = ""

    public init() {}

    public init(version: String) { self.version = version }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("version", &version, .version)
    }
}
