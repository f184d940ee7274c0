import Core
package import TransferEngine

/// Why something could not be done in a bucket.
package enum BucketFault: Error, Hashable, Sendable {
    /// The store said no.
    case refused(S3Error)
    /// No answer came, as often as it was asked.
    case unreachable(TransferFault, message: String)
    /// The store answered something that cannot be.
    case unexpected(String)
    /// The store said that all was well, and has something else.
    case wrongObject(String)
    /// There are no credentials to sign with.
    case noCredentials(String)

    package enum Remedy: Hashable, Sendable {
        /// The same again may work later.
        case later
        /// Repeating does not help: the operator or the app has to change something.
        case change
        /// What was written is not there any more: the content has to come anew.
        case anew
        /// There is an object already.
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

    /// Whether the object is another than the condition of a write says, or is there no more.
    package var isOfCondition: Bool {
        guard case .refused(let error) = self else { return false }
        return error.meaning == .preconditionFailed || error.meaning == .noSuchKey
    }

    /// Whether the operator has to do something, whatever object it is about: keys, bucket, room or trust are missing.
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

    /// The store's word, or one of the service's own.
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
