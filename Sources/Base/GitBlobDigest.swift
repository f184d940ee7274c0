import CCrypto

/// The name of a file's bytes in Git: SHA-1 of `blob LENGTH\0` and the bytes, computed while they arrive.
///
/// SHA-1 proves that bytes are those of a commit, as far as Git itself does. It is none of the service's digests.
package struct GitBlobDigest: Sendable {
    private var context = sha1_ctx()

    /// - Parameter length: The length of the whole file in bytes.
    package init(length: Int64) {
        nettle_sha1_init(&context)
        update(Array("blob \(length)\0".utf8))
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        nettle_sha1_update(&context, bytes.count, bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
    }

    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// The digest of all bytes, 20 bytes.
    package func finish() -> [UInt8] {
        var context = context
        return [UInt8](unsafeUninitializedCapacity: Int(SHA1_DIGEST_SIZE)) { buffer, count in
            count = Int(SHA1_DIGEST_SIZE)
            nettle_sha1_digest(&context, count, buffer.baseAddress)
        }
    }
}
