package import Formats

/// The resumable digests of a draft, whose bytes arrive in several requests, possibly at different nodes.
package struct DraftDigest: Shape {
    package var states: [MultipartUpload.DigestState] = []
    /// The bytes after those that the states cover, in lower-case hex: less than a block.
    package var rest = ""

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("states", &states)
        members.member("rest", &rest)
    }
}
