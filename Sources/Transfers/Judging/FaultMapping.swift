import Base
import Core
import TransferEngine

/// What a fault of the engine means: to the retry policy, and to the app as Apple's error.
struct FaultMeaning {
    var fault: AttemptFault
    var error: TaskError
    /// The network itself is missing, so the task shows `waitingForConnectivity`.
    var waitsForConnectivity = false
    /// The disk is full: the task waits, and no attempt is charged.
    var waitsForDisk = false
    /// The bucket of contents refuses this node: the task waits for the operator, and no attempt is charged.
    var waitsForOperator = false

    /// The one mapping of the engine's faults. Total.
    ///
    /// - Parameter explanation: What happened, where that is known better than by Apple's code. Policy has one text for all.
    static func of(
        _ fault: TransferFault, curlCode: UInt32, message: String, explanation: String? = nil, url: String
    ) -> FaultMeaning {
        let underlying = TaskError.Underlying(domain: "curl", code: String(curlCode), message: message)
        func error(_ code: URLErrorCode, policy: String? = nil) -> TaskError {
            TaskError(
                code, policy == nil ? explanation : nil, failingURL: url, policy: policy,
                underlying: policy == nil && curlCode != 0 ? underlying : nil)
        }
        func transport(_ code: URLErrorCode, waits: Bool = false) -> FaultMeaning {
            FaultMeaning(fault: .transport, error: error(code), waitsForConnectivity: waits)
        }
        func terminal(_ code: URLErrorCode) -> FaultMeaning { FaultMeaning(fault: .terminal, error: error(code)) }

        switch fault {
        case .badRequest: return terminal(.badURL)
        case .nameDoesNotExist: return FaultMeaning(fault: .nameDoesNotExist, error: error(.cannotFindHost))
        case .couldNotResolve: return transport(.cannotFindHost, waits: true)
        // Uncharged: see Judge.
        case .nameNotAsked: return transport(.cannotFindHost)
        case .connectFailed, .connectTimedOut: return transport(.cannotConnectToHost)
        case .noConnectivity: return transport(.notConnectedToInternet, waits: true)
        case .idleTimeout, .totalTimeout: return transport(.timedOut)
        case .tlsHandshake(let interrupted):
            return interrupted ? transport(.secureConnectionFailed) : terminal(.secureConnectionFailed)
        case .certificateUntrusted, .certificateWrongHost, .pinMismatch: return terminal(.serverCertificateUntrusted)
        case .certificateExpired: return terminal(.serverCertificateHasBadDate)
        case .certificateNotYetValid: return terminal(.serverCertificateNotYetValid)
        case .clientCertificateRequired: return terminal(.clientCertificateRequired)
        case .clientCertificateInvalid: return terminal(.clientCertificateRejected)
        case .reset, .shortBody, .emptyReply, .http2Refused, .http2Calm, .http2Stream:
            return transport(.networkConnectionLost)
        case .unparsableResponse, .twoLengths: return terminal(.cannotParseResponse)
        case .headersTooLarge:
            // libcurl calls some of these "Out of memory".
            var meaning = terminal(.cannotParseResponse)
            meaning.error.underlying = TaskError.Underlying(
                domain: "urlsessiond", code: "head-too-large", message: "The head of the answer does not end.")
            return meaning
        case .egressDenied:
            return FaultMeaning(
                fault: .terminal,
                error: error(.appTransportSecurityRequiresSecureConnection, policy: "egress"))
        case .tooLarge: return terminal(.dataLengthExceedsMaximum)
        case .prefixMissing: return FaultMeaning(fault: .restart, error: error(.cannotOpenFile))
        case .disk(let errno):
            let failure = SystemError("write", errno: errno)
            var meaning = FaultMeaning(
                fault: .local, error: LocalFault.disk(failure).error, waitsForDisk: failure.isFull)
            meaning.error.failingURL = url
            return meaning
        case .bodySource(let errno) where [ObjectFetcher.isAway, ObjectFetcher.isRefused].contains(errno):
            return FaultMeaning(
                fault: .local,
                error: TaskError(
                    .cannotOpenFile, "The body could not be read from its bucket.", failingURL: url,
                    underlying: TaskError.Underlying(
                        domain: "s3", code: "bucket-unreachable", message: "The bucket is out of reach.")),
                waitsForOperator: errno == ObjectFetcher.isRefused)
        case .bodyDamaged:
            var meaning = terminal(.requestBodyStreamExhausted)
            meaning.error.underlying = TaskError.Underlying(
                domain: "urlsessiond", code: "body-damaged",
                message: "The stored bytes do not have the digest that they were stored with.")
            return meaning
        case .bodySource: return terminal(.requestBodyStreamExhausted)
        case .proxyNotResolved: return transport(.cannotFindHost)
        case .proxyFailed: return transport(.cannotConnectToHost)
        case .proxyAuthenticationRequired: return terminal(.userAuthenticationRequired)
        case .other: return transport(.unknown)
        }
    }
}
