package import Formats

/// An object in one of the operator's buckets, used as the source of a content.
package struct ObjectReference: Shape {
    /// The operator's name for the bucket.
    package var bucket = ""
    /// The key after the bucket's prefix, byte for byte as the app gave it.
    package var key = ""
    package var versionId: String?

    package init() {}

    package init(bucket: String, key: String, versionId: String? = nil) {
        self.bucket = bucket
        self.key = key
        self.versionId = versionId
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("bucket", &bucket)
        members.member("key", &key)
        members.optional("versionId", &versionId)
    }
}

/// The object in one of the operator's buckets to which a download is written while it arrives.
package struct ObjectDestination: Shape {
    package var bucket = ""
    package var key = ""
    package var replace = false
    package var storageClass: String?
    /// Stored with the object, as `x-amz-meta-…`.
    package var metadata: [String: String] = [:]

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("bucket", &bucket)
        members.member("key", &key)
        members.member("replace", &replace)
        members.optional("storageClass", &storageClass)
        members.sparse("metadata", &metadata, unless: [:])
    }
}
