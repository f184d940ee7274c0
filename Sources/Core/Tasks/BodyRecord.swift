/// A stored body, or an incomplete draft.
package struct BodyRecord: Sendable, Hashable {
    package var publicId: String
    package var app: AppID
    package var isComplete: Bool
    package var length: Int64
    /// The length that the client announced, for a draft.
    package var expectedLength: Int64?
    /// SHA-256 in hex, once it is complete.
    package var digest: String?
    package var mediaType: String?
    package var storage: BodyLocation.Storage?
    /// The expected digests of a draft, and their state if its bytes are objects.
    package var draftDigest: DraftDigest?
    package var uses: Int64
    package var createdAt: Timestamp
    package var expiresAt: Timestamp?

    package init(
        publicId: String, app: AppID, isComplete: Bool, length: Int64, expectedLength: Int64? = nil,
        digest: String? = nil, mediaType: String? = nil, storage: BodyLocation.Storage? = nil, uses: Int64,
        createdAt: Timestamp, expiresAt: Timestamp? = nil
    ) {
        self.publicId = publicId
        self.app = app
        self.isComplete = isComplete
        self.length = length
        self.expectedLength = expectedLength
        self.digest = digest
        self.mediaType = mediaType
        self.storage = storage
        self.uses = uses
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

/// An object in the bucket of contents.
package struct StoredObject: Hashable, Sendable {
    package var key: String
    package var length: Int64

    package init(key: String, length: Int64) {
        self.key = key
        self.length = length
    }
}

/// The location of a stored body's bytes.
package struct BodyLocation: Sendable, Hashable {
    package enum Storage: Sendable, Hashable {
        case bytes([UInt8])
        /// Relative to the data folder.
        case file(String)
        /// Objects in the bucket of contents, in order.
        case objects([StoredObject])
    }

    package var storage: Storage
    package var length: Int64
    package var digest: String
    package var mediaType: String?

    package init(storage: Storage, length: Int64, digest: String, mediaType: String? = nil) {
        self.storage = storage
        self.length = length
        self.digest = digest
        self.mediaType = mediaType
    }
}
