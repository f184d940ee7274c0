import CCrypto

/// Randomness for keys, identifiers and nonces.
package enum RandomBytes {
    /// Unpredictable bytes. The corresponding C function is `gnutls_rnd` at `GNUTLS_RND_KEY`.
    package static func make(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let code = gnutls_rnd(GNUTLS_RND_KEY, buffer.baseAddress, count)
            precondition(code == 0, "gnutls_rnd: \(code)")
            initialized = count
        }
    }
}

/// Unique and unguessable names.
package enum Identifier {
    /// `prefix` and 128 random bits in base 62: 22 characters more.
    package static func make(prefix: String) -> String { prefix + RandomBytes.make(16).base62 }
}
