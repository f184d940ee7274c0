import Base
import Core
import Formats

/// The properties with which an object is written.
package struct ObjectTerms: Sendable {
    /// The metadata field by which the object's writer recognizes it.
    static let markField = "x-amz-meta-urlsessiond"

    private let mark: String
    private let mediaType: String?
    private let storageClass: String?
    private let metadata: [String: String]

    /// - Parameters:
    ///   - mark: Identifies the writer.
    ///   - mediaType: The content's type according to its origin.
    package init(
        mark: String, mediaType: String? = nil, storageClass: String? = nil, metadata: [String: String] = [:]
    ) {
        self.mark = mark
        self.mediaType = mediaType
        self.storageClass = storageClass
        self.metadata = metadata
    }

    var fields: HTTPFields {
        var fields = HTTPFields()
        if let mediaType { fields.append("Content-Type", mediaType) }
        fields.append(Self.markField, mark)
        if let storageClass { fields.append("x-amz-storage-class", storageClass) }
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
            fields.append("x-amz-meta-\(name.asciiLowercased)", value)
        }
        return fields
    }
}

/// Bytes of a request to a store, with their checksums.
package struct SentBytes: Sendable {
    let bytes: [UInt8]
    private let md5: [UInt8]?
    let payload: SignatureV4.Payload

    /// Digests all bytes.
    ///
    /// - Parameter isWhole: Whether they are a whole object, whose entity tag contains their MD5, and not a part.
    package init(_ bytes: [UInt8], isWhole: Bool) {
        self.bytes = bytes
        md5 = isWhole ? Digest.of(bytes, .md5) : nil
        payload = .sha256(Digest.of(bytes).hexadecimal)
    }

    package var count: Int64 { Int64(bytes.count) }

    /// `Content-MD5`, with which the store rejects damaged bytes (`BadDigest`).
    var md5Field: String? { md5.map { Base64.encode($0) } }

    /// Whether the entity tag proves that the store has these bytes, which it cannot for encrypted objects.
    package func isProven(by tag: String?) -> Bool { md5.map { tag == "\"\($0.hexadecimal)\"" } ?? false }
}
