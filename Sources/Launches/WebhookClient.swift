import Base
import Core
import Store
import TransferEngine

/// Signs a body and posts it to a receiver, in one attempt.
struct WebhookClient: Sendable {
    let store: Store
    let settings: LaunchSettings
    let exchanges: Exchanges
    let clock: Clock
    let log: Log

    /// The maximum length of a response that is read, in bytes.
    static let answerLimit = 16 * 1024

    /// One message to a receiver.
    struct Message {
        var id: String
        /// The number of the attempt, from 1.
        var attempt = 1
        var app: AppID
        var url: String
        var body: [UInt8]
        var traceparent: String?
        var timeout: Duration
    }

    /// Signs with the valid secrets, sends, and reads the response.
    ///
    /// - Throws: `BadURL`, and errors of the store.
    func post(_ message: Message) async throws -> (LaunchAttempt, LaunchReport.Verdict) {
        let url = try ParsedURL(message.url)
        let secrets = try await store.apps.webhookSecrets(of: message.app, at: clock.time)
        let startedAt = clock.time
        let began = clock.monotonic()
        let result = await exchanges.perform(request(message, to: url, secrets: secrets, at: startedAt))
        if case .failed(.egressDenied) = result.outcome {
            log.warning("the egress policy refused a webhook", ("launch", message.id))
        }
        let answer = ReceiverAnswer(result, at: clock.time)
        let attempt = LaunchAttempt(
            number: message.attempt, startedAt: startedAt,
            duration: .milliseconds(max(0, clock.monotonic() - began)), statusCode: answer.statusCode,
            error: answer.error, excerpt: answer.excerpt)
        return (attempt, answer.verdict)
    }

    private func request(
        _ message: Message, to url: ParsedURL, secrets: [[UInt8]], at now: Timestamp
    ) -> ExchangeRequest {
        let seconds = now.milliseconds / 1000
        var headers = HTTPFields()
        headers.append("content-type", "application/json")
        headers.append("user-agent", "urlsessiond/\(settings.version)")
        headers.append("accept", "application/json")
        headers.append("webhook-id", message.id)
        headers.append("webhook-timestamp", "\(seconds)")
        headers.append(
            "webhook-signature",
            Signature.header(secrets: secrets, id: message.id, timestamp: seconds, body: message.body))
        if let traceparent = message.traceparent { headers.append("traceparent", traceparent) }
        var request = ExchangeRequest(
            id: exchanges.nextID(), pool: message.app.rawValue, method: "POST", url: url,
            sink: .memory(limit: Self.answerLimit), egress: settings.egress(for: url)
        ) { _ in HeadJudgement(.keep(at: 0)) }
        request.headers = headers
        request.body = .bytes(message.body)
        request.idleTimeout = message.timeout
        request.connectTimeout = min(message.timeout, .seconds(10))
        request.totalTimeout = message.timeout
        return request
    }
}

extension Clock {
    var time: Timestamp { Timestamp(milliseconds: wall()) }
}
