import Formats
import Wire

/// A Metalink document (RFC 5854) as the creation of one download.
enum Metalink {
    static let mediaType = "application/metalink4+xml"

    private static let namespace = "urn:ietf:params:xml:ns:metalink"

    /// The reason why a document creates no task.
    enum Refused: Error, Hashable {
        case malformed(XMLError)
        /// Well-formed, but not a usable Metalink document.
        case invalid(String)
    }

    /// The document's URLs in the order of their priority, its size, and the strongest supported digests. Other
    /// elements are for people, and are ignored.
    ///
    /// - Throws: ``Refused``, or `JSONError` with pointers into the ``TaskCreation`` that the document describes.
    static func creation(_ bytes: [UInt8]) throws -> TaskCreation {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch { throw Refused.malformed(error) }
        guard root.namespace == namespace, root.name == "metalink" else {
            throw Refused.invalid("The root element must be metalink, of the namespace \(namespace).")
        }
        let files = root.all("file")
        guard let file = files.first, files.count == 1 else {
            throw Refused.invalid("A task is one file; the document has \(files.count).")
        }
        var urls = try file.all("url").map { (priority: try priority(of: $0), url: $0.trimmedText) }
            .filter { $0.url.hasPrefix("http://") || $0.url.hasPrefix("https://") }
        // Stable: URLs of equal priority keep the order of the document.
        urls = urls.enumerated().sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element)
        guard let first = urls.first else { throw Refused.invalid("The file has no URL of http or https.") }
        var creation = TaskCreation.download(TransferRequest(url: first.url))
        var mirrors: [String] = []
        for url in urls.map(\.url) where url != first.url && !mirrors.contains(url) {
            mirrors.append(url)
            if mirrors.count == TaskTerms.mostMirrors { break }
        }
        creation.mirrors = mirrors
        creation.segments = .auto
        creation.expectedDigest = digest(of: file)
        creation.pieces = try pieces(of: file)
        creation.countOfBytesClientExpectsToReceive = try size(of: file)
        return try TaskCreation(parsing: creation.jsonBytes)
    }

    private static func priority(of url: XMLElement) throws -> Int {
        guard let text = url.attributes["priority"] else { return 1_000_000 }
        guard let number = Int(text), (1...999_999).contains(number) else {
            throw Refused.invalid("A priority is a number from 1 to 999999.")
        }
        return number
    }

    private static func size(of file: XMLElement) throws -> Int64? {
        guard let text = file.first("size")?.trimmedText else { return nil }
        guard let size = Int64(text), size >= 0 else { throw Refused.invalid("A size is a number of bytes.") }
        return size
    }

    /// The strongest first, by the names of IANA's registry of hash functions.
    private static let algorithms: [(name: String, ContentDigest.Algorithm)] = [
        ("sha-512", .sha512), ("sha-256", .sha256), ("md5", .md5),
    ]

    private static func digest(of file: XMLElement) -> ContentDigest? {
        let hashes = file.all("hash")
        for (name, algorithm) in algorithms {
            guard let hash = hashes.first(where: { $0.attributes["type"] == name }) else { continue }
            return ContentDigest(algorithm: algorithm, value: hash.trimmedText)
        }
        return nil
    }

    private static func pieces(of file: XMLElement) throws -> Pieces? {
        let all = file.all("pieces")
        for (name, algorithm) in algorithms {
            guard let pieces = all.first(where: { $0.attributes["type"] == name }) else { continue }
            guard let length = pieces.attributes["length"].flatMap({ Int64($0) }) else {
                throw Refused.invalid("Pieces need a length.")
            }
            return Pieces(length: length, algorithm: algorithm, values: pieces.all("hash").map(\.trimmedText))
        }
        return nil
    }
}
