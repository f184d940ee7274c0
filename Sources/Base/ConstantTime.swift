import CCrypto

/// Comparison of secrets, whose time tells nothing of where they differ.
package enum ConstantTime {
    /// Whether both are the same bytes. Only the lengths may show in the time. The C function is `gnutls_memcmp`.
    package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in gnutls_memcmp(left.baseAddress, right.baseAddress, left.count) == 0 }
        }
    }
}
