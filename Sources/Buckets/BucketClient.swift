package import Base
package import Core
import Formats
package import TransferEngine

/// Performs operations in a bucket. Repeatable requests are retried several times.
///
/// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
package final class BucketClient: Sendable {
    /// Whether a request may be repeated.
    enum Manner {
        /// Sending the request twice does no harm.
        case repeatable
        /// The caller determines the outcome of a lost response.
        case once
    }

    package let bucket: Bucket
    private let source: CredentialsSource
    private let exchanges: Exchanges
    /// The addresses that requests to the bucket may reach.
    package let egress: EgressPolicy
    private let clock: Clock
    /// With the operator's name for the bucket.
    private let meters: (all: BucketMeters, name: String)?
    /// The conditions that the store supports, once determined.
    let heeded = Locked<HeededConditions?>(nil)

    private static let attempts = 5
    /// The maximum length of a list or an error document.
    private static let answerLimit = 4 << 20

    /// - Parameter egress: The addresses to which the operator's endpoint may resolve.
    package init(
        _ bucket: Bucket, credentials: CredentialsSource, exchanges: Exchanges, egress: EgressPolicy, clock: Clock,
        meters: (all: BucketMeters, name: String)? = nil
    ) {
        self.bucket = bucket
        source = credentials
        self.exchanges = exchanges
        self.egress = egress
        self.clock = clock
        self.meters = meters
    }

    // MARK: Reading

    /// The known properties of an object.
    package struct ObjectFacts: Hashable, Sendable {
        package var length: Int64?
        package var entityTag: String?
        package var versionId: String?
        /// The ``ObjectTerms/mark`` of its writer.
        package var mark: String?
    }

    /// `nil` if the object does not exist.
    package func object(_ key: String) async throws(BucketFault) -> ObjectFacts? {
        do throws(BucketFault) {
            let fields = try await send("HEAD", bucket.target(key), .repeatable).head.fields
            return ObjectFacts(
                length: ContentLength.parse(fields).value, entityTag: fields["ETag"],
                versionId: fields["x-amz-version-id"], mark: fields[ObjectTerms.markField])
        } catch .refused(let error) where error.meaning == .noSuchKey {
            return nil
        }
    }

    /// The fields that sign a `GET` of an object. Any client can send them within a quarter of an hour.
    package func fields(toGet target: S3Target) async throws(BucketFault) -> HTTPFields {
        signer(try await source.current()).fields(method: "GET", target, .empty, at: now)
    }

    /// Downloads an object to a path, without retries.
    ///
    /// - Parameters:
    ///   - id: The exchange to pass to ``stop(_:)``.
    ///   - mayTake: Whether there is space for a number of bytes.
    package func get(
        _ object: ObjectReference, as id: ExchangeID, to path: String, maximumLength: Int64,
        mayTake: @escaping @Sendable (Int64) -> Bool
    ) async throws(BucketFault) -> ExchangeResult {
        let target = bucket.target(object)
        var request = ExchangeRequest(
            id: id, pool: 0, url: target.url, sink: .content(path: path), egress: egress
        ) { head in
            guard head.status == 200 else { return HeadJudgement(.discard(limit: 65_536)) }
            return HeadJudgement(mayTake(ContentLength.parse(head.fields).value ?? 0) ? .keep(at: 0) : .stop)
        }
        request.headers = try await fields(toGet: target)
        request.maximumBytes = maximumLength
        let result = await perform(request)
        if case .failed(let fault) = result.outcome { throw .unreachable(fault, message: result.curlMessage) }
        guard let head = result.head else { throw .unreachable(.reset, message: "The service is shutting down.") }
        if let error = S3Error(status: head.status, body: result.side, to: request.method) { throw .refused(error) }
        guard result.outcome == .complete else { throw .unexpected("There is no room for the object.") }
        return result
    }

    /// Reads bytes of an object into memory.
    ///
    /// - Parameter range: Not empty, and within the object.
    package func read(_ key: String, _ range: Range<Int64>) async throws(BucketFault) -> [UInt8] {
        var headers = HTTPFields()
        headers.append("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        let answer = try await send(
            "GET", bucket.target(key), .repeatable, headers: headers, limit: range.count, attempts: 3, isHasty: true)
        guard answer.body.count == range.count else {
            throw .unexpected("The store sent \(answer.body.count) bytes instead of \(range.count).")
        }
        return answer.body
    }

    /// A presigned URL of an object, valid for `seconds`.
    ///
    /// - Parameters:
    ///   - method: `GET` or `HEAD`.
    ///   - query: Parameters that override response fields, such as `response-content-type`.
    package func address(
        toRead key: String, _ method: String, for seconds: Int, query: [(name: String, value: String)]
    ) async throws(BucketFault) -> String {
        signer(try await source.current()).presigned(
            method: method, bucket.target(key, query: query), for: seconds, at: now
        ).url.text
    }

    package func nextID() -> ExchangeID { exchanges.nextID() }

    package func stop(_ id: ExchangeID) { exchanges.stop(id) }

    // MARK: Writing an object at once

    /// Writes a small object.
    ///
    /// - Returns: Its entity tag.
    package func put(
        _ key: String, _ content: SentBytes, _ terms: ObjectTerms, if condition: WriteCondition = .none
    ) async throws(BucketFault) -> String? {
        var headers = terms.fields
        condition.write(to: &headers)
        let answer = try await send(
            "PUT", bucket.target(key), .repeatable, headers: headers, content: content)
        return answer.head.fields["ETag"]
    }

    /// Writes an object with a block of a content.
    package func putBlock(_ key: String, _ content: SentBytes, _ terms: ObjectTerms) async throws(BucketFault) {
        if content.isProven(by: try await put(key, content, terms)) { return }
        let length = try await object(key)?.length
        guard length == content.count else { throw .unexpected("The object of a block has another length.") }
    }

    package func delete(_ key: String) async throws(BucketFault) {
        _ = try await send("DELETE", bucket.target(key), .repeatable)
    }

    // MARK: Writing an object in parts

    /// Begins an upload. If the response is lost, an orphaned upload may exist.
    ///
    /// - Returns: The upload's id.
    package func createUpload(_ key: String, _ terms: ObjectTerms) async throws(BucketFault) -> String {
        let answer = try await send(
            "POST", bucket.target(key, query: [("uploads", "")]), .once, headers: terms.fields)
        guard let id = S3Answer.document(answer.body)?.first("UploadId")?.trimmedText, !id.isEmpty else {
            throw .unexpected("The store created an upload without an identifier.")
        }
        return id
    }

    /// - Parameter number: From 1.
    /// - Returns: The part's entity tag.
    package func putPart(
        _ number: Int, of upload: String, _ key: String, _ content: SentBytes
    ) async throws(BucketFault) -> String {
        let target = bucket.target(key, query: [("partNumber", "\(number)"), ("uploadId", upload)])
        let answer = try await send("PUT", target, .repeatable, content: content)
        guard let tag = answer.head.fields["ETag"] else {
            throw .unexpected("The store accepted a part without an entity tag.")
        }
        return tag
    }

    /// Completes the upload, without retries. A lost response is thrown: the caller determines the outcome.
    package func completeUpload(
        _ upload: String, _ key: String, parts: [String], if condition: WriteCondition = .none
    ) async throws(BucketFault) {
        var headers = HTTPFields()
        headers.append("Content-Type", "application/xml")
        condition.write(to: &headers)
        let body = S3Answer.completion(of: parts)
        _ = try await send(
            "POST", bucket.target(key, query: [("uploadId", upload)]), .once, headers: headers,
            content: SentBytes(body, isWhole: false))
    }

    /// Aborts an upload, if it exists.
    package func abortUpload(_ upload: String, _ key: String) async throws(BucketFault) {
        do throws(BucketFault) {
            _ = try await send("DELETE", bucket.target(key, query: [("uploadId", upload)]), .repeatable)
        } catch .refused(let error) where error.meaning == .noSuchUpload || error.meaning == .noSuchKey {
            return
        }
    }

    /// The uploads of a key that were neither completed nor aborted.
    package func uploads(of key: String) async throws(BucketFault) -> [S3Answer.Upload] {
        var (found, marker) = ([S3Answer.Upload](), S3Answer.Uploads.Marker?.none)
        repeat {
            let page = try await uploads(below: key, after: marker)
            found += page.uploads.filter { $0.key.utf8.elementsEqual(key.utf8) }
            marker = page.next
        } while marker != nil && found.count < 10_000
        return found
    }

    /// A page of the uploads that were neither completed nor aborted and whose keys begin with `start`.
    package func uploads(
        below start: String, after marker: S3Answer.Uploads.Marker? = nil
    ) async throws(BucketFault) -> S3Answer.Uploads {
        var query = [("uploads", ""), ("prefix", bucket.prefix + start)]
        if let marker { query += [("key-marker", marker.key), ("upload-id-marker", marker.id)] }
        let answer = try await send("GET", bucket.target(query: query), .repeatable)
        guard var page = S3Answer.uploads(answer.body) else {
            throw .unexpected("The store's list of uploads cannot be read.")
        }
        page.uploads = page.uploads.compactMap { upload in
            bucket.key(of: upload.key).map { S3Answer.Upload(key: $0, id: upload.id, initiated: upload.initiated) }
        }
        return page
    }

    /// A page of the objects whose keys begin with `start`, in the order of their keys.
    ///
    /// - Parameter key: The last known key.
    package func objects(
        below start: String, after key: String? = nil
    ) async throws(BucketFault) -> [S3Answer.Object] {
        var query = [("list-type", "2"), ("prefix", bucket.prefix + start)]
        if let key { query.append(("start-after", bucket.prefix + key)) }
        let answer = try await send("GET", bucket.target(query: query), .repeatable)
        guard let objects = S3Answer.objects(answer.body) else {
            throw .unexpected("The store's list of objects cannot be read.")
        }
        return objects.compactMap { object in
            bucket.key(of: object.key).map { S3Answer.Object(key: $0, modified: object.modified) }
        }
    }

    // MARK: Requests

    struct Answer {
        var head: ResponseHead
        var body: [UInt8]
    }

    private var now: Timestamp { Timestamp(milliseconds: clock.wall()) }

    private func signer(_ credentials: BucketCredentials) -> SignatureV4 {
        SignatureV4(credentials, region: bucket.region)
    }

    func send(
        _ method: String, _ target: S3Target, _ manner: Manner, headers: HTTPFields = HTTPFields(),
        content: SentBytes? = nil, limit: Int = BucketClient.answerLimit, attempts: Int = BucketClient.attempts,
        isHasty: Bool = false
    ) async throws(BucketFault) -> Answer {
        var attempt = 1
        while true {
            do throws(BucketFault) {
                return try await sendOnce(method, target, manner, headers, content, limit, isHasty)
            } catch {
                let mayRepeat = manner == .repeatable && error.remedy == .later
                guard mayRepeat, attempt < attempts, !Task.isCancelled else { throw error }
                let ceiling = 200.0 * Double(1 << attempt)
                try? await Task.sleep(for: .milliseconds(Int64(Double.random(in: 0.5..<1) * ceiling)))
                attempt += 1
            }
        }
    }

    private func sendOnce(
        _ method: String, _ target: S3Target, _ manner: Manner, _ headers: HTTPFields, _ content: SentBytes?,
        _ limit: Int, _ isHasty: Bool
    ) async throws(BucketFault) -> Answer {
        var headers = headers
        if let md5 = content?.md5Field { headers.append("Content-MD5", md5) }
        let signature = signer(try await source.current()).fields(
            method: method, target, content?.payload ?? .empty, headers: headers, at: now)
        headers.fields += signature.fields
        var request = ExchangeRequest(
            id: exchanges.nextID(), pool: 0, method: method, url: target.url, sink: .memory(limit: limit),
            egress: egress
        ) { _ in HeadJudgement(.keep(at: 0)) }
        request.headers = headers
        // A client waits for the first byte of the service's response.
        if isHasty { (request.connectTimeout, request.idleTimeout) = (.seconds(3), .seconds(10)) }
        // On a reused connection that breaks, libcurl would repeat the request by itself.
        request.usesFreshConnection = manner == .once
        if let content { request.body = .bytes(content.bytes) }
        let result = await perform(request)
        switch result.outcome {
        case .complete: break
        case .failed(let fault): throw .unreachable(fault, message: result.curlMessage)
        case .stopped: throw .unreachable(.reset, message: "The service is shutting down.")
        }
        guard let head = result.head else { throw .unreachable(.emptyReply, message: result.curlMessage) }
        let body = if case .memory(let bytes) = result.received { bytes } else { [UInt8]() }
        if let error = S3Error(status: head.status, body: body, to: method) { throw .refused(error) }
        return Answer(head: head, body: body)
    }

    /// Performs a request, and counts its bytes and failures.
    private func perform(_ request: ExchangeRequest) async -> ExchangeResult {
        let result = await exchanges.perform(request)
        guard let meters else { return result }
        meters.all.note(sent: result.bytesSent, of: meters.name)
        meters.all.note(received: result.bytesReceived, of: meters.name)
        // 404 and 412 are regular results, not failures.
        let isRefused = result.head.map { $0.status >= 400 && $0.status != 404 && $0.status != 412 } ?? true
        if isRefused, result.outcome != .stopped { meters.all.noteFailure(of: meters.name) }
        return result
    }
}
