import CCrypto

/// Comparison of secrets whose duration does not reveal the position of a difference.
package enum ConstantTime {
    /// Whether both are equal. The duration may only reveal the lengths. The C function is `gnutls_memcmp`.
    package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in gnutls_memcmp(left.baseAddress, right.baseAddress, left.count) == 0 }
        }
    }
}
