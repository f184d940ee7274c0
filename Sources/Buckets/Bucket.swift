package import Core
import Formats

/// A bucket of an S3-compatible store, under the operator's name for it.
package struct Bucket: Sendable {
    /// The position of the bucket's name in addresses.
    ///
    /// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html
    package enum Style: String, Sendable, CaseIterable {
        /// `https://s3.example/BUCKET/KEY`.
        case path
        /// `https://BUCKET.s3.example/KEY`.
        case virtual
    }

    /// The store's name for the bucket.
    package let name: String
    /// The prefix of all keys: empty, or ending with `/`.
    package let prefix: String
    package let region: String
    /// The store's address: scheme, host and port, without a path.
    package let endpoint: ParsedURL
    package let style: Style

    package init(name: String, prefix: String, region: String, endpoint: ParsedURL, style: Style) {
        self.name = name
        self.prefix = prefix
        self.region = region
        self.endpoint = endpoint
        self.style = style
    }

    /// The target of an object, or of the bucket itself without a key.
    ///
    /// - Parameters:
    ///   - key: The app's key, which the prefix precedes. Bytes with a meaning in URLs are encoded.
    ///   - query: Not encoded yet, in any order.
    package func target(_ key: String? = nil, query: [(name: String, value: String)] = []) -> S3Target {
        let object = key.map { PercentCoding.encode(path: prefix + $0) } ?? ""
        let isPath = style == .path
        let path = isPath ? "/\(Self.encoded(name))" + (key == nil ? "" : "/\(object)") : "/\(object)"
        let host = isPath ? endpoint.host : "\(name).\(endpoint.host)"
        let pairs = query.map { (Self.encoded($0.name), Self.encoded($0.value)) }.sorted { $0 < $1 }
        return S3Target(
            isSecure: endpoint.isSecure, host: host, port: endpoint.port, path: path,
            query: pairs.map { "\($0)=\($1)" }.joined(separator: "&"))
    }

    /// The key without the prefix; `nil` for a key outside of the prefix.
    func key(of whole: String) -> String? {
        let (whole, prefix) = (whole.utf8, prefix.utf8)
        return whole.starts(with: prefix) ? String(whole.dropFirst(prefix.count)) : nil
    }

    package func target(_ object: ObjectReference) -> S3Target {
        target(object.key, query: object.versionId.map { [("versionId", $0)] } ?? [])
    }

    /// Whether a store has both buckets, so that it may copy from one to the other.
    package func isBeside(_ other: Bucket) -> Bool {
        (endpoint.host, endpoint.port, region) == (other.endpoint.host, other.endpoint.port, other.region)
    }

    /// The value of `x-amz-copy-source` for an object.
    func copySource(_ key: String) -> String { "/\(Self.encoded(name))/\(PercentCoding.encode(path: prefix + key))" }

    static func encoded(_ text: String) -> String { PercentCoding.encode(text, keeping: PercentCoding.isUnreserved) }
}

/// The target of a request to a store, encoded once, because the signed bytes and the sent bytes must be equal.
package struct S3Target: Hashable, Sendable {
    package let isSecure: Bool
    package let host: String
    package let port: UInt16
    /// Encoded.
    package let path: String
    /// Encoded, in the order of the names; empty without a query.
    package let query: String

    /// The value of the `Host` field, without the scheme's default port (RFC 9110 section 7.2).
    package var hostField: String {
        let host = host.bracketed
        return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
    }

    package var url: ParsedURL {
        let text = "\(isSecure ? "https" : "http")://\(hostField)\(path)" + (query.isEmpty ? "" : "?\(query)")
        return ParsedURL(text: text, isSecure: isSecure, host: host, port: port)
    }

    /// The same target with further query parameters.
    func adding(_ pairs: [(name: String, value: String)]) -> S3Target {
        let new = pairs.map { "\(Bucket.encoded($0.name))=\(Bucket.encoded($0.value))" }
        let all = query.split(separator: "&").map(String.init) + new
        // Sorted by name, then by value, not as text: "=" sorts after the digits of a name and before its letters.
        let split = all.map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        }
        let sorted = split.sorted { ($0[0], $0[1]) < ($1[0], $1[1]) }
        return S3Target(
            isSecure: isSecure, host: host, port: port, path: path,
            query: sorted.map { "\($0[0])=\($0[1])" }.joined(separator: "&"))
    }
}
