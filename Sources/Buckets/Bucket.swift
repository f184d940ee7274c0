package import Core
import Formats

/// A bucket of an S3-compatible store, under the name that the operator gave it.
package struct Bucket: Sendable {
    /// How the bucket's name stands in addresses.
    ///
    /// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html
    package enum Style: String, Sendable, CaseIterable {
        /// `https://s3.example/BUCKET/KEY`.
        case path
        /// `https://BUCKET.s3.example/KEY`.
        case virtual
    }

    /// The store's name for it.
    package let name: String
    /// What all keys begin with: empty, or ending with `/`.
    package let prefix: String
    package let region: String
    /// Where the store is: scheme, host and port, without a path.
    package let endpoint: ParsedURL
    package let style: Style

    package init(name: String, prefix: String, region: String, endpoint: ParsedURL, style: Style) {
        self.name = name
        self.prefix = prefix
        self.region = region
        self.endpoint = endpoint
        self.style = style
    }

    /// Where an object is; the bucket itself without a key.
    ///
    /// - Parameters:
    ///   - key: The app's; the prefix stands before it. Its bytes are kept, each that means something in a URL encoded.
    ///   - query: Not encoded yet, in any order.
    package func target(_ key: String? = nil, query: [(name: String, value: String)] = []) -> S3Target {
        let object = key.map { Self.encoded(path: prefix + $0) } ?? ""
        let isPath = style == .path
        let path = isPath ? "/\(Self.encoded(name))" + (key == nil ? "" : "/\(object)") : "/\(object)"
        let host = isPath ? endpoint.host : "\(name).\(endpoint.host)"
        let pairs = query.map { (Self.encoded($0.name), Self.encoded($0.value)) }.sorted { $0 < $1 }
        return S3Target(
            isSecure: endpoint.isSecure, host: host, port: endpoint.port, path: path,
            query: pairs.map { "\($0)=\($1)" }.joined(separator: "&"))
    }

    /// What the store calls a key, without the prefix; nil for one outside of it.
    func key(of whole: String) -> String? {
        let (whole, prefix) = (whole.utf8, prefix.utf8)
        return whole.starts(with: prefix) ? String(whole.dropFirst(prefix.count)) : nil
    }

    package func target(_ object: ObjectReference) -> S3Target {
        target(object.key, query: object.versionId.map { [("versionId", $0)] } ?? [])
    }

    private static func encoded(path: String) -> String {
        PercentCoding.encode(path) { PercentCoding.isUnreserved($0) || $0 == UInt8(ascii: "/") }
    }

    static func encoded(_ text: String) -> String { PercentCoding.encode(text, keeping: PercentCoding.isUnreserved) }
}

/// What a request to a store asks for: encoded as it is signed and as it travels, which have to be the same bytes.
package struct S3Target: Hashable, Sendable {
    package let isSecure: Bool
    package let host: String
    package let port: UInt16
    /// Encoded.
    package let path: String
    /// Encoded, in the order of the names; empty without.
    package let query: String

    /// As the `Host` field has it: without a port that is the scheme's own (RFC 9110 section 7.2).
    package var hostField: String {
        let host = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
    }

    package var url: ParsedURL {
        let text = "\(isSecure ? "https" : "http")://\(hostField)\(path)" + (query.isEmpty ? "" : "?\(query)")
        return ParsedURL(text: text, isSecure: isSecure, host: host, port: port)
    }

    /// The same with one more pair of names and values.
    func adding(_ pairs: [(name: String, value: String)]) -> S3Target {
        let new = pairs.map { "\(Bucket.encoded($0.name))=\(Bucket.encoded($0.value))" }
        let all = query.split(separator: "&").map(String.init) + new
        // By the name, then by the value: "=" sorts behind what a name may hold of digits, before its letters.
        let split = all.map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        }
        let sorted = split.sorted { ($0[0], $0[1]) < ($1[0], $1[1]) }
        return S3Target(
            isSecure: isSecure, host: host, port: port, path: path,
            query: sorted.map { "\($0[0])=\($0[1])" }.joined(separator: "&"))
    }
}
