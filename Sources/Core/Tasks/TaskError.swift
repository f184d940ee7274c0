package import Formats

/// The error of a failed task, with the codes and names of Apple's `NSURLErrorDomain`.
package struct TaskError: Shape, Error {
    /// The underlying error: libcurl's code, or one of the service's names.
    package struct Underlying: Shape {
        package var domain = ""
        package var code = ""
        package var message = ""

        package init() {}

        package init(domain: String, code: String, message: String) {
            self.domain = domain
            self.code = code
            self.message = message
        }

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.member("domain", &domain)
            members.member("code", &code)
            members.member("message", &message)
        }
    }

    package var code = URLErrorCode.unknown
    package var localizedDescription = ""
    package var failingURL: String?
    package var backgroundTaskCancelledReason: Int?
    package var networkUnavailableReason: Int?
    package var policy: String?
    package var underlying: Underlying?

    package init() {}

    package init(
        _ code: URLErrorCode, _ description: String? = nil, failingURL: String? = nil, policy: String? = nil,
        underlying: Underlying? = nil, backgroundTaskCancelledReason: Int? = nil
    ) {
        self.code = code
        localizedDescription =
            description ?? policy.map { "The service's \($0) policy does not allow this connection." }
            ?? code.localizedDescription
        self.failingURL = failingURL
        self.policy = policy
        self.underlying = underlying
        self.backgroundTaskCancelledReason = backgroundTaskCancelledReason
    }

    /// The error of a task whose resource timeout has passed, with the error of its last attempt.
    package static func timedOut(after last: TaskError?) -> Self {
        guard let last else { return Self(.timedOut) }
        return Self(
            .timedOut, "\(URLErrorCode.timedOut.localizedDescription) Its last attempt: \(last.localizedDescription)",
            failingURL: last.failingURL, underlying: last.underlying)
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("code", &code)
        members.member("localizedDescription", &localizedDescription)
        members.optional("failingURL", &failingURL)
        members.optional("backgroundTaskCancelledReason", &backgroundTaskCancelledReason)
        members.optional("networkUnavailableReason", &networkUnavailableReason)
        members.optional("policy", &policy)
        members.optional("underlying", &underlying)
    }
}

/// The codes of Apple's `NSURLErrorDomain` that a task can end with.
///
/// - SeeAlso: Apple, "URL Loading System Error Codes".
package enum URLErrorCode: Int, Word, CaseIterable {
    case unknown = -1
    case cancelled = -999
    case badURL = -1000
    case timedOut = -1001
    case unsupportedURL = -1002
    case cannotFindHost = -1003
    case cannotConnectToHost = -1004
    case networkConnectionLost = -1005
    case dnsLookupFailed = -1006
    case httpTooManyRedirects = -1007
    case resourceUnavailable = -1008
    case notConnectedToInternet = -1009
    case redirectToNonExistentLocation = -1010
    case badServerResponse = -1011
    case userCancelledAuthentication = -1012
    case userAuthenticationRequired = -1013
    case zeroByteResource = -1014
    case cannotDecodeRawData = -1015
    case cannotDecodeContentData = -1016
    case cannotParseResponse = -1017
    case requestBodyStreamExhausted = -1021
    case appTransportSecurityRequiresSecureConnection = -1022
    case dataLengthExceedsMaximum = -1103
    case secureConnectionFailed = -1200
    case serverCertificateHasBadDate = -1201
    case serverCertificateUntrusted = -1202
    case serverCertificateHasUnknownRoot = -1203
    case serverCertificateNotYetValid = -1204
    case clientCertificateRejected = -1205
    case clientCertificateRequired = -1206
    case cannotCreateFile = -3000
    case cannotOpenFile = -3001
    case cannotWriteToFile = -3003
    case cannotMoveFile = -3005

    package var name: String { "\(self)" }

    package var localizedDescription: String {
        switch self {
        case .unknown: "An unknown error occurred."
        case .cancelled: "The task was cancelled."
        case .badURL: "The URL is not valid."
        case .timedOut: "The task did not finish before its resource timeout."
        case .unsupportedURL: "The URL's scheme is not supported; use http or https."
        case .cannotFindHost: "The host name could not be resolved."
        case .cannotConnectToHost: "The host could not be reached."
        case .networkConnectionLost: "The connection was lost."
        case .dnsLookupFailed: "The name look-up failed."
        case .httpTooManyRedirects: "There were more than 16 redirects."
        case .resourceUnavailable: "The resource is not available."
        case .notConnectedToInternet: "There is no route to the network."
        case .redirectToNonExistentLocation: "The redirect names no usable location."
        case .badServerResponse: "The server's response cannot be accepted."
        case .userCancelledAuthentication: "Authentication was cancelled."
        case .userAuthenticationRequired: "Authentication is required and was not answered."
        case .zeroByteResource: "The server sent no content."
        case .cannotDecodeRawData: "The content's coding could not be read."
        case .cannotDecodeContentData: "The content's coding is broken."
        case .cannotParseResponse: "The server's response could not be parsed."
        case .requestBodyStreamExhausted: "The body could not be read to its end."
        case .appTransportSecurityRequiresSecureConnection: "A policy of the service does not allow this connection."
        case .dataLengthExceedsMaximum: "The content is longer than allowed."
        case .secureConnectionFailed: "A secure connection could not be made."
        case .serverCertificateHasBadDate: "The server's certificate has expired."
        case .serverCertificateUntrusted: "The server's certificate is not trusted."
        case .serverCertificateHasUnknownRoot: "The server's certificate is signed by an unknown authority."
        case .serverCertificateNotYetValid: "The server's certificate is not valid yet."
        case .clientCertificateRejected: "The server refused the client certificate."
        case .clientCertificateRequired: "The server asks for a client certificate."
        case .cannotCreateFile: "The destination file could not be created."
        case .cannotOpenFile: "The file could not be opened."
        case .cannotWriteToFile: "The content could not be written."
        case .cannotMoveFile: "The content could not be moved."
        }
    }
}
