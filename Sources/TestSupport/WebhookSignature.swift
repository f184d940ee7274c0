import Base
package import Core

/// Signing and verifying by Standard Webhooks v1, independent of the product's implementation.
package enum WebhookSignature {
    /// The signature of one message: `v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`.
    package static func sign(secret: String, id: String, timestamp: String, body: [UInt8]) -> String? {
        guard secret.hasPrefix("whsec_"), let key = Base64Text.decode(String(secret.dropFirst(6))) else { return nil }
        return "v1," + Base64Text.encode(hmac(key: key, message: Array("\(id).\(timestamp).".utf8) + body))
    }

    /// Whether one of the header's signatures is right for the secret.
    package static func verifies(secret: String, fields: HTTPFields, body: [UInt8]) -> Bool {
        guard
            let id = fields["webhook-id"], let timestamp = fields["webhook-timestamp"], Int(timestamp) != nil,
            let signatures = fields["webhook-signature"],
            let expected = sign(secret: secret, id: id, timestamp: timestamp, body: body)
        else { return false }
        return signatures.split(separator: " ").contains { Array($0.utf8) == Array(expected.utf8) }
    }

    /// HMAC-SHA256 (RFC 2104).
    static func hmac(key: [UInt8], message: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? Digest.of(key) : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        let inner = Digest.of(block.map { $0 ^ 0x36 } + message)
        return Digest.of(block.map { $0 ^ 0x5C } + inner)
    }
}
