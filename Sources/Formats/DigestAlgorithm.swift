/// The supported digests, with their names in header fields (RFC 9530) and in the API.
package enum DigestAlgorithm: String, Word, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
    case md5

    /// The length of a digest in bytes.
    package var length: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        case .md5: 16
        }
    }
}
