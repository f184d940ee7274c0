/// A version of a set as the service returns it.
public struct SetVersion: Shape {
    public var version = ""
    /// `sver_…`
    public var versionId = ""
    /// The name of the set.
    public var name = ""
    /// The session whose tasks fetch the files. Their `group` is the ``versionId``.
    public var sessionIdentifier = ""
    public var state = SetVersionState()
    /// The source of the files, unless the app listed them.
    public var source: SetSource?
    /// The commit of a Hugging Face source, once it is known.
    public var commit: String?
    public var files = SetFileCounts()
    public var bytes = SetByteCounts()
    /// The first 100.
    public var failures: [SetFailure] = []
    /// SHA-256 of the manifest without times, in lower-case hex.
    public var manifestDigest: String?
    /// The URL of the manifest of a published version.
    public var manifestURL: String?
    /// The app's metadata.
    public var metadata = StringMap()
    public var createdAt = ""
    public var publishedAt: String?
    /// The time at which another version became current.
    public var replacedAt: String?
    /// The time at which a version ended that is not published.
    public var endedAt: String?
    /// Increases with every change but progress.
    public var revision: Int64 = 1

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.member("name", &name)
        members.member("sessionIdentifier", &sessionIdentifier)
        members.member("state", &state)
        members.nullable("source", &source)
        members.nullable("commit", &commit)
        members.member("files", &files)
        members.member("bytes", &bytes)
        members.member("failures", &failures)
        members.nullable("manifestDigest", &manifestDigest)
        members.nullable("manifestURL", &manifestURL)
        members.member("metadata", &metadata)
        members.member("createdAt", &createdAt)
        members.nullable("publishedAt", &publishedAt)
        members.nullable("replacedAt", &replacedAt)
        members.nullable("endedAt", &endedAt)
        members.member("revision", &revision)
    }
}

/// The state of a set's version.
public struct SetVersionState: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The list of files is being made from a source.
    public static let expanding: Self = "expanding"
    public static let fetching: Self = "fetching"
    /// Digests and lengths are compared.
    public static let verifying: Self = "verifying"
    /// The files are being placed at the destination.
    public static let publishing: Self = "publishing"
    public static let published: Self = "published"
    public static let failed: Self = "failed"
    /// A newer version was published before.
    public static let superseded: Self = "superseded"
    public static let cancelled: Self = "cancelled"
    public static let known: [Self] = [
        .expanding, .fetching, .verifying, .publishing, .published, .failed, .superseded, .cancelled,
    ]

    /// Whether the version may still be published.
    public var isInFlight: Bool { [.expanding, .fetching, .verifying, .publishing].contains(self) }
}

/// The files of a version, by what became of them.
public struct SetFileCounts: Shape {
    public var total: Int64 = 0
    /// Transferred for this version.
    public var fetched: Int64 = 0
    /// Stored already, or proved unchanged.
    public var reused: Int64 = 0
    /// Failed for now.
    public var failed: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("total", &total)
        members.member("fetched", &fetched)
        members.member("reused", &reused)
        members.member("failed", &failed)
    }
}

/// The bytes of the files of a version.
public struct SetByteCounts: Shape {
    /// The sum of the known lengths until each file is fetched.
    public var total: Int64 = 0
    /// Of transferred files.
    public var fetched: Int64 = 0
    /// Of files that were stored already or proved unchanged.
    public var reused: Int64 = 0

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("total", &total)
        members.member("fetched", &fetched)
        members.member("reused", &reused)
    }
}

/// The reason why a version failed.
public struct SetFailure: Shape {
    /// The file; `nil` if the list of files could not be made, or the files not be published.
    public var path: String?
    /// The task of the file.
    public var taskIdentifier: Int64?
    public var detail = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.nullable("path", &path)
        members.nullable("taskIdentifier", &taskIdentifier)
        members.member("detail", &detail)
    }
}
