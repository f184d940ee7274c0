import Base
package import Core
import Store
import TransferEngine
import Transfers

/// The reason why a command failed, in the terms of this layer.
///
/// The only place that distinguishes the errors of lower layers, so that no higher layer has to know them. Total.
package enum Failure: Error, Sendable {
    case domain(DomainError)
    case refused(Refused)
    case service(ServiceError)
    /// The client has disconnected, or the service shuts down.
    case cancelled
    /// A fault of the service or of the machine.
    case unexpected(String)

    package init(_ error: any Error) {
        switch error {
        case let error as Failure: self = error
        case let error as DomainError: self = .domain(error)
        case let error as Refused: self = .refused(error)
        case let error as ServiceError: self = .service(error)
        case let error as BadURL: self = .service(.invalidURL(index: nil, detail: error.explanation))
        case let error as SystemError where error.isFull: self = .service(.insufficientStorage)
        case let error as SystemError where error.isOfShutdown: self = .service(.shuttingDown)
        case is CancellationError: self = .cancelled
        case is TooManyBodies: self = .service(.overloaded)
        case is ObjectGone: self = .service(.contentsUnavailable)
        default:
            self =
                switch Store.Obstacle(error) {
                case .noRoom: .service(.insufficientStorage)
                case .away, .busy: .service(.storeUnavailable)
                case nil: .unexpected("\(error)")
                }
        }
    }
}

extension BadURL {
    /// A text for people about the error in the URL and its correction.
    var explanation: String {
        switch self {
        case .malformed: "This is not an absolute URL."
        case .unsupportedScheme: "A URL must begin with http:// or https://."
        case .credentials: "A URL must not contain a user or password: use a header or a credential."
        case .forbiddenCharacter: "A URL has a character here that must be percent-encoded, or is not allowed here."
        case .badHost: "The host is not valid."
        case .tooLong: "A URL has at most \(ParsedURL.maximumLength) bytes."
        }
    }
}

extension Failure {
    /// Whether a limit of the app leaves no room for the order at ``orderIndex``.
    package var isFull: Bool {
        switch self {
        case .domain(.tooManyTasks), .domain(.storedBytesExceeded): true
        case .domain, .service, .refused, .cancelled, .unexpected: false
        }
    }

    /// The index of the failed order among many, if it is known.
    package var orderIndex: Int? {
        switch self {
        case .domain(.clientTaskConflict(let index)), .domain(.bodyNotFound(let index)),
            .domain(.contentNotFound(let index)), .domain(.tooManyTasks(_, let index)),
            .domain(.resumeDataSpent(let index)),
            .service(.fileUnavailable(let index, _)), .service(.unknownRoot(let index, _)),
            .service(.unknownBucket(let index, _, _)),
            .service(.contentUnavailable(let index)), .service(.resumeDataInvalid(let index)):
            index
        case .domain(.storedBytesExceeded(let index)), .service(.invalidURL(let index, _)): index
        case .domain, .service, .refused, .cancelled, .unexpected: nil
        }
    }
}
