import Base

/// The reason for which sealed bytes do not open.
package enum SealError: Error, Hashable {
    /// The bytes are too short, or of a version that this program does not know.
    case malformed
    /// The bytes were changed, sealed with another key, or copied from another row.
    case notAuthentic
}

/// Seals secrets at rest with AES-256-GCM.
///
/// A sealed secret is one version byte (1), twelve random bytes of nonce, the ciphertext and its tag of sixteen bytes.
/// Each is bound to a context, the row that it belongs to, so that a copy in another row does not open.
package struct Sealer: Sendable {
    private static let version: UInt8 = 1
    private static let nonceLength = 12

    private let masterKey: [UInt8]

    /// - Parameter masterKey: 32 bytes.
    package init(masterKey: [UInt8]) {
        precondition(masterKey.count == 32, "a master key has 32 bytes")
        self.masterKey = masterKey
    }

    /// Encrypts `plaintext`. Only a call with the same `context` can open it.
    package func seal(_ plaintext: [UInt8], boundTo context: String) -> [UInt8] {
        let nonce = RandomBytes.make(Self.nonceLength)
        return [Self.version] + nonce
            + Cipher(key: masterKey).encrypt(plaintext, nonce: nonce, associated: Self.associated(context))
    }

    /// Decrypts bytes that ``seal(_:boundTo:)`` returned.
    package func open(_ sealed: [UInt8], boundTo context: String) throws(SealError) -> [UInt8] {
        let head = 1 + Self.nonceLength
        guard sealed.count >= head + Cipher.tagLength, sealed[0] == Self.version else { throw .malformed }
        let nonce = Array(sealed[1..<head])
        let cipher = Cipher(key: masterKey)
        guard
            let plaintext = cipher.decrypt(Array(sealed[head...]), nonce: nonce, associated: Self.associated(context))
        else { throw .notAuthentic }
        return plaintext
    }

    /// A digest by which equal bytes are found without storing them, which may hold secrets.
    func mark(_ bytes: [UInt8]) -> [UInt8] { HMAC.sha256(key: masterKey, message: bytes) }

    private static func associated(_ context: String) -> [UInt8] { [version] + Array(context.utf8) }
}
