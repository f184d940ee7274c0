import CCrypto
package import Formats

/// A digest computed while bytes arrive.
///
/// The corresponding C functions are `gnutls_hash_init`, `gnutls_hash` and `gnutls_hash_deinit`.
package final class Digest {
    package let algorithm: DigestAlgorithm
    private let handle: gnutls_hash_hd_t

    private init(_ algorithm: DigestAlgorithm, adopting handle: gnutls_hash_hd_t) {
        self.algorithm = algorithm
        self.handle = handle
    }

    package init(_ algorithm: DigestAlgorithm = .sha256) {
        self.algorithm = algorithm
        var handle: gnutls_hash_hd_t?
        let code = gnutls_hash_init(&handle, algorithm.identifier)
        guard code == 0, let handle else { preconditionFailure("gnutls_hash_init: \(code)") }
        self.handle = handle
    }

    deinit { gnutls_hash_deinit(handle, nil) }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        let code = gnutls_hash(handle, bytes.baseAddress, bytes.count)
        precondition(code == 0, "gnutls_hash: \(code)")
    }

    package func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// The digest of all bytes so far. Restarts the computation.
    package func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: algorithm.length) { buffer, count in
            gnutls_hash_output(handle, buffer.baseAddress)
            count = algorithm.length
        }
    }

    /// The digest of all bytes so far. The computation continues.
    ///
    /// The corresponding C function is `gnutls_hash_copy`.
    package func soFar() -> [UInt8] { copy().finish() }

    /// An independent copy of the computation.
    package func copy() -> Digest {
        guard let copy = gnutls_hash_copy(handle) else { preconditionFailure("gnutls_hash_copy") }
        return Digest(algorithm, adopting: copy)
    }

    /// The digest of `bytes` in one step.
    package static func of(_ bytes: [UInt8], _ algorithm: DigestAlgorithm = .sha256) -> [UInt8] {
        let digest = Digest(algorithm)
        digest.update(bytes)
        return digest.finish()
    }
}

@available(*, unavailable)
extension Digest: Sendable {}

extension DigestAlgorithm {
    fileprivate var identifier: gnutls_digest_algorithm_t {
        switch self {
        case .sha256: GNUTLS_DIG_SHA256
        case .sha512: GNUTLS_DIG_SHA512
        case .md5: GNUTLS_DIG_MD5
        }
    }
}
