package import Core
import SQLite
import TransferEngine

/// Why a command did not do what it should, in the words of this layer.
///
/// The one place where errors of the parts below are told apart, so that nothing above has to know them. Total.
package enum Failure: Error, Sendable {
    case domain(DomainError)
    case refused(Refused)
    case service(ServiceError)
    /// Nobody waits for the answer any more.
    case cancelled
    /// Nobody's mistake but ours, or the machine's.
    case unexpected(String)

    package init(_ error: any Error) {
        switch error {
        case let error as Failure: self = error
        case let error as DomainError: self = .domain(error)
        case let error as Refused: self = .refused(error)
        case let error as ServiceError: self = .service(error)
        case let error as BadURL: self = .service(.invalidURL(index: nil, detail: error.explanation))
        case let error as SQLiteError where error.isFull: self = .service(.insufficientStorage)
        case let error as DiskError where error.isFull: self = .service(.insufficientStorage)
        case is CancellationError: self = .cancelled
        default: self = .unexpected("\(error)")
        }
    }
}

extension BadURL {
    /// What is wrong with the URL and what would be right, for a person.
    var explanation: String {
        switch self {
        case .malformed: "This is not an absolute URL."
        case .unsupportedScheme: "Only http and https are supported."
        case .credentials: "A URL must not hold a user name or a password; answer the challenge instead."
        case .forbiddenCharacter: "The URL holds a character that must be percent-encoded or does not belong there."
        case .badHost: "The host of the URL is not a valid name or address."
        case .tooLong: "A URL may have at most \(URLParts.maximumLength) bytes."
        }
    }
}
