package import Formats

/// The digests of a draft, whose bytes arrive in several requests, possibly at different nodes. The digests of a draft
/// that is a file have no states: the whole file is read at its completion.
package struct DraftDigest: Shape {
    /// The digests of the whole that the client sent when it created the draft.
    package var expected: [ContentDigest] = []
    package var states: [MultipartUpload.DigestState] = []
    /// The bytes after those that the states cover, in lower-case hex: less than a block.
    package var rest = ""

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.sparse("expected", &expected, unless: [])
        members.member("states", &states)
        members.member("rest", &rest)
    }
}
