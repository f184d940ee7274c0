import Base

/// Standard Webhooks v1: the signature that proves the origin of a webhook.
///
/// - SeeAlso: standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`.
enum Signature {
    /// The value of `webhook-signature`: one item for each secret, the current one first.
    ///
    /// - Parameters:
    ///   - secrets: The decoded keys.
    ///   - timestamp: The time of this attempt, in seconds since 1970.
    static func header(secrets: [[UInt8]], id: String, timestamp: Int64, body: [UInt8]) -> String {
        let message = Array("\(id).\(timestamp).".utf8) + body
        return secrets.map { "v1," + HMAC.sha256(key: $0, message: message).base64 }.joined(separator: " ")
    }
}
