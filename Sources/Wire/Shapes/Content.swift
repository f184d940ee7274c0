/// The stored bytes of a finished task.
public struct Content: Shape {
    /// In bytes.
    public var length: Int64 = 0
    public var digest = ContentDigest()
    /// When the bytes are dropped; `nil` while it is unknown.
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("length", &length)
        members.member("digest", &digest)
        members.nullable("expiresAt", &expiresAt)
    }
}

/// A stored body, to be sent by tasks.
public struct StoredBody: Shape {
    /// `body_…`.
    public var id = ""
    /// In bytes; `nil` until all of it has arrived.
    public var length: Int64?
    /// `nil` until all of it has arrived.
    public var digest: ContentDigest?
    /// When it is dropped; `nil` while a task needs it.
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.nullable("length", &length)
        members.nullable("digest", &digest)
        members.nullable("expiresAt", &expiresAt)
    }
}

/// A body in the list of those that use the app's storage.
public struct ListedBody: Shape {
    /// The body as it is read alone.
    public var body = StoredBody()
    /// Whether all of it has arrived.
    public var complete = false
    /// Bytes that count against the app's limit.
    public var countOfBytesStored: Int64 = 0
    /// How many tasks need it.
    public var uses: Int64 = 0
    public var createdAt = ""

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        body.visit(&members)
        members.member("complete", &complete)
        members.member("countOfBytesStored", &countOfBytesStored)
        members.member("uses", &uses)
        members.member("createdAt", &createdAt)
    }
}
