/// The stored bytes of a finished task.
public struct Content: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Bytes.
    public var length: Int64
    /// Of these bytes.
    public var digest: ContentDigest
    /// When they are dropped; `nil` while that is open.
    public var expiresAt: String?

    /// Makes the description of a content.
    public init(length: Int64, digest: ContentDigest, expiresAt: String? = nil) {
        self.length = length
        self.digest = digest
        self.expiresAt = expiresAt
    }

    /// Reads the description of a content.
    public init(reading reader: inout ObjectReader) {
        length = reader.integer("length")
        digest = reader.object("digest")
        expiresAt = reader.optionalString("expiresAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("length", length)
            writer.member("digest", digest)
            writer.member("expiresAt", expiresAt)
        }
    }
}

/// A stored body, to be sent by tasks.
public struct StoredBody: Sendable, Hashable, JSONWritable, JSONReadable {
    /// `body_…`.
    public var id: String
    /// Bytes; `nil` while the upload of it is not complete.
    public var length: Int64?
    /// Of these bytes; `nil` while the upload of it is not complete.
    public var digest: ContentDigest?
    /// When it is dropped; `nil` while a task needs it.
    public var expiresAt: String?

    /// Makes the description of a body.
    public init(id: String, length: Int64?, digest: ContentDigest?, expiresAt: String? = nil) {
        self.id = id
        self.length = length
        self.digest = digest
        self.expiresAt = expiresAt
    }

    /// Reads the description of a body.
    public init(reading reader: inout ObjectReader) {
        id = reader.string("id")
        length = reader.optionalInteger("length")
        digest = reader.optionalObject("digest")
        expiresAt = reader.optionalString("expiresAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("length", length)
            writer.member("digest", digest)
            writer.member("expiresAt", expiresAt)
        }
    }
}
