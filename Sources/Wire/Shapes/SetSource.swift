/// A source that the service expands into the files of a version.
public struct SetSource: Shape {
    /// The kind of a source.
    public struct Kind: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// A repository of Hugging Face.
        public static let huggingface: Self = "huggingface"
        /// A list of checksums, such as `SHA256SUMS`.
        public static let checksums: Self = "checksums"
        /// A manifest of this service, or a Metalink document of many files.
        public static let manifest: Self = "manifest"
        public static let known: [Self] = [.huggingface, .checksums, .manifest]
    }

    /// The type of a repository.
    public struct RepositoryType: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The default.
        public static let model: Self = "model"
        public static let dataset: Self = "dataset"
        public static let space: Self = "space"
        public static let known: [Self] = [.model, .dataset, .space]
    }

    public var kind = Kind()
    /// `ORG/NAME` of Hugging Face.
    public var repository: String?
    /// The type of the repository; `nil` for a model.
    public var type: RepositoryType?
    /// A branch, tag or commit of the repository; `nil` for `main`.
    public var revision: String?
    /// Globs of the paths that are fetched; empty for all.
    public var allow: [String] = []
    /// Globs of the paths that are not fetched.
    public var ignore: [String] = []
    /// The server of the repository; `nil` for the public one.
    public var endpoint: String?
    /// The list of checksums, or the manifest.
    public var url: String?
    /// The URL to which the paths of a list of checksums are relative; `nil` for that of the list.
    public var base: String?
    /// The algorithm of a list of checksums; `nil` to derive it from the list.
    public var algorithm: ContentDigest.Algorithm?

    public init() {}

    public static func huggingface(_ repository: String, revision: String? = nil) -> SetSource {
        SetSource {
            $0.kind = .huggingface
            $0.repository = repository
            $0.revision = revision
        }
    }

    public static func checksums(_ url: String) -> SetSource {
        SetSource {
            $0.kind = .checksums
            $0.url = url
        }
    }

    public static func manifest(_ url: String) -> SetSource {
        SetSource {
            $0.kind = .manifest
            $0.url = url
        }
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.given("repository", &repository, .repository)
        members.given("type", &type)
        members.given("revision", &revision, .revision)
        members.sparse("allow", &allow, unless: [], .each(.glob, count: 0...100))
        members.sparse("ignore", &ignore, unless: [], .each(.glob, count: 0...100))
        members.given("endpoint", &endpoint, .url)
        members.given("url", &url, .url)
        members.given("base", &base, .url)
        members.given("algorithm", &algorithm)
    }

    public func check(_ reader: inout ObjectReader) {
        guard kind.isKnown else { return }
        let needed = kind == .huggingface ? "repository" : "url"
        if reader.presence(of: needed) == .absent {
            reader.report(needed, "This member is missing; it must be a string.")
        }
        let own: [Kind: [String]] = [
            .huggingface: ["repository", "type", "revision", "allow", "ignore", "endpoint"],
            .checksums: ["url", "base", "algorithm"], .manifest: ["url"],
        ]
        for name in Set(own.values.joined()).subtracting(own[kind] ?? []).sorted()
        where reader.presence(of: name) != .absent {
            reader.report(name, "A source of the kind \(kind) has no \(name).")
        }
    }
}
