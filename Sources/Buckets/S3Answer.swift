package import Core
import Formats

/// The documents in the bodies of responses.
package enum S3Answer {
    /// An upload that was neither completed nor aborted.
    package struct Upload: Hashable, Sendable {
        package let key: String
        package let id: String
        /// `nil` if the store does not report it.
        package let initiated: Timestamp?
    }

    /// A page of a list of uploads.
    package struct Uploads: Sendable {
        package struct Marker: Hashable, Sendable {
            let key: String
            let id: String
        }

        package var uploads: [Upload]
        /// The position of the next page.
        package var next: Marker?
    }

    /// An entry of a list of objects.
    package struct Object: Hashable, Sendable {
        package let key: String
        /// `nil` if the store does not report it.
        package let modified: Timestamp?
    }

    /// The root of a document, in any namespace, because stores differ in it.
    static func document(_ bytes: [UInt8]) -> XMLElement? { try? XMLElement(parsing: bytes) }

    static func uploads(_ bytes: [UInt8]) -> Uploads? {
        guard let root = document(bytes), root.name == "ListMultipartUploadsResult" else { return nil }
        let uploads = root.all("Upload").compactMap { upload -> Upload? in
            // A key may have white space at its ends.
            guard let key = upload.first("Key")?.text, let id = upload.first("UploadId")?.trimmedText else {
                return nil
            }
            let initiated = upload.first("Initiated").flatMap { Timestamp(rfc3339: $0.trimmedText) }
            return Upload(key: key, id: id, initiated: initiated)
        }
        guard root.first("IsTruncated")?.trimmedText == "true", let key = root.first("NextKeyMarker")?.text else {
            return Uploads(uploads: uploads)
        }
        let id = root.first("NextUploadIdMarker")?.trimmedText ?? ""
        return Uploads(uploads: uploads, next: Uploads.Marker(key: key, id: id))
    }

    static func objects(_ bytes: [UInt8]) -> [Object]? {
        guard let root = document(bytes), root.name == "ListBucketResult" else { return nil }
        return root.all("Contents").compactMap { object in
            guard let key = object.first("Key")?.text else { return nil }
            return Object(
                key: key, modified: object.first("LastModified").flatMap { Timestamp(rfc3339: $0.trimmedText) })
        }
    }

    /// The document that completes an upload of these parts, in order.
    static func completion(of tags: [String]) -> [UInt8] {
        let parts = tags.enumerated().map { index, tag in
            "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(escaped(tag))</ETag></Part>"
        }
        return Array("<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>".utf8)
    }

    /// A text as character data. By scalars, because `<` and a combining mark are one character.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "&": "&amp;"
            case "<": "&lt;"
            default: String(scalar)
            }
        }.joined()
    }
}

/// The error of a refused request.
package struct S3Error: Error, Hashable, Sendable {
    package let status: Int
    /// The store's error code, such as `NoSuchBucket`; empty without one.
    package let code: String
    package let message: String

    package init(status: Int, code: String, message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    /// The maximum length of an error document.
    private static let longestDocument = 64 << 10

    /// The error of a response without success, or of a response to a `POST` with status 200 and an error in its body,
    /// which completions may have. Any other success contains bytes of an object, whatever they look like.
    package init?(status: Int, body: [UInt8], to method: String) {
        let isSuccess = (200...299).contains(status)
        guard !isSuccess || method == "POST" else { return nil }
        let root = body.count > Self.longestDocument ? nil : S3Answer.document(body)
        let isError = root?.name == "Error"
        guard !isSuccess || isError else { return nil }
        self.init(
            status: status, code: isError ? root?.first("Code")?.trimmedText ?? "" : "",
            message: isError ? root?.first("Message")?.trimmedText ?? "" : "")
    }

    /// The classification of the error.
    package enum Meaning: Hashable, Sendable {
        /// The credentials are wrong, expired or insufficient.
        case forbidden
        case noSuchBucket
        case noSuchKey
        /// The upload was completed or aborted.
        case noSuchUpload
        /// Parts are missing, or do not make an object.
        case lostParts
        /// A condition such as `If-None-Match` does not hold.
        case preconditionFailed
        case noSpace
        /// A temporary failure: the store is busy or broken, bytes were damaged in transit, or another request for the
        /// same key has not ended.
        case busy
        case other
    }

    /// The explanation of a response without a message, such as one to `HEAD`.
    var explanation: String {
        switch meaning {
        case .forbidden: "The store answered \(status): the bucket's credentials are wrong, or do not permit this."
        case .noSuchKey: "The store answered \(status): there is no such object, or no such bucket."
        case .busy: "The store answered \(status): it is overloaded or faulty."
        default: "The store answered \(status)."
        }
    }

    package var meaning: Meaning {
        switch code {
        case "NoSuchBucket": .noSuchBucket
        case "NoSuchKey", "NoSuchVersion": .noSuchKey
        case "NoSuchUpload": .noSuchUpload
        case "InvalidPart", "InvalidPartOrder", "EntityTooSmall": .lostParts
        case "PreconditionFailed": .preconditionFailed
        case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "EntityTooLarge": .noSpace
        case "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted",
            "ConditionalRequestConflict", "BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch":
            .busy
        case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
            "RequestTimeTooSkewed", "AccountProblem":
            .forbidden
        case "NotImplemented": .other
        default:
            switch status {
            case 401, 403: .forbidden
            case 404: .noSuchKey
            case 412: .preconditionFailed
            case 507: .noSpace
            case 408, 429, 500...599: .busy
            default: .other
            }
        }
    }
}
