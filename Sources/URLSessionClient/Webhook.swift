public import Foundation
public import Wire

/// Verifies webhooks that arrive at the app (Standard Webhooks v1). Use no webhook before it is verified.
///
///     let payload = try Webhook(secrets: ["whsec_…"]).verify(headers: headers, body: body)
///     if payload.type == "session.handleEvents" {
///         let launch: WebhookPayload.HandleEvents = try payload.data.read()
///         …
///     }
public struct Webhook: Sendable {
    private let keys: [[UInt8]]

    /// The accepted difference of a timestamp in seconds, in either direction.
    public static let tolerance: Int64 = 300

    /// Creates a verifier with the app's webhook secret; during a rotation, with the old one and the new one.
    ///
    /// - Throws: ``WebhookError/unusableSecret`` if a secret is not base64 of at least one byte, with or without
    ///   `whsec_`.
    public init(secrets: [String]) throws(WebhookError) {
        var keys: [[UInt8]] = []
        for secret in secrets {
            let text = secret.hasPrefix("whsec_") ? String(secret.dropFirst("whsec_".count)) : secret
            guard let key = Base64.decode(text), !key.isEmpty else { throw .unusableSecret }
            keys.append(key)
        }
        self.keys = keys
    }

    /// The payload of the webhook, if it was signed with one of the secrets within ``tolerance``.
    ///
    /// - Parameters:
    ///   - headers: The request's header fields, with names in any case.
    ///   - body: The request's body, byte for byte.
    ///   - now: Seconds since 1970; without it the machine's clock counts.
    public func verify(
        headers: [String: String], body: [UInt8], now: Int64 = Int64(Date().timeIntervalSince1970)
    ) throws(WebhookError) -> WebhookPayload {
        var fields: [String: String] = [:]
        for (name, value) in headers { fields[name.lowercased()] = value }
        guard let identifier = fields["webhook-id"], let timestamp = fields["webhook-timestamp"],
            let signatures = fields["webhook-signature"], let seconds = Int64(timestamp)
        else { throw .incompleteHeaders }
        let (distance, overflow) = now.subtractingReportingOverflow(seconds)
        guard !overflow, distance.magnitude <= Self.tolerance.magnitude else { throw .wrongTime }

        let signed = Array("\(identifier).\(timestamp).".utf8) + body
        let expected = keys.map {
            Array("v1,\(Base64.encode(SHA256.authenticationCode(of: signed, key: $0)))".utf8)
        }
        let given = signatures.utf8.split(separator: UInt8(ascii: " ")).map { Array($0) }
        let isSigned = given.contains { one in expected.contains { Self.isEqual(one, $0) } }
        guard isSigned else { throw .wrongSignature }
        guard let payload = try? WebhookPayload(parsing: body, .tolerant) else { throw .unreadable }
        return payload
    }

    /// Compares in time that depends on the length alone, so that timing reveals no signature.
    private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// The reason why a webhook was refused, or its verifier not created.
public enum WebhookError: Error, Sendable, Hashable {
    /// A secret does not have the service's form.
    case unusableSecret
    /// `webhook-id`, `webhook-timestamp` or `webhook-signature` is missing or wrong.
    case incompleteHeaders
    /// The webhook was signed too long ago, or in the future.
    case wrongTime
    /// None of its signatures was made with one of the secrets.
    case wrongSignature
    /// The webhook is signed, but is not the JSON of a webhook.
    case unreadable
}
