import Base
import Core
import Formats

/// A repository of a hub, whose branch moves.
final class Hub {
    let source: SetSource
    /// The files of each commit.
    private(set) var commits: [String: [String: Resource]] = [:]

    /// The folder of the repository in the cache of huggingface_hub.
    static let folder = "models--org--model"

    private static let repository = "org/model"
    private static let filesOfPage = 3

    init(_ number: Int, _ origins: Origins) {
        let root = "/hub\(number)"
        var source = SetSource()
        source.repository = Self.repository
        source.endpoint = "http://o1.test\(root)"
        self.source = source
        var files: [String: Resource] = [:]
        for index in 0..<(1 + Dice.extras.below(6)) { files["f\(index)"] = origins.shareResource() }
        var names: [String] = []
        for step in 0..<3 {
            if step > 0 { files["f\(Dice.extras.below(files.count))"] = origins.makeResource() }
            let commit = Digest.of(Array("\(number) \(step)".utf8)).hexadecimal
            names.append(commit)
            commits[commit] = files
            Self.publish(files, of: commit, below: root, origins)
        }
        let branch = origins.makeList { [names] version in
            version % 7 == 6 ? Array("{".utf8) : Array("{\"sha\": \"\(names[(version - 1) % names.count])\"}".utf8)
        }
        origins.name(branch, "\(root)/api/models/\(Self.repository)/revision/main")
    }

    private static func publish(
        _ files: [String: Resource], of commit: String, below root: String, _ origins: Origins
    ) {
        let tree = "\(root)/api/models/\(repository)/tree/\(commit)?recursive=true"
        let paths = files.keys.sorted()
        for start in stride(from: 0, to: paths.count, by: filesOfPage) {
            let (page, next) = (paths[start...].prefix(filesOfPage), start + filesOfPage)
            let list = origins.makeList(nextPage: next < paths.count ? "\(tree)&cursor=\(next)" : nil) { _ in
                Array("[\(page.map { entry($0, files[$0]) }.joined(separator: ", "))]".utf8)
            }
            origins.name(list, start == 0 ? tree : "\(tree)&cursor=\(start)")
        }
        for (path, resource) in files { origins.name(resource, "\(root)/\(repository)/resolve/\(commit)/\(path)") }
    }

    /// Every other file is in Git LFS.
    private static func entry(_ path: String, _ resource: Resource?) -> String {
        guard let resource else { return "" }
        let (blob, length) = (Listing.blob(of: resource), Listing.length(of: resource))
        let sha256 = Listing.sha256(of: resource)
        let stored = resource.number % 2 == 0 ? ", \"lfs\": {\"oid\": \"\(sha256)\", \"size\": \(length)}" : ""
        return "{\"type\": \"file\", \"path\": \"\(path)\", \"oid\": \"\(blob)\", \"size\": \(length)\(stored)}"
    }
}

/// Lists of files that origins serve, and the digests that lists and clients tell of files.
enum Listing {
    private static func present(_ resource: Resource) -> [UInt8] {
        resource.bytes(Resource.Representation(version: resource.version))
    }

    static func length(of resource: Resource) -> Int { present(resource).count }

    static func sha256(of resource: Resource) -> String {
        resource.digest(Resource.Representation(version: resource.version)).hexadecimal
    }

    /// The name of Git's blob.
    static func blob(of resource: Resource) -> String {
        let bytes = present(resource)
        var digest = GitBlobDigest(length: Int64(bytes.count))
        digest.update(bytes)
        return digest.finish().hexadecimal
    }

    /// A digest that a client or a list tells of a file, if any.
    static func drawnDigest(for resource: Resource) -> SetDigest? {
        switch Dice.extras.below(4) {
        case 0: SetDigest(.sha256, sha256(of: resource))
        case 1: SetDigest(.gitBlobSHA1, blob(of: resource))
        default: nil
        }
    }

    /// A list of checksums beside its files. Some of its later versions are malformed.
    static func checksums(_ files: [String: Resource], _ origins: Origins) -> SetSource {
        let list = origins.makeList { version in
            guard version % 4 != 2 else { return Array("no checksum  f0\n".utf8) }
            return files.sorted { $0.key < $1.key }.flatMap { path, resource in
                Array("\(sha256(of: resource))  \(path)\n".utf8)
            }
        }
        let folder = "/sums\(list.number)"
        origins.name(list, "\(folder)/SHA256SUMS")
        for (path, resource) in files { origins.name(resource, "\(folder)/\(path)") }
        var source = SetSource()
        (source.kind, source.url) = (.checksums, "http://o\(list.origin).test\(folder)/SHA256SUMS")
        return source
    }

    /// A manifest of files. Some of its later versions are malformed, or list nothing.
    static func manifest(_ files: [String: Resource], _ origins: Origins) -> SetSource {
        let entries = files.sorted { $0.key < $1.key }.map { path, resource in
            let digest = drawnDigest(for: resource).map {
                ", \"digest\": {\"algorithm\": \"\($0.algorithm.rawValue)\", \"value\": \"\($0.value)\"}"
            }
            return "{\"path\": \"\(path)\", \"url\": \"\(resource.url)\"\(digest ?? "")}"
        }
        let list = origins.makeList { version in
            switch version % 4 {
            case 2: Array("{\"files\": [".utf8)
            case 3: Array("{\"files\": []}".utf8)
            default: Array("{\"files\": [\(entries.joined(separator: ", "))]}".utf8)
            }
        }
        var source = SetSource()
        (source.kind, source.url) = (.manifest, list.url)
        return source
    }
}
