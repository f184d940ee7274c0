import Base
import Core
import TransferEngine

/// The meaning of an engine fault: for the retry policy, and for the app as Apple's error.
struct FaultMeaning {
    var fault: AttemptFault
    var error: TaskError
    /// The network itself is missing, so the task shows `waitingForConnectivity`.
    var waitsForConnectivity = false
    /// The disk is full: the task waits, and no attempt is charged.
    var waitsForDisk = false
    /// The bucket of contents refuses this node: the task waits for the operator, and no attempt is charged.
    var waitsForOperator = false

    /// The only mapping of the engine's faults. Total.
    ///
    /// - Parameter explanation: A text more precise than Apple's code, if there is one. Policy errors do not use it.
    static func of(
        _ fault: TransferFault, curlCode: UInt32, message: String, explanation: String? = nil, url: String
    ) -> FaultMeaning {
        let underlying = TaskError.Underlying(domain: "curl", code: String(curlCode), message: message)
        func error(_ code: URLErrorCode) -> TaskError {
            TaskError(code, explanation, failingURL: url, underlying: curlCode != 0 ? underlying : nil)
        }
        func transport(_ code: URLErrorCode, waits: Bool = false) -> FaultMeaning {
            FaultMeaning(fault: .transport, error: error(code), waitsForConnectivity: waits)
        }
        func terminal(_ code: URLErrorCode) -> FaultMeaning { FaultMeaning(fault: .terminal, error: error(code)) }

        switch fault {
        case .badRequest: return terminal(.badURL)
        case .nameDoesNotExist: return FaultMeaning(fault: .nameDoesNotExist, error: error(.cannotFindHost))
        case .couldNotResolve: return transport(.cannotFindHost, waits: true)
        // No attempt is charged: see ``Judge``.
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
        case .egressDenied:
            return FaultMeaning(
                fault: .terminal,
                error: TaskError(.appTransportSecurityRequiresSecureConnection, failingURL: url, policy: "egress"))
        case .tooLarge: return terminal(.dataLengthExceedsMaximum)
        case .prefixMissing: return FaultMeaning(fault: .restart, error: error(.cannotOpenFile))
        case .proxyNotResolved: return transport(.cannotFindHost)
        case .proxyFailed: return transport(.cannotConnectToHost)
        case .proxyAuthenticationRequired: return terminal(.userAuthenticationRequired)
        case .other: return transport(.unknown)
        case .headersTooLarge, .disk, .bodySource, .bodyDamaged: return detailed(fault, error, url: url)
        }
    }

    /// The faults that libcurl reports with no message, or with a wrong one.
    private static func detailed(
        _ fault: TransferFault, _ error: (URLErrorCode) -> TaskError, url: String
    ) -> FaultMeaning {
        func terminal(_ code: URLErrorCode, _ name: String, _ message: String) -> FaultMeaning {
            var meaning = FaultMeaning(fault: .terminal, error: error(code))
            meaning.error.underlying = TaskError.Underlying(domain: "urlsessiond", code: name, message: message)
            return meaning
        }
        switch fault {
        case .headersTooLarge:
            // libcurl calls some of these "Out of memory".
            return terminal(.cannotParseResponse, "head-too-large", "The head of the response does not end.")
        case .disk(let errno):
            let failure = SystemError("write", errno: errno)
            var meaning = FaultMeaning(
                fault: .local, error: LocalFault.disk(failure).error, waitsForDisk: failure.isFull)
            meaning.error.failingURL = url
            return meaning
        case .bodySource(let errno) where [ObjectFetcher.isAway, ObjectFetcher.isRefused].contains(errno):
            let cause = TaskError.Underlying(
                domain: "s3", code: "bucket-unreachable", message: "The bucket cannot be reached.")
            return FaultMeaning(
                fault: .local,
                error: TaskError(
                    .cannotOpenFile, "The body could not be read from its bucket.", failingURL: url, underlying: cause),
                waitsForOperator: errno == ObjectFetcher.isRefused)
        case .bodySource(let errno) where SystemError("read", errno: errno).isOfMachine:
            let cause = TaskError.Underlying(
                domain: "urlsessiond", code: "disk", message: SystemError("read", errno: errno).description)
            return FaultMeaning(
                fault: .local, error: TaskError(.requestBodyStreamExhausted, failingURL: url, underlying: cause))
        case .bodyDamaged:
            return terminal(
                .requestBodyStreamExhausted, "body-damaged",
                "The stored bytes do not match their digest.")
        default: return FaultMeaning(fault: .terminal, error: error(.requestBodyStreamExhausted))
        }
    }
}
