import Formats

/// A repository of Hugging Face, and the documents by which its hub lists the files.
struct HubRepository {
    static let publicEndpoint = "https://huggingface.co"

    private let source: SetSource
    private let endpoint: URLParts
    /// Below ``root``: `ORG/NAME` in its percent-encoding.
    private let name: String

    /// `nil` if the source names no repository, or its endpoint is no URL.
    init?(_ source: SetSource) {
        guard let name = source.repository, let endpoint = URLParts(source.endpoint ?? Self.publicEndpoint) else {
            return nil
        }
        self.source = source
        self.endpoint = endpoint
        self.name = PercentCoding.encode(path: name)
    }

    // MARK: URLs

    /// The endpoint without a slash at its end.
    private var root: String {
        endpoint.site + String(decoding: endpoint.path.utf8.reversed().drop { $0 == 0x2F }.reversed(), as: UTF8.self)
    }

    private var api: String { "\(root)/api/\(source.type.rawValue)s/\(name)" }

    /// The document that has the commit of the revision.
    var revisionURL: String {
        "\(api)/revision/\(PercentCoding.encode(source.revision, keeping: PercentCoding.isUnreserved))"
    }

    /// The first page of a commit's files.
    func treeURL(of commit: String) -> String { "\(api)/tree/\(commit)?recursive=true" }

    private func fileURL(_ path: String, at commit: String) -> String {
        let prefix = source.type == .model ? "" : "\(source.type.rawValue)s/"
        return "\(root)/\(prefix)\(name)/resolve/\(commit)/\(PercentCoding.encode(path: path))"
    }

    // MARK: Documents

    func commit(in document: [UInt8]) throws(SetExpansionError) -> String {
        let commit = try JSON(source: document)["sha"]?.stringValue ?? ""
        // SHA-1, or SHA-256 of Git's newer format.
        guard [40, 64].contains(commit.utf8.count), commit.isHexadecimal else {
            throw SetExpansionError("The hub names no commit of the revision.")
        }
        return commit.asciiLowercased
    }

    /// The files of a page that the source's globs admit.
    func files(in document: [UInt8], at commit: String) throws(SetExpansionError) -> [SetFile] {
        guard let entries = try JSON(source: document).elements else {
            throw SetExpansionError("The hub's list of files is no array.")
        }
        var filter = GlobFilter(source)
        var files: [SetFile] = []
        for (index, entry) in entries.enumerated() where entry["type"]?.stringValue != "directory" {
            let place = "Entry \(index + 1) of the hub's list"
            guard let path = entry["path"]?.stringValue, let (digest, size) = Self.content(of: entry) else {
                throw SetExpansionError("\(place) has no usable path, size and digest.")
            }
            let file = try SetFile(listing: path, at: fileURL(path, at: commit), digest, length: size, as: place)
            if try filter.admits(path) { files.append(file) }
        }
        return files
    }

    /// Of a file in Git LFS the content's SHA-256, else the name of Git's blob.
    private static func content(of entry: JSON) -> (digest: SetDigest, size: Int64)? {
        let stored = entry["lfs"] ?? .null
        let (algorithm, content) = stored.isNull ? (SetDigestAlgorithm.gitBlobSHA1, entry) : (.sha256, stored)
        guard let oid = content["oid"]?.stringValue, let size = content["size"]?.integerValue, size >= 0 else {
            return nil
        }
        let hexadecimal = algorithm == .sha256 && oid.hasPrefix("sha256:") ? String(oid.dropFirst(7)) : oid
        return SetDigest(algorithm, hexadecimal: hexadecimal).map { ($0, size) }
    }

    /// The page after that of a response; `nil` if it is the last one. A page of another origin would receive the
    /// endpoint's credentials, or replace the repository's files.
    func nextPage(_ headers: HTTPFields, from url: String) throws(SetExpansionError) -> String? {
        guard let links = LinkField.parse(headers.values("Link")) else {
            throw SetExpansionError("The hub's Link field is malformed, so its list may not be complete.")
        }
        guard let target = links.first(where: { $0.relations.contains("next") })?.target else { return nil }
        let isPath = target.hasPrefix("/") && !target.hasPrefix("//")
        let next = isPath ? (URLParts(url)?.site ?? "") + target : target
        guard let parts = URLParts(next), parts.origin == endpoint.origin else {
            throw SetExpansionError("The next page of the hub's list has another origin, or no usable URL.")
        }
        return next
    }
}
