package import Formats

/// The algorithm of a digest that a file of a set must have.
package enum SetDigestAlgorithm: String, Word, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
    case md5
    /// SHA-1 of `blob LENGTH\0` and the bytes, Git's name of a file.
    case gitBlobSHA1 = "git-blob-sha1"
}

/// A digest that a file of a set must have, in lower-case hexadecimal.
package struct SetDigest: Shape {
    package var algorithm = SetDigestAlgorithm.sha256
    package var value = ""

    package init() {}

    package init(_ algorithm: SetDigestAlgorithm, _ value: String) {
        self.algorithm = algorithm
        self.value = value
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("algorithm", &algorithm)
        members.member("value", &value)
    }
}

/// A file of a set's version, as the app or the source listed it.
package struct SetFile: Shape {
    /// Relative to the version, with `/` between its parts.
    package var path = ""
    package var request = TransferRequest()
    package var expectedDigest: SetDigest?
    /// The length that the file must have, in bytes.
    package var length: Int64?

    package init() {}

    package init(_ path: String, _ request: TransferRequest, _ expectedDigest: SetDigest? = nil, length: Int64? = nil) {
        self.path = path
        self.request = request
        self.expectedDigest = expectedDigest
        self.length = length
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("path", &path)
        members.member("request", &request)
        members.optional("expectedDigest", &expectedDigest)
        members.optional("length", &length)
    }
}

/// A source that is expanded into the files of a version.
package struct SetSource: Shape {
    package enum Kind: String, Word, CaseIterable {
        case huggingface, checksums, manifest
    }

    package enum RepositoryType: String, Word, CaseIterable {
        case model, dataset, space

        /// The folder of a repository in the cache of huggingface_hub.
        ///
        /// - SeeAlso: `repo_folder_name` of huggingface_hub.
        package func folder(of repository: String) -> String {
            "\(rawValue)s--\(repository.replacing("/", with: "--"))"
        }
    }

    package var kind = Kind.huggingface
    /// `ORG/NAME` of Hugging Face.
    package var repository: String?
    package var type = RepositoryType.model
    package var revision = "main"
    /// Globs of the paths that are fetched; empty for all.
    package var allow: [String] = []
    /// Globs of the paths that are not fetched.
    package var ignore: [String] = []
    package var endpoint: String?
    /// The list of checksums, or the manifest.
    package var url: String?
    /// The URL to which the paths of a list of checksums are relative; that of the list by default.
    package var base: String?
    package var algorithm: SetDigestAlgorithm?

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.optional("repository", &repository)
        members.member("type", &type)
        members.member("revision", &revision)
        members.sparse("allow", &allow, unless: [])
        members.sparse("ignore", &ignore, unless: [])
        members.optional("endpoint", &endpoint)
        members.optional("url", &url)
        members.optional("base", &base)
        members.optional("algorithm", &algorithm)
    }
}
