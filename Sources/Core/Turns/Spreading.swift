/// Positions derived from a name, so that many apps do not act at the same time.
package enum Spreading {
    /// FNV-1a, 64 bits. Not `Hasher`, whose seed changes with every start.
    ///
    /// - SeeAlso: G. Fowler, L. Noll, K. Vo, "The FNV Non-Cryptographic Hash Algorithm".
    package static func hash(_ name: String) -> UInt64 {
        let fnv = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        // The high bits vary little for short names, so they are mixed again.
        return (fnv ^ (fnv >> 32)) &* 0x9E37_79B9_7F4A_7C15
    }

    /// The name's position in a range, in `0..<1`.
    package static func fraction(_ name: String) -> Double { Double(hash(name) >> 11) / Double(1 << 53 as UInt64) }
}
