/// The store's number of a set.
package struct SetID: Hashable, Sendable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// The store's number of a version. A newer version has a larger one.
package struct SetVersionID: Hashable, Sendable, Comparable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (one: SetVersionID, other: SetVersionID) -> Bool { one.rawValue < other.rawValue }
}

/// A set with its versions that readers can see.
package struct SetRecord: Sendable {
    package var id: SetID
    package var app: AppID
    package var name: String
    package var configuration: SetConfiguration
    /// The published versions, the current one first, then the newest first.
    package var kept: [SetVersionRecord] = []
    package var current: SetVersionRecord?
    package var createdAt: Timestamp
    package var revision: Int64

    package init(
        id: SetID, app: AppID, name: String, configuration: SetConfiguration, createdAt: Timestamp, revision: Int64
    ) {
        self.id = id
        self.app = app
        self.name = name
        self.configuration = configuration
        self.createdAt = createdAt
        self.revision = revision
    }
}

/// Files or bytes of a version.
package struct SetAmount: Hashable, Sendable {
    package var total: Int64 = 0
    package var fetched: Int64 = 0
    package var reused: Int64 = 0

    package init() {}
}

package struct SetVersionRecord: Sendable {
    package var id: SetVersionID
    /// `sver_…`
    package var publicId: String
    package var set: SetID
    package var session: SessionID
    package var sessionIdentifier: String
    package var name: String
    package var state: SetVersionState
    package var source: SetSource?
    /// The commit of a Hugging Face source, once it is known.
    package var commit: String?
    package var metadata: [String: String] = [:]
    package var files = SetAmount()
    /// The total is the sum of the known lengths until each file is fetched.
    package var bytes = SetAmount()
    package var failedFiles: Int64 = 0
    /// The first 100.
    package var failures: [SetFailure] = []
    /// SHA-256 of the manifest without times, in lower-case hexadecimal.
    package var manifestDigest: String?
    package var createdAt: Timestamp
    package var publishedAt: Timestamp?
    /// When another version became current.
    package var replacedAt: Timestamp?
    package var endedAt: Timestamp?
    /// Whether the destination may show the version, because its pointer has been about to be written.
    package var mayBeShown = false
    package var revision: Int64

    /// Whether readers may see the version before it is published, so that it cannot be cancelled any more.
    package var isBeingShown: Bool { mayBeShown && state == .publishing }

    package init(
        id: SetVersionID, publicId: String, set: SetID, session: SessionID, sessionIdentifier: String, name: String,
        state: SetVersionState, createdAt: Timestamp, revision: Int64
    ) {
        self.id = id
        self.publicId = publicId
        self.set = set
        self.session = session
        self.sessionIdentifier = sessionIdentifier
        self.name = name
        self.state = state
        self.createdAt = createdAt
        self.revision = revision
    }
}

/// A published file as the manifest shows it.
package struct SetManifestFile: Sendable, Hashable {
    package var path: String
    package var length: Int64
    /// Of the content.
    package var digest: ContentDigest
    /// That the app or the source listed, if it is another one.
    package var expectedDigest: SetDigest?
    /// Without secrets.
    package var sourceURL: String
    package var entityTag: String?
    package var lastModified: String?
    package var fetchedAt: Timestamp?
    package var mimeType: String?

    /// - Parameter address: Of the source, secrets included.
    package init(path: String, length: Int64, digest: ContentDigest, address: String) {
        self.path = path
        self.length = length
        self.digest = digest
        sourceURL = PublicAddress.withoutSecrets(address)
    }
}

/// A version that was received whole.
package struct ReceivedSetVersion: Sendable {
    package let version: SetVersionRecord
    /// False if the same request had created it before.
    package let isNew: Bool

    package init(version: SetVersionRecord, isNew: Bool) {
        self.version = version
        self.isNew = isNew
    }
}
