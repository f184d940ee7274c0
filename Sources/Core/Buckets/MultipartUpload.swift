package import Formats

/// What of a content is in its bucket already: a multipart upload that is gone on with.
package struct MultipartUpload: Shape {
    /// Where a digest of the parts stands, so that another process goes on with it.
    package struct DigestState: Shape {
        package var algorithm = DigestAlgorithm.sha256
        /// In lower-case hex.
        package var state = ""

        package init() {}

        package init(_ algorithm: DigestAlgorithm, state: String) {
            self.algorithm = algorithm
            self.state = state
        }

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("algorithm", &algorithm)
            members.member("state", &state)
        }
    }

    /// A content of which the bucket has all parts. Kept before they become the object, so that a start after a crash knows
    /// the object as its own.
    package struct Whole: Shape {
        package var length: Int64 = 0
        package var digest = ContentDigest()
        package var response: TaskResponse?
        package var outcome = Outcome.succeeded

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("length", &length)
            members.member("digest", &digest)
            members.optional("response", &response)
            members.sparse("outcome", &outcome, unless: .succeeded)
        }
    }

    /// The row that sees to it that nothing is left over.
    package var row: Int64 = 0
    /// The store's name for it.
    package var id = ""
    /// That of the object, where the service chose it.
    package var key: String?
    /// Kept with the object: who wrote it.
    package var mark = ""
    /// The content's length for which the parts were planned; nil where it was not known.
    package var expected: Int64?
    /// The entity tags of the parts that the bucket has, the first part first.
    package var parts: [String] = []
    package var digests: [DigestState] = []
    /// How the task ends when these parts, which are all, are the object.
    package var whole: Whole?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("row", &row)
        members.member("id", &id)
        members.optional("key", &key)
        members.member("mark", &mark)
        members.optional("expected", &expected)
        members.member("parts", &parts)
        members.member("digests", &digests)
        members.optional("whole", &whole)
    }

    /// Whether all of these digests can be gone on with.
    package func knows(_ algorithms: Set<DigestAlgorithm>) -> Bool {
        algorithms.isSubset(of: digests.map(\.algorithm))
    }

    package var plan: PartPlan { PartPlan(expected: expected) }

    /// Bytes of the content that the bucket has, from its start; as long as no part is the last.
    package var length: Int64 { plan.offset(ofPart: parts.count + 1) }
}
