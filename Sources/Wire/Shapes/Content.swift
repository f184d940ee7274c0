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
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("length", length)
        writer.member("digest", digest)
        writer.member("expiresAt", expiresAt)
    }
}

/// A body in the list of what uses the app's room.
public struct ListedBody: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The body as it is read alone.
    public var body: StoredBody
    /// Whether all of it has arrived.
    public var complete: Bool
    /// Bytes that count against the app's limit.
    public var countOfBytesStored: Int64
    /// How many tasks need it.
    public var uses: Int64
    /// When it was made.
    public var createdAt: String

    /// Makes an item.
    public init(body: StoredBody, complete: Bool, countOfBytesStored: Int64, uses: Int64, createdAt: String) {
        self.body = body
        self.complete = complete
        self.countOfBytesStored = countOfBytesStored
        self.uses = uses
        self.createdAt = createdAt
    }

    /// Reads an item.
    public init(reading reader: inout ObjectReader) {
        body = StoredBody(reading: &reader)
        complete = reader.bool("complete")
        countOfBytesStored = reader.integer("countOfBytesStored")
        uses = reader.integer("uses")
        createdAt = reader.string("createdAt")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            body.writeMembers(to: &writer)
            writer.member("complete", complete)
            writer.member("countOfBytesStored", countOfBytesStored)
            writer.member("uses", uses)
            writer.member("createdAt", createdAt)
        }
    }
}
