import Base
import Core
import Store
import TransferEngine
import Wire

/// A receiver's response to a webhook.
struct ReceiverAnswer {
    var verdict: LaunchReport.Verdict
    var statusCode: Int?
    /// The error in words, for the app.
    var error: String?
    var excerpt: String?

    /// The longest excerpt, in bytes.
    static let excerptLength = 1024

    init(_ result: ExchangeResult, at now: Timestamp) {
        guard result.outcome != .stopped else {
            verdict = .interrupted
            return
        }
        // The status counts, whatever happened to the body after it.
        guard let head = result.head else {
            verdict = .failed(retryAfter: nil, wasAnswered: false)
            if case .failed(let fault) = result.outcome {
                error = result.explanation(of: fault) ?? fault.words
                verdict = .failed(retryAfter: nil, wasAnswered: fault.isAnswer)
            }
            return
        }
        var body: [UInt8] = []
        if case .memory(let bytes) = result.received { body = bytes }
        statusCode = head.status
        excerpt = Self.excerpt(body)
        switch head.status {
        case 200..<300:
            let isWhole = result.outcome == .complete && !result.receivedTruncated
            verdict = .succeeded(isWhole ? Self.answer(body) : nil)
        case 410:
            error = StatusText.of(head.status)
            verdict = .gone
        case 429, 503:
            error = StatusText.of(head.status)
            let wait = RetryAfter.parse(head.fields, now: now, atMost: LaunchSchedule.lifetime)
            verdict = .failed(retryAfter: wait, wasAnswered: true)
        case 300..<400:
            error = "\(StatusText.of(head.status)): redirects are not followed."
            verdict = .failed(retryAfter: nil, wasAnswered: true)
        default:
            error = StatusText.of(head.status)
            verdict = .failed(retryAfter: nil, wasAnswered: true)
        }
    }

    /// The answer in the body of a 2xx: `{"completed": true, "through"?}` or `{"result"}`; `nil` for anything else.
    static func answer(_ body: [UInt8]) -> LaunchAnswer? {
        guard !body.isEmpty, let json = try? JSON.parse(body) else { return nil }
        if let name = json["result"]?.stringValue, let result = Core.BackgroundRefresh.Result(rawValue: name) {
            return .fetched(result)
        }
        guard json["completed"]?.boolValue == true else { return nil }
        switch json["through"] {
        case nil, .null?: return .completed(through: nil)
        case .integer(let through)? where through >= 0: return .completed(through: through)
        default: return nil
        }
    }

    /// The beginning of a response as text, without control characters, and with keys and tokens redacted.
    static func excerpt(_ body: [UInt8]) -> String? {
        guard !body.isEmpty else { return nil }
        let text = String(decoding: body.prefix(excerptLength), as: UTF8.self)
        let printable = String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    let isControl = scalar.value < 0x20 && scalar != "\n" && scalar != "\t" || scalar.value == 0x7F
                    return isControl ? "\u{FFFD}" : scalar
                }))
        return redacted(printable)
    }

    /// Redacts everything that looks like a key of the service or a bearer token.
    static func redacted(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let marks = ["whsec_", "usd_", "v1,", "Bearer ", "bearer "].map { Array($0.utf8) }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            guard let mark = marks.first(where: { bytes[index...].starts(with: $0) }) else {
                result.append(bytes[index])
                index += 1
                continue
            }
            var end = index + mark.count
            while end < bytes.count, bytes[end].isKeyCharacter { end += 1 }
            // Short matches are words, not keys.
            if end - index - mark.count < 16 {
                result += bytes[index..<end]
            } else {
                result += mark + Array("<redacted>".utf8)
            }
            index = end
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension UInt8 {
    /// A character of base64, base64url or base62.
    fileprivate var isKeyCharacter: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E, 0x2F, 0x3D, 0x5F: true
        default: false
        }
    }
}

extension TransferFault {
    /// Whether the receiver sent anything, even if it is unreadable.
    var isAnswer: Bool {
        switch self {
        case .unparsableResponse, .headersTooLarge, .twoLengths, .tooLarge, .shortBody: true
        default: false
        }
    }

    /// The text for the app. All policy denials have one text, because addresses are for the operator's log only.
    var words: String {
        switch self {
        case .badRequest: "The webhook's URL cannot be used."
        case .nameDoesNotExist, .couldNotResolve, .nameNotAsked: "The host name could not be resolved."
        case .connectFailed, .noConnectivity: "The host could not be reached."
        case .connectTimedOut, .idleTimeout, .totalTimeout: "The receiver did not answer in time."
        case .tlsHandshake, .certificateUntrusted, .certificateExpired, .certificateNotYetValid,
            .certificateWrongHost, .clientCertificateRequired, .clientCertificateInvalid, .pinMismatch:
            "A secure connection could not be made."
        case .reset, .shortBody, .emptyReply, .http2Refused, .http2Calm, .http2Stream: "The connection was lost."
        case .unparsableResponse, .headersTooLarge, .twoLengths, .tooLarge: "The response could not be read."
        case .egressDenied: "A policy of the service does not allow this connection."
        case .prefixMissing, .disk, .bodySource, .bodyDamaged, .proxyNotResolved, .proxyFailed,
            .proxyAuthenticationRequired,
            .other:
            "The request could not be made."
        }
    }
}
