import Base
package import Core
import Formats

/// Objects that are written in parts by one caller, and copies that the store makes by itself.
extension BucketClient {
    /// Parts of one object that are in flight at once.
    private static let partsAtOnce = 4

    /// Writes an object in parts. Interrupted uploads of the same key are aborted first, and this one if it fails.
    ///
    /// A lost response is thrown, though the store may have the object.
    ///
    /// - Parameters:
    ///   - width: The number of parts that are in flight at once.
    ///   - part: Writes the part of a number, from 1, and returns its entity tag.
    /// - Throws: ``BucketFault``, and the errors of `part`.
    package func assemble(
        _ key: String, _ terms: ObjectTerms, parts: Int, width: Int = BucketClient.partsAtOnce,
        _ part: @escaping @Sendable (_ number: Int, _ upload: String) async throws -> String
    ) async throws {
        for upload in try await uploads(of: key) { try await abortUpload(upload.id, key) }
        let upload = try await createUpload(key, terms)
        do {
            let tags = Locked([String](repeating: "", count: parts))
            try await inLanes(1...parts, width) { number in
                let tag = try await part(number, upload)
                tags.withLock { $0[number - 1] = tag }
            }
            try await completeUpload(upload, key, parts: tags.withLock { $0 })
        } catch {
            try? await abortUpload(upload, key)
            throw error
        }
    }

    /// An object of the same store.
    package struct CopySource: Sendable {
        package let bucket: Bucket
        package let key: String
        /// The copy fails unless the object has this entity tag.
        package let entityTag: String?
        package let length: Int64

        package init(_ bucket: Bucket, _ key: String, entityTag: String?, length: Int64) {
            self.bucket = bucket
            self.key = key
            self.entityTag = entityTag
            self.length = length
        }
    }

    /// Copies of longer objects are made in parts of this length. S3 permits 5 GiB at once, during which no byte may
    /// come for minutes.
    private static let longestCopy: Int64 = 1 << 30

    /// Has the store copy an object, with other terms.
    ///
    /// - Parameter longest: The length above which the copy is made in parts of that length.
    /// - Throws: ``BucketFault``, with the code `NotImplemented` if the store does not copy. The caller checks the
    ///   object, because stores may ignore a part of the request.
    /// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html, API_UploadPartCopy.html
    package func copy(
        _ source: CopySource, to key: String, _ terms: ObjectTerms, longest: Int64 = BucketClient.longestCopy
    ) async throws {
        guard source.length > longest else {
            var headers = terms.fields
            headers.append("x-amz-metadata-directive", "REPLACE")
            _ = try await copied(source, bucket.target(key), headers)
            return
        }
        try await assemble(key, terms, parts: Int((source.length - 1) / longest + 1)) { [self] number, upload in
            let start = Int64(number - 1) * longest
            return try await copyPart(number, of: upload, key, source, start..<min(start + longest, source.length))
        }
    }

    /// Has the store join objects of at least 5 MiB, the last one aside, to one object, which may replace the first.
    ///
    /// - Throws: ``BucketFault``.
    package func join(_ objects: [StoredObject], as key: String, _ terms: ObjectTerms) async throws {
        let pieces = objects.flatMap { object in
            let count = (object.length - 1) / Self.longestCopy + 1
            return (0..<count).map { ($0 * object.length / count)..<(($0 + 1) * object.length / count) }
                .map { (object, $0) }
        }
        try await assemble(key, terms, parts: pieces.count) { [self] number, upload in
            let (object, range) = pieces[number - 1]
            let source = CopySource(bucket, object.key, entityTag: nil, length: object.length)
            return try await copyPart(number, of: upload, key, source, range)
        }
    }

    /// Deletes the objects that have the parts of a content.
    package func deleteParts(of key: String) async throws {
        var last: String?
        while true {
            let page = try await objects(below: MultipartUpload.keys(ofPartsOf: key), after: last)
            guard let next = page.last?.key, next != last else { return }
            last = next
            try await inLanes(page, Self.partsAtOnce) { try await self.delete($0.key) }
        }
    }

    private func copyPart(
        _ number: Int, of upload: String, _ key: String, _ source: CopySource, _ range: Range<Int64>
    ) async throws(BucketFault) -> String {
        var headers = HTTPFields()
        headers.append("x-amz-copy-source-range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        let target = bucket.target(key, query: [("partNumber", "\(number)"), ("uploadId", upload)])
        return try await copied(source, target, headers)
    }

    /// - Returns: The entity tag of the copy.
    private func copied(
        _ source: CopySource, _ target: S3Target, _ headers: HTTPFields
    ) async throws(BucketFault) -> String {
        var headers = headers
        headers.append("x-amz-copy-source", source.bucket.copySource(source.key))
        if let tag = source.entityTag { headers.append("x-amz-copy-source-if-match", tag) }
        let answer = try await send(
            "PUT", target, .repeatable, headers: headers, content: SentBytes([], isWhole: false))
        // An error may follow the status 200, as with the completion of an upload.
        if let error = S3Error(status: answer.head.status, body: answer.body, to: "POST") { throw .refused(error) }
        guard let tag = S3Answer.document(answer.body)?.first("ETag")?.trimmedText else {
            throw .refused(S3Error(status: 501, code: "NotImplemented", message: "The store does not copy objects."))
        }
        return tag
    }
}
