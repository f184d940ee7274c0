import CCrypto

/// AES-256-GCM with one key. Created for each use: libgnutls does not promise that threads may share a handle.
///
/// - SeeAlso: `gnutls_aead_cipher_encrypt`, `gnutls_aead_cipher_decrypt`.
package struct Cipher: ~Copyable {
    /// The length of a tag in bytes.
    package static let tagLength = 16
    private let handle: gnutls_aead_cipher_hd_t

    /// - Parameter key: 32 bytes.
    package init(key: [UInt8]) {
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

    /// The ciphertext followed by its tag.
    package func encrypt(_ plaintext: [UInt8], nonce: [UInt8], associated: [UInt8]) -> [UInt8] {
        let capacity = plaintext.count + Self.tagLength
        return [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            count = capacity
            let code = gnutls_aead_cipher_encrypt(
                handle, nonce, nonce.count, associated, associated.count, Self.tagLength, plaintext, plaintext.count,
                buffer.baseAddress, &count)
            precondition(code == 0, "gnutls_aead_cipher_encrypt: \(code)")
        }
    }

    /// The plaintext; `nil` if the tag does not match.
    package func decrypt(_ ciphertext: [UInt8], nonce: [UInt8], associated: [UInt8]) -> [UInt8]? {
        var code: CInt = 0
        // One byte more than needed, so that the buffer pointer is not null.
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
