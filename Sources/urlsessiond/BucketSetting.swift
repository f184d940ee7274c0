import Base
import Buckets
import Core
import Glibc
import Service
import Store
import TransferEngine
import Transfers

/// The setting `--bucket NAME=s3://BUCKET/PREFIX?region=&endpoint=`.
struct BucketSetting {
    /// The text as given, without parts that may be secret.
    let text: String
    let bucket: Bucket
    /// Whether the credentials are those of the machine's role.
    let usesInstance: Bool

    /// The place of the bucket's objects. Nodes may use different endpoints for the same bucket.
    var place: String { "s3://\(bucket.name)/\(bucket.prefix)" }

    static func all(_ values: inout SettingValues) -> [String: BucketSetting] {
        var buckets: [String: BucketSetting] = [:]
        for text in values.list("bucket") {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, buckets[parts[0]] == nil else {
                values.fault(
                    "bucket",
                    "\(publicText(text)) is not NAME=s3://BUCKET/PREFIX?region=&endpoint= with a name of its own")
                continue
            }
            do throws(Refusal) {
                buckets[parts[0]] = try BucketSetting(parts[1])
            } catch {
                values.fault("bucket", "\(publicText(text)): \(error.detail)")
            }
        }
        return buckets
    }

    /// The setting `--contents s3://BUCKET/PREFIX?region=&endpoint=`.
    static func contents(_ values: inout SettingValues) -> BucketSetting? {
        guard let text = values.text("contents") else { return nil }
        do throws(Refusal) {
            return try BucketSetting(text)
        } catch {
            values.fault("contents", "\(publicText(text)): \(error.detail)")
            return nil
        }
    }

    private struct Refusal: Error { var detail: String }

    private init(_ text: String) throws(Refusal) {
        self.text = Self.publicText(text)
        guard text.hasPrefix("s3://") else { throw Refusal(detail: "begins with s3://") }
        let parts = text.dropFirst(5).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let (name, prefix) = (path[0], path.count > 1 ? path[1] : "")
        guard Self.isName(name) else {
            throw Refusal(detail: "a bucket's name has 3 to 63 of a-z, 0-9, - and .")
        }
        var options: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let option = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard option.count == 2, Self.options.contains(option[0]) else {
                throw Refusal(
                    detail: "\(Self.publicText(option: pair)) is none of region=, endpoint=, style= and credentials=")
            }
            options[option[0]] = option[1]
        }
        let region = options["region"].flatMap { $0.isEmpty ? nil : $0 } ?? "us-east-1"
        let ownEndpoint = options["endpoint"].flatMap { $0.isEmpty ? nil : $0 }
        guard let endpoint = try? ParsedURL(ownEndpoint ?? "https://s3.\(region).amazonaws.com"),
            endpoint.text.utf8.filter({ $0 == UInt8(ascii: "/") }).count == 3, endpoint.text.hasSuffix("/")
        else { throw Refusal(detail: "endpoint= is SCHEME://HOST[:PORT] without a path") }
        guard let style = Bucket.Style(rawValue: options["style"] ?? (ownEndpoint == nil ? "virtual" : "path")) else {
            throw Refusal(detail: "style= is path or virtual")
        }
        guard ["instance", nil].contains(options["credentials"]) else {
            throw Refusal(detail: "credentials= is instance, or left out")
        }
        usesInstance = options["credentials"] == "instance"
        bucket = Bucket(
            name: name, prefix: prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/", region: region,
            endpoint: endpoint, style: style)
    }

    private static let options = ["region", "endpoint", "style", "credentials"]
    private static let redacted = "(redacted)"

    /// A URL without possible secrets: user information and unknown options are removed.
    private static func publicText(_ text: String) -> String {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts.dropFirst().map { query in
            query.split(separator: "&", omittingEmptySubsequences: false).map(publicText(option:)).joined(
                separator: "&")
        }
        return ([withoutUser(parts[0])] + query).joined(separator: "?")
    }

    private static func publicText(option: Substring) -> String {
        let sides = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard sides.count == 2 else { return redacted }
        let isShown = sides[0] == "credentials" ? sides[1] == "instance" : options.contains(String(sides[0]))
        return "\(sides[0])=\(isShown ? withoutUser(sides[1]) : redacted)"
    }

    private static func withoutUser(_ url: Substring) -> String {
        guard let start = url.firstRange(of: "//")?.upperBound else { return String(url) }
        let authority = url[start...].prefix { $0 != "/" }
        guard let end = authority.lastIndex(of: "@") else { return String(url) }
        return url[..<start] + redacted + url[end...]
    }

    private static func isName(_ text: String) -> Bool {
        (3...63).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x2E
            }
    }
}

struct ConfiguredBuckets: Sendable {
    private let sources: [String: CredentialsSource]
    private let clients: [String: BucketClient]
    private let exchanges: Exchanges?

    /// - Throws: ``Serve/Failure`` if a bucket has no credentials.
    init(
        _ configuration: Configuration, own: EgressPolicy, clock: Clock, log: Log, metrics: Metrics
    ) throws {
        let settings = configuration.allBuckets
        guard !settings.isEmpty else {
            (sources, clients, exchanges) = ([:], [:], nil)
            return
        }
        let exchanges = try Exchanges(threads: configuration.transferThreads, log: log)
        self.exchanges = exchanges
        let found = try Self.credentials(configuration)
        guard let metadata = try? ParsedURL(configuration.metadataEndpoint) else {
            throw Serve.Failure(text: "AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL")
        }
        let instance = InstanceCredentials(endpoint: metadata, exchanges: exchanges, clock: clock)
        sources = settings.reduce(into: [:]) { sources, entry in
            sources[entry.key] = found[entry.key].map { CredentialsSource($0) } ?? CredentialsSource(instance)
        }
        // The operator chooses the store's address. Metadata addresses and this service stay excluded.
        var egress = own
        egress.allowed = [CIDR(.v4(0), 0), CIDR(.v6(0), 0)]
        let meters = BucketMeters(metrics, names: settings.keys.sorted())
        var clients: [String: BucketClient] = [:]
        for (name, source) in sources {
            clients[name] = settings[name].map {
                BucketClient(
                    $0.bucket, credentials: source, exchanges: exchanges, egress: egress, clock: clock,
                    meters: (meters, name))
            }
        }
        self.clients = clients
    }

    var isEmpty: Bool { clients.isEmpty }

    /// The clients of buckets that apps may name.
    var named: [String: BucketClient] { clients.filter { $0.key != Store.Files.contentsBucket } }

    /// - Parameter masterKey: The same for all nodes of a service.
    func contents(_ masterKey: [UInt8], clock: Clock, log: Log) -> ContentsBucket? {
        let folder = HMAC.sha256(key: masterKey, message: Array("contents".utf8)).prefix(8)
        return clients[Store.Files.contentsBucket].map {
            ContentsBucket($0, folder: Array(folder).hexadecimal, clock: clock, log: log)
        }
    }

    func renew(_ configuration: Configuration) throws(Serve.Failure) {
        for (name, credentials) in try Self.credentials(configuration) { sources[name]?.renew(credentials) }
    }

    func shutdown() async { await exchanges?.shutdown() }

    /// The credentials of all buckets, except those with the machine's role.
    private static func credentials(
        _ configuration: Configuration
    ) throws(Serve.Failure) -> [String: BucketCredentials] {
        var file: [UInt8]?
        if let path = configuration.bucketCredentials {
            guard let bytes = LocalFile.read(path) else {
                throw Serve.Failure(text: "\(path): cannot be read: \(String(cString: strerror(errno)))")
            }
            file = bytes
        }
        var found: [String: BucketCredentials] = [:]
        for (name, setting) in configuration.allBuckets where !setting.usesInstance {
            let own = file.flatMap { BucketCredentials(profile: name, ofFile: $0) }
            guard let credentials = own ?? configuration.environmentCredentials else {
                throw Serve.Failure(
                    text:
                        "bucket \(name) has no credentials: give it a profile [\(name)] in --bucket-credentials FILE, "
                        + "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add credentials=instance to its URL")
            }
            found[name] = credentials
        }
        return found
    }
}
