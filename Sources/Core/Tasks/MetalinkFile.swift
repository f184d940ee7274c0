package import Formats

/// A file of a Metalink document (RFC 5854).
package struct MetalinkFile: Hashable, Sendable {
    /// The reason why a document is not used.
    package enum Refused: Error, Hashable {
        case malformed(XMLError)
        /// Well-formed, but not a usable Metalink document.
        case invalid(String)

        /// A sentence for people.
        package var detail: String {
            switch self {
            case .malformed(let error):
                "The Metalink document is not well-formed at byte \(error.offset): \(error.detail)"
            case .invalid(let detail): detail
            }
        }
    }

    private static let namespace = "urn:ietf:params:xml:ns:metalink"

    package let name: String?
    /// The http or https URL of the highest priority.
    package let url: String
    /// The other http and https URLs in the order of their priority.
    package let otherURLs: [String]
    /// The length in bytes.
    package let size: Int64?
    /// The strongest supported digest, as the document has it.
    package let digest: ContentDigest?
    /// The strongest supported digests of pieces, as the document has them.
    package let pieces: PieceDigests?

    /// The elements of a document's files.
    package static func elements(of bytes: [UInt8]) throws(Refused) -> [XMLElement] {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch { throw .malformed(error) }
        guard root.namespace == namespace, root.name == "metalink" else {
            throw .invalid("The root element must be metalink, of the namespace \(namespace).")
        }
        return root.all("file")
    }

    /// Reads an element. Elements for people are ignored.
    package init(_ file: XMLElement) throws(Refused) {
        var urls: [(priority: Int, url: String)] = []
        for element in file.all("url") {
            let priority = try Self.priority(of: element)
            let url = element.trimmedText
            if url.hasPrefix("http://") || url.hasPrefix("https://") { urls.append((priority, url)) }
        }
        // Stable: URLs of equal priority keep the order of the document.
        urls = urls.enumerated().sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element)
        guard let first = urls.first else { throw .invalid("The file has no URL of http or https.") }
        name = file.attributes["name"]
        url = first.url
        otherURLs = urls.dropFirst().map(\.url)
        digest = Self.digest(of: file)
        pieces = try Self.pieces(of: file)
        size = try Self.size(of: file)
    }

    private static func priority(of url: XMLElement) throws(Refused) -> Int {
        guard let text = url.attributes["priority"] else { return 1_000_000 }
        guard let number = Int(text), (1...999_999).contains(number) else {
            throw .invalid("A priority is a number from 1 to 999999.")
        }
        return number
    }

    private static func size(of file: XMLElement) throws(Refused) -> Int64? {
        guard let text = file.first("size")?.trimmedText else { return nil }
        guard let size = Int64(text), size >= 0 else { throw .invalid("A size is a number of bytes.") }
        return size
    }

    /// The strongest first. Their names are those of IANA's registry of hash functions.
    private static let algorithms: [DigestAlgorithm] = [.sha512, .sha256, .md5]

    private static func digest(of file: XMLElement) -> ContentDigest? {
        let hashes = file.all("hash")
        for algorithm in algorithms {
            guard let hash = hashes.first(where: { $0.attributes["type"] == algorithm.rawValue }) else { continue }
            return ContentDigest(algorithm: algorithm, value: hash.trimmedText)
        }
        return nil
    }

    private static func pieces(of file: XMLElement) throws(Refused) -> PieceDigests? {
        let all = file.all("pieces")
        for algorithm in algorithms {
            guard let pieces = all.first(where: { $0.attributes["type"] == algorithm.rawValue }) else { continue }
            guard let length = pieces.attributes["length"].flatMap({ Int64($0) }) else {
                throw .invalid("Pieces need a length.")
            }
            return PieceDigests(length: length, algorithm: algorithm, values: pieces.all("hash").map(\.trimmedText))
        }
        return nil
    }
}
