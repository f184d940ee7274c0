import Core
import Formats
import Wire
import WireMapping

/// A Metalink document (RFC 5854) as the creation of one download.
enum Metalink {
    static let mediaType = "application/metalink4+xml"

    /// The reason why a document creates no task.
    typealias Refused = MetalinkFile.Refused

    /// The document's URLs in the order of their priority, its size, and the strongest supported digests.
    ///
    /// - Throws: ``Refused``, or `JSONError` with pointers into the ``TaskCreation`` that the document describes.
    static func creation(_ bytes: [UInt8]) throws -> TaskCreation {
        let elements = try MetalinkFile.elements(of: bytes)
        guard let element = elements.first, elements.count == 1 else {
            throw Refused.invalid("A task is one file; the document has \(elements.count).")
        }
        let file = try MetalinkFile(element)
        var creation = TaskCreation.download(Wire.TransferRequest(url: file.url))
        var mirrors: [String] = []
        for url in file.otherURLs where url != file.url && !mirrors.contains(url) {
            mirrors.append(url)
            if mirrors.count == TaskTerms.mostMirrors { break }
        }
        creation.mirrors = mirrors
        creation.segments = .auto
        creation.expectedDigest = file.digest.map { Wire.ContentDigest($0) }
        creation.pieces = file.pieces.map { Pieces($0) }
        creation.countOfBytesClientExpectsToReceive = file.size
        return try TaskCreation(parsing: creation.jsonBytes)
    }
}
