package import Formats

/// The progress of a multipart upload into a bucket, from which it can be resumed.
package struct MultipartUpload: Shape {
    /// A resumable digest of the parts, which another process can import.
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

    /// A content whose parts are all in the bucket. Stored before the parts become the object, so that a start after a
    /// crash recognizes the object.
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

    /// Parts that are objects, for readers of the unfinished content: a store does not serve the parts of an upload.
    package struct Readable: Shape {
        /// The number of parts that were uploaded before. They are one object, which has the content's key.
        package var joined = 0
        /// The response that the bytes belong to.
        package var response: TaskResponse?

        package init() {}

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("joined", &joined)
            members.optional("response", &response)
        }
    }

    /// The row that marks the upload for abortion if it is not completed.
    package var row: Int64 = 0
    /// The store's id of the upload.
    package var id = ""
    /// The key of the object, if the service chose it.
    package var key: String?
    /// The metadata of the object that identifies its writer.
    package var mark = ""
    /// The length for which the parts were planned; `nil` if it was unknown.
    package var expected: Int64?
    /// The entity tags of the stored parts, the first part first.
    package var parts: [String] = []
    package var digests: [DigestState] = []
    /// The outcome of the task once the parts, which are complete, are the object.
    package var whole: Whole?
    /// Set once a reader wants the bytes. No upload is open then, and the entity tags of later parts are empty.
    package var readable: Readable?

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
        members.optional("readable", &readable)
    }

    /// Whether the digests of all these algorithms can be resumed.
    package func knows(_ algorithms: Set<DigestAlgorithm>) -> Bool {
        algorithms.isSubset(of: digests.map(\.algorithm))
    }

    package var plan: PartPlan { PartPlan(expected: expected) }

    /// The length of the stored prefix of the content, as long as the last part is missing.
    package var length: Int64 { plan.offset(ofPart: parts.count + 1) }

    /// The readable objects, in order: one with the joined parts, and one for each further part.
    package var objects: [StoredObject] {
        guard let readable, let key else { return [] }
        let first = StoredObject(key: key, length: plan.offset(ofPart: readable.joined + 1))
        let rest = (readable.joined..<max(readable.joined, parts.count)).map { index in
            let (start, end) = (plan.offset(ofPart: index + 1), plan.offset(ofPart: index + 2))
            return StoredObject(
                key: Self.key(ofPart: index + 1, of: key), length: min(end, whole?.length ?? end) - start)
        }
        return (first.length > 0 ? [first] : []) + rest
    }

    /// The key of the object with one part of a content.
    package static func key(ofPart number: Int, of key: String) -> String { "\(key).\(number)" }

    /// The start of the keys of all such objects.
    package static func keys(ofPartsOf key: String) -> String { "\(key)." }

    /// The key of the content that an object with one part belongs to; `nil` for another object.
    package static func content(ofPart key: String) -> String? {
        let halves = key.split(separator: ".", omittingEmptySubsequences: false)
        guard halves.count > 1, let number = halves.last, Int(number) != nil else { return nil }
        return halves.dropLast().joined(separator: ".")
    }
}
