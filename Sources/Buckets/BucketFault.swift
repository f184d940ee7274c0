import Core
package import TransferEngine

/// The reason for which a bucket operation failed.
package enum BucketFault: Error, Hashable, Sendable {
    /// The store refused the request.
    case refused(S3Error)
    /// No response arrived in any attempt.
    case unreachable(TransferFault, message: String)
    /// The store's response is invalid.
    case unexpected(String)
    /// The store reported success, but has another object.
    case wrongObject(String)
    /// There are no credentials to sign with.
    case noCredentials(String)

    package enum Remedy: Hashable, Sendable {
        /// A retry may succeed later.
        case later
        /// Repeating does not help: the operator or the app has to change something.
        case change
        /// The written bytes are gone: the content must be transferred again.
        case anew
        /// An object already exists.
        case exists
    }

    package var remedy: Remedy {
        switch self {
        case .refused(let error):
            switch error.meaning {
            case .busy, .noSpace: .later
            case .noSuchUpload, .lostParts: .anew
            case .preconditionFailed: .exists
            case .forbidden, .noSuchBucket, .noSuchKey, .other: .change
            }
        case .unreachable(let fault, _): fault.isTrustFailure || fault == .badRequest ? .change : .later
        case .unexpected: .later
        case .wrongObject: .anew
        case .noCredentials: .later
        }
    }

    /// Whether a write's condition failed, because the object differs or is gone.
    package var isOfCondition: Bool {
        guard case .refused(let error) = self else { return false }
        return error.meaning == .preconditionFailed || error.meaning == .noSuchKey
    }

    /// Whether the operator must act, whatever the object: the keys, bucket, space or trust are missing.
    package var isOperators: Bool {
        switch self {
        case .refused(let error):
            switch error.meaning {
            case .forbidden, .noSuchBucket, .noSpace: true
            case .noSuchKey, .noSuchUpload, .lostParts, .preconditionFailed, .busy, .other: false
            }
        case .unreachable(let fault, _): fault.isTrustFailure || fault == .badRequest
        case .noCredentials: true
        case .unexpected, .wrongObject: false
        }
    }

    /// The store's error code, or one of the service.
    package var code: String {
        switch self {
        case .refused(let error): error.code.isEmpty ? "\(error.status)" : error.code
        case .unreachable: "bucket-unreachable"
        case .unexpected, .wrongObject: "bucket-answer"
        case .noCredentials: "bucket-credentials"
        }
    }

    package var message: String {
        switch self {
        case .refused(let error): error.message.isEmpty ? error.explanation : error.message
        case .unreachable(let fault, let message): message.isEmpty ? "\(fault)" : message
        case .unexpected(let message), .wrongObject(let message), .noCredentials(let message): message
        }
    }
}
