package import Formats

/// Where the digests of a draft stand, whose bytes come in several requests, at whichever node.
package struct DraftDigest: Shape {
    package var states: [MultipartUpload.DigestState] = []
    /// The bytes behind those that the states are of, in lower-case hex: less than a block.
    package var rest = ""

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("states", &states)
        members.member("rest", &rest)
    }
}
