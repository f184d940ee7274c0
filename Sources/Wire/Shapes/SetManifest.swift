/// The manifest of a published version.
public struct SetManifest: Shape {
    /// The name of the set.
    public var name = ""
    public var version = ""
    /// `sver_…`
    public var versionId = ""
    /// SHA-256 of the manifest without times, in lower-case hex.
    public var manifestDigest: String?
    /// The commit of a Hugging Face source.
    public var commit: String?
    public var createdAt = ""
    public var publishedAt = ""
    /// In the order of the paths' bytes. The last member: the service writes it in parts.
    public var files: [SetManifestFile] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.nullable("manifestDigest", &manifestDigest)
        members.optional("commit", &commit)
        members.member("createdAt", &createdAt)
        members.member("publishedAt", &publishedAt)
        members.member("files", &files)
    }
}

/// A file in a manifest.
public struct SetManifestFile: Shape {
    /// The path within the version, with `/` between its parts.
    public var path = ""
    /// The source, without secrets.
    public var url = ""
    /// The length in bytes.
    public var length: Int64 = 0
    /// The digest of these bytes.
    public var digest = ContentDigest()
    /// The digest that the app or the source listed, if it has another algorithm.
    public var expectedDigest: ContentDigest?
    /// The source's `ETag`.
    public var etag: String?
    /// The source's `Last-Modified`.
    public var lastModified: String?
    public var fetchedAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("path", &path)
        members.member("url", &url)
        members.member("length", &length)
        members.member("digest", &digest)
        members.optional("expectedDigest", &expectedDigest)
        members.optional("etag", &etag)
        members.optional("lastModified", &lastModified)
        members.optional("fetchedAt", &fetchedAt)
    }
}

/// The object that readers of a bucket follow to the current version of a set.
public struct SetPointer: Shape {
    /// The name of the set.
    public var name = ""
    public var version = ""
    /// `sver_…`
    public var versionId = ""
    /// The key of the manifest, relative to the set's prefix.
    public var manifest = ""
    public var publishedAt = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.member("manifest", &manifest)
        members.member("publishedAt", &publishedAt)
    }
}
