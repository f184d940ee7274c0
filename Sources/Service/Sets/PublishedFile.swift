import Base
import Buckets
import Core
import Files
import Formats
import Transfers

/// A file of a version that is being published.
struct PublishedFile: Sendable {
    /// Relative to the version, with `/` between its parts.
    var path: String
    var length: Int64
    /// Of the content.
    var digest: ContentDigest
    /// The name of the bytes in the cache of huggingface_hub: the listed SHA-256 or Git's SHA-1.
    var blobName: String
    var storage: BodyLocation.Storage
    /// The key of an object of another version that had the same digest, as ``SetPrefix/key(_:of:)`` makes it.
    var earlier: String?
}

/// The places from which the bytes of contents are read.
struct PublishedSources: Sendable {
    let folder: DataFolder
    /// The bucket of contents, if the service has one.
    let contents: BucketClient?

    /// The length of the pieces in which long files are read.
    static let pieceLength = PartPlan.usual

    /// - Throws: ``SystemError``, ``BucketFault``.
    func read(_ file: PublishedFile, _ range: Range<Int64>) async throws -> [UInt8] {
        let bytes: [UInt8]
        switch file.storage {
        case .bytes(let all): bytes = Array(all.dropFirst(Int(range.lowerBound)).prefix(range.count))
        case .file(let path): bytes = try await folder.disk.read(folder.open(path), range)
        case .objects(let objects):
            guard let contents else { throw BucketFault.unexpected("The service has no bucket of contents.") }
            bytes = try await objects.bytes(range, contents)
        }
        guard bytes.count == range.count else { throw BucketFault.wrongBytes(file) }
        return bytes
    }
}

extension BucketFault {
    static func wrongBytes(_ file: PublishedFile) -> BucketFault {
        .wrongObject("The stored bytes of \(file.path) have another length or digest.")
    }
}

/// The name of a version as a part of a path or key. Usual names stay as they are; a name that begins with a dot does
/// not, so that the service can use such names itself.
func pathPart(ofVersion name: String) -> String {
    let text = PercentCoding.encode(name) { PercentCoding.isUnreserved($0) || ":@+".utf8.contains($0) }
    return text.hasPrefix(".") ? "%2E" + text.dropFirst() : text
}
