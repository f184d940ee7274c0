import CCrypto

/// Keyed digests (RFC 2104).
package enum HMAC {
    /// HMAC-SHA256, 32 bytes. The corresponding C function is `gnutls_hmac_fast`.
    package static func sha256(key: [UInt8], message: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            let code = key.withUnsafeBytes { key in
                message.withUnsafeBytes { message in
                    gnutls_hmac_fast(
                        GNUTLS_MAC_SHA256, key.baseAddress, key.count, message.baseAddress, message.count,
                        buffer.baseAddress)
                }
            }
            precondition(code == 0, "gnutls_hmac_fast: \(code)")
            count = 32
        }
    }
}
