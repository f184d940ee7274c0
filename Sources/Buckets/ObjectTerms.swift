import Base
import Core
import Formats

/// What is said about an object when it is written.
package struct ObjectTerms: Sendable {
    /// Under which the object's writer knows it again.
    static let markField = "x-amz-meta-urlsessiond"

    private let mark: String
    private let mediaType: String?
    private let storageClass: String?
    private let metadata: [String: String]

    /// - Parameters:
    ///   - mark: Who writes it.
    ///   - mediaType: Of the content, as its origin said.
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

/// Bytes of a request to a store, with what protects them on their way.
package struct SentBytes: Sendable {
    let bytes: [UInt8]
    private let md5: [UInt8]?
    let payload: SignatureV4.Payload

    /// Reads all bytes.
    ///
    /// - Parameter isWhole: Whether they are an object, whose entity tag tells their MD5, and not a part of one.
    package init(_ bytes: [UInt8], isWhole: Bool) {
        self.bytes = bytes
        md5 = isWhole ? Digest.of(bytes, .md5) : nil
        payload = .sha256(Digest.of(bytes).hexadecimal)
    }

    package var count: Int64 { Int64(bytes.count) }

    /// `Content-MD5`, by which the store refuses other bytes (`BadDigest`).
    var md5Field: String? { md5.map { Base64.encode($0) } }

    /// Whether an entity tag says that the store has these bytes, as it does where nothing is encrypted.
    package func isProven(by tag: String?) -> Bool { md5.map { tag == "\"\($0.hexadecimal)\"" } ?? false }
}
