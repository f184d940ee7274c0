import Base

/// Standard Webhooks v1: what proves to a receiver that a webhook is ours.
///
/// - SeeAlso: standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`.
enum Signature {
    /// The value of `webhook-signature`: one item for each secret, the current one first.
    ///
    /// - Parameters:
    ///   - secrets: The keys themselves, decoded.
    ///   - timestamp: Of this attempt, seconds since 1970.
    static func header(secrets: [[UInt8]], id: String, timestamp: Int64, body: [UInt8]) -> String {
        let message = Array("\(id).\(timestamp).".utf8) + body
        return secrets.map { "v1," + HMAC.sha256(key: $0, message: message).base64 }.joined(separator: " ")
    }
}
