/// The stored bytes of a finished task.
public struct Content: Shape {
    /// The length in bytes.
    public var length: Int64 = 0
    public var digest = ContentDigest()
    /// The time of deletion; `nil` while it is unknown.
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("length", &length)
        members.member("digest", &digest)
        members.nullable("expiresAt", &expiresAt)
    }
}

/// A stored body that tasks can send.
public struct StoredBody: Shape {
    /// `body_…`.
    public var id = ""
    /// The length in bytes; `nil` until the body is complete.
    public var length: Int64?
    /// The digest; `nil` until the body is complete.
    public var digest: ContentDigest?
    /// The time of deletion; `nil` while a task needs the body.
    public var expiresAt: String?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("id", &id)
        members.nullable("length", &length)
        members.nullable("digest", &digest)
        members.nullable("expiresAt", &expiresAt)
    }
}

/// A body in the list of an app's stored bodies.
public struct ListedBody: Shape {
    /// The body itself.
    public var body = StoredBody()
    /// Whether the body is complete.
    public var complete = false
    /// The bytes that count towards the app's limit.
    public var countOfBytesStored: Int64 = 0
    /// The number of tasks that need the body.
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
