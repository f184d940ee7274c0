package import Core
package import Formats

/// The reports of the engine, in order for each exchange; `ended` is the last one.
package enum ExchangeReport: Sendable {
    case head(ExchangeID, ResponseHead, HeadJudgement)
    /// A 1xx head, such as 104 for resumable uploads.
    case informational(ExchangeID, ResponseHead)
    /// The file is durable up to this offset of the content: every 4 MiB or 2 s of received bytes.
    ///
    /// The digest covers the bytes up to the offset, if one was requested.
    case durable(ExchangeID, offset: Int64, sha256: [UInt8]?)
    /// The next part of a content that is delivered in parts, in order.
    case part(ExchangeID, ContentPart)
    /// Indirect, because reports are passed on in arrays, and no other case is nearly as large.
    indirect case ended(ExchangeID, ExchangeResult)
}

package enum ExchangeOutcome: Hashable, Sendable {
    /// The response is complete according to its framing.
    case complete
    case failed(TransferFault)
    /// Ended by ``TransferEngine/stop(_:)``, by the judge, or by the engine's shutdown.
    case stopped
}

/// The content received by the end of an exchange.
package enum ReceivedContent: Hashable, Sendable {
    case none
    case memory([UInt8])
    /// The file is synced and holds exactly `length` bytes.
    case file(path: String, length: Int64)
    /// Delivered as parts; the length includes parts stored earlier.
    case parts(length: Int64)
}

package struct ExchangeResult: Sendable {
    package var outcome: ExchangeOutcome
    /// The final head, if one was received.
    package var head: ResponseHead?
    /// Kept content, including the resumed prefix. Also set for failed and stopped exchanges.
    package var received = ReceivedContent.none
    /// Whether the response was longer than ``SinkPlan/memory(limit:)`` and the rest was not read.
    package var receivedTruncated = false
    /// The part after the reported ones, for a complete exchange with ``SinkPlan/parts(_:after:)``. The first part is
    /// set even if it is empty.
    package var lastPart: ContentPart?
    /// A body that the judge did not want to keep.
    package var side: [UInt8] = []
    package var sideTruncated = false
    /// The length of the received content.
    package var length: Int64 = 0
    /// Whether the framing determined the end of the body. False for a body that ends with its connection.
    package var lengthVerified = false
    /// Digests of the whole content, for complete exchanges with ``SinkPlan/content``.
    package var digests: [DigestAlgorithm: [UInt8]] = [:]
    /// The digest of the bytes in the file, if the exchange opened it and is not complete.
    package var partialSHA256: [UInt8]?
    /// Times and facts. The meaning of the response is added elsewhere.
    package var metrics: TransactionMetrics
    /// libcurl's code, 0 without a fault, and its message. For the operator's log.
    package var curlCode: UInt32 = 0
    package var curlMessage = ""
    package var host = ""
    /// The peer of the connection or connection attempt: `ADDRESS:PORT`, otherwise `HOST:PORT` of the URL, with the
    /// prefix `the proxy ` if it is a proxy.
    package var peer = ""
    /// `errno` of the failed system call; 0 if none failed or libcurl does not report it.
    package var systemError: Int32 = 0
    /// `sha256/BASE64` of the server's public key after a failure of trust, if it could be read.
    package var serverPublicKey: String?
    /// The final state of the cookie engine, if enabled: the given lines, without those deleted or expired, and those
    /// that the response set.
    package var cookies: [String]
    /// Whether the head is the proxy's refusal of a tunnel: the request was not sent.
    package var isOfProxy = false
    /// The judge's result for the head; `nil` without a head.
    package var judgement: HeadJudgement?
    /// Whether the server requested a certificate when the connection was opened.
    package var asksForCertificate = false

    /// Body bytes handed to the connection by this exchange.
    package var bytesSent: Int64 { metrics.countOfRequestBodyBytesSent }

    /// Body bytes received by this exchange.
    package var bytesReceived: Int64 { metrics.countOfResponseBodyBytesReceived }

    /// Whether `received` is the body of this response, not earlier content.
    package var isBodyKept: Bool {
        if case .keep? = judgement?.body { true } else { false }
    }
}

extension ExchangeResult {
    /// The result of an exchange that ends with its head.
    package init(head: ResponseHead, metrics: TransactionMetrics) {
        self.init(outcome: .complete, head: head, metrics: metrics, cookies: [])
    }
}

extension TransactionMetrics {
    /// - Parameter wall: Milliseconds since 1970.
    init(of request: ExchangeRequest, at wall: Int64) {
        self.init(url: request.url.text, fetchStartDate: Timestamp(milliseconds: wall))
    }
}

/// The progress of a running exchange.
package struct ExchangeProgress: Hashable, Sendable {
    package enum Phase: UInt8, Sendable { case resolving, connecting, sending, receiving }

    package var phase: Phase
    /// The length of the received content, including the resumed prefix.
    package var length: Int64
    /// Body bytes received by this exchange.
    package var bytesReceived: Int64
    package var bytesSent: Int64
    /// The length of the whole content, if the head announced it.
    package var expectedLength: Int64?
}
