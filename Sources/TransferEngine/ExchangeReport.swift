package import Core
package import Formats

/// What the engine tells, in order for each exchange; `ended` is the last word.
package enum ExchangeReport: Sendable {
    case head(ExchangeID, ResponseHead, HeadJudgement)
    /// A 1xx head, such as 104 for resumable uploads.
    case informational(ExchangeID, ResponseHead)
    /// The file is on disk up to this offset of the content: every 4 MiB or 2 s of received bytes.
    ///
    /// The digest is that of the bytes up to there, where one was asked for.
    case durable(ExchangeID, offset: Int64, sha256: [UInt8]?)
    /// The next part of a content that comes in parts, in order.
    case part(ExchangeID, ContentPart)
    /// Indirect, since reports are handed on in arrays, and no other is nearly as large.
    indirect case ended(ExchangeID, ExchangeResult)
}

package enum ExchangeOutcome: Hashable, Sendable {
    /// The answer is whole, as far as its framing tells.
    case complete
    case failed(TransferFault)
    /// By ``TransferEngine/stop(_:)``, by the judge, or because the engine shuts down.
    case stopped
}

/// Content at hand when an exchange ended.
package enum ReceivedContent: Hashable, Sendable {
    case none
    case memory([UInt8])
    /// The file is synced and holds exactly `length` bytes.
    case file(path: String, length: Int64)
    /// Handed out as parts, what was elsewhere already included.
    case parts(length: Int64)
}

package struct ExchangeResult: Sendable {
    package var outcome: ExchangeOutcome
    /// The final head, where one came.
    package var head: ResponseHead?
    /// Kept content, the resumed prefix included. Of failed and stopped exchanges too.
    package var received = ReceivedContent.none
    /// More than ``SinkPlan/memory(limit:)`` came, and was not read.
    package var receivedTruncated = false
    /// The part behind those that were told, of a complete exchange with ``SinkPlan/parts(_:after:)``; the first one even
    /// where it is empty.
    package var lastPart: ContentPart?
    /// The body that the judge did not want kept.
    package var side: [UInt8] = []
    package var sideTruncated = false
    /// Bytes of content at hand.
    package var length: Int64 = 0
    /// Whether the framing said where the body ends. False for one that ends with its connection.
    package var lengthVerified = false
    /// Digests of the whole content, for complete exchanges with ``SinkPlan/content``.
    package var digests: [DigestAlgorithm: [UInt8]] = [:]
    /// Of the bytes in the file, where the exchange is not complete and opened it.
    package var partialSHA256: [UInt8]?
    /// Times and facts. What the answer means is for others to add.
    package var metrics: TransactionMetrics
    /// libcurl's code, 0 where it found no fault, and its message. For the operator's log.
    package var curlCode: UInt32 = 0
    package var curlMessage = ""
    /// The host of the URL.
    package var host = ""
    /// The other end of the connection, or of the try to make one: `ADDRESS:PORT`, else `HOST:PORT` of the URL, behind
    /// `the proxy ` where it is one.
    package var peer = ""
    /// `errno` of the system call that failed, 0 where none did or libcurl does not tell.
    package var systemError: Int32 = 0
    /// `sha256/BASE64` of the server's public key after a failure of trust, where it could be had.
    package var serverPublicKey: String?
    /// What the cookie engine ended with, where it was on: the given lines without what was deleted or has expired, with
    /// what the answer set.
    package var cookies: [String]
    /// The head is the proxy's refusal to make a tunnel: the request was not sent.
    package var isOfProxy = false
    /// What was made of the server's head; nil where none came.
    package var judgement: HeadJudgement?
    /// Whether the server of this answer asked for a certificate when the connection was made.
    package var asksForCertificate = false

    /// Body bytes handed to the connection by this exchange.
    package var bytesSent: Int64 { metrics.countOfRequestBodyBytesSent }

    /// Body bytes received by this exchange.
    package var bytesReceived: Int64 { metrics.countOfResponseBodyBytesReceived }

    /// Whether `received` is the answer's body, and not what was there before.
    package var isBodyKept: Bool {
        if case .keep? = judgement?.body { true } else { false }
    }
}

extension TransactionMetrics {
    /// - Parameter wall: Milliseconds since 1970.
    init(of request: ExchangeRequest, at wall: Int64) {
        self.init(url: request.url.text, fetchStartDate: Timestamp(milliseconds: wall))
    }
}

/// A running exchange, seen from outside.
package struct ExchangeProgress: Hashable, Sendable {
    package enum Phase: UInt8, Sendable { case resolving, connecting, sending, receiving }

    package var phase: Phase
    /// Bytes of content at hand, the resumed prefix included.
    package var length: Int64
    /// Body bytes received by this exchange.
    package var bytesReceived: Int64
    package var bytesSent: Int64
    /// Length of the whole content, where the head announced it.
    package var expectedLength: Int64?
}
