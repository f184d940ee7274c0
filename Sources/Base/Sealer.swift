import CCrypto

/// Why sealed bytes did not open.
package enum SealError: Error, Hashable {
    /// Too short, or of a version that this program does not know.
    case malformed
    /// Changed, sealed with another key, or moved from the row they were bound to.
    case notAuthentic
}

/// Seals secrets at rest with AES-256-GCM.
///
/// A sealed secret is one version byte (1), twelve random bytes of nonce, the ciphertext and its tag of sixteen bytes.
/// It is bound to a context, the row it belongs to, so that a copy of it in another row does not open.
/// The corresponding C functions are `gnutls_aead_cipher_encrypt` and `gnutls_aead_cipher_decrypt`.
package struct Sealer: Sendable {
    private static let version: UInt8 = 1
    private static let nonceLength = 12
    private static let tagLength = 16

    private let masterKey: [UInt8]

    /// - Parameter masterKey: 32 bytes.
    package init(masterKey: [UInt8]) {
        precondition(masterKey.count == 32, "a master key has 32 bytes")
        self.masterKey = masterKey
    }

    /// Encrypts `plaintext`, to be opened with the same `context` only.
    package func seal(_ plaintext: [UInt8], boundTo context: String) -> [UInt8] {
        let nonce = RandomBytes.make(Self.nonceLength)
        return [Self.version] + nonce
            + Cipher(key: masterKey).encrypt(plaintext, nonce: nonce, associated: Self.associated(context))
    }

    /// Decrypts what ``seal(_:boundTo:)`` made.
    package func open(_ sealed: [UInt8], boundTo context: String) throws(SealError) -> [UInt8] {
        let head = 1 + Self.nonceLength
        guard sealed.count >= head + Self.tagLength, sealed[0] == Self.version else { throw .malformed }
        let nonce = Array(sealed[1..<head])
        let cipher = Cipher(key: masterKey)
        guard
            let plaintext = cipher.decrypt(Array(sealed[head...]), nonce: nonce, associated: Self.associated(context))
        else { throw .notAuthentic }
        return plaintext
    }

    private static func associated(_ context: String) -> [UInt8] { [version] + Array(context.utf8) }
}

/// AES-256-GCM with one key. Made for each use: libgnutls does not promise that threads may share a handle.
struct Cipher: ~Copyable {
    private static let tagLength = 16
    private let handle: gnutls_aead_cipher_hd_t

    init(key: [UInt8]) {
        var handle: gnutls_aead_cipher_hd_t?
        var bytes = key
        let code = bytes.withUnsafeMutableBufferPointer { key in
            var datum = gnutls_datum_t(data: key.baseAddress, size: UInt32(key.count))
            return gnutls_aead_cipher_init(&handle, GNUTLS_CIPHER_AES_256_GCM, &datum)
        }
        guard code == 0, let handle else { preconditionFailure("gnutls_aead_cipher_init: \(code)") }
        self.handle = handle
    }

    deinit { gnutls_aead_cipher_deinit(handle) }

    /// The ciphertext with its tag behind it.
    func encrypt(_ plaintext: [UInt8], nonce: [UInt8], associated: [UInt8]) -> [UInt8] {
        let capacity = plaintext.count + Self.tagLength
        return [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            count = capacity
            let code = gnutls_aead_cipher_encrypt(
                handle, nonce, nonce.count, associated, associated.count, Self.tagLength, plaintext, plaintext.count,
                buffer.baseAddress, &count)
            precondition(code == 0, "gnutls_aead_cipher_encrypt: \(code)")
        }
    }

    /// The plaintext, or `nil` when the tag does not fit.
    func decrypt(_ ciphertext: [UInt8], nonce: [UInt8], associated: [UInt8]) -> [UInt8]? {
        var code: CInt = 0
        // One byte more than needed, so that the buffer is never null.
        let plaintext = [UInt8](unsafeUninitializedCapacity: ciphertext.count + 1) { buffer, count in
            count = ciphertext.count
            code = gnutls_aead_cipher_decrypt(
                handle, nonce, nonce.count, associated, associated.count, Self.tagLength, ciphertext, ciphertext.count,
                buffer.baseAddress, &count)
            if code != 0 { count = 0 }
        }
        return code == 0 ? plaintext : nil
    }
}
