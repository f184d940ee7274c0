package import Formats

/// An object in one of the operator's buckets, as the source of a content.
package struct ObjectReference: Shape {
    /// The operator's name for the bucket.
    package var bucket = ""
    /// Byte for byte as the app gave it, behind the bucket's prefix.
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

/// Where a finished download is written while it arrives: an object in one of the operator's buckets.
package struct ObjectDestination: Shape {
    package var bucket = ""
    package var key = ""
    package var replace = false
    package var storageClass: String?
    /// Kept with the object, as `x-amz-meta-…`.
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
