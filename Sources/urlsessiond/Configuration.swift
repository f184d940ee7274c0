import Base
import Buckets
import Core
import Glibc
import SQL
import Store
import TransferEngine

/// The settings of `urlsessiond serve`, checked as a whole.
struct Configuration {
    struct Address: Equatable {
        var host: String
        var port: UInt16

        var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    var listen: Address
    var dataFolder: String
    /// The server of the database; nil for a file in the data folder.
    var server: PostgreSQLServer?
    /// The roles of this node, if several share the store.
    var roles: Set<NodeRole>
    var adminKeyFile: String
    var masterKeyFile: String
    var acceptsNewMasterKey: Bool
    var isDevelopment: Bool
    var publicURL: String?
    var transferThreads: Int
    var maximumTransfers: Int
    var maximumTransfersPerHost: Int
    var allowedEgress: [CIDR]
    var allowsHTTPWebhooks: Bool
    var filesRoots: [String: String]
    var buckets: [String: BucketSetting]
    /// The bucket for contents and bodies; nil for the data folder.
    var contents: BucketSetting?
    var bucketCredentials: String?
    /// The credentials in the environment variables of AWS tools, used if there is no file.
    var environmentCredentials: BucketCredentials?
    var metadataEndpoint: String
    var contentRetention: Duration
    var unacknowledgedRetention: Duration
    var webhookTimeout: Duration
    var cacheCapacity: Int64
    var freeDiskFloor: Int64
    var rateLimit: Int?
    var metricsListen: Address?
    var corsOrigins: [String]
    var servesPage: Bool
    var tlsCertificate: String?
    var tlsKey: String?
    var shutdownTimeout: Duration
    var logFormat: Log.Format
    var logLevel: Log.Level

    /// All faults of the settings, one per line.
    struct Faults: Error {
        var lines: [String]
    }

    static let standardListen = Address(host: "127.0.0.1", port: 8080)

    /// Ranges that `--dev` adds, for a developer's origins and receivers.
    private static let developmentEgress = [
        "127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
    ]

    init(arguments: [String], environment: [String: String]) throws(Faults) {
        var values = SettingValues(arguments: arguments, environment: environment)
        isDevelopment = values.flag("dev")
        listen = Self.address("listen", &values) ?? Self.standardListen
        let folder = LocalFile.absolute(values.text("data-dir") ?? "urlsessiond-data")
        dataFolder = folder
        server = Self.server(&values)
        roles = Self.roles(&values)
        adminKeyFile = values.text("admin-key-file") ?? "\(folder)/admin.key"
        masterKeyFile = values.text("master-key-file") ?? "\(folder)/master.key"
        acceptsNewMasterKey = values.flag("new-master-key")
        publicURL = values.text("public-url")
        transferThreads = values.number("transfer-threads") ?? SystemLoad.cores
        maximumTransfers = values.number("max-transfers") ?? 256
        maximumTransfersPerHost = values.number("max-transfers-per-host") ?? 32
        allowsHTTPWebhooks = values.flag("allow-http-webhooks") || isDevelopment
        contentRetention = values.duration("content-retention") ?? .seconds(24 * 3600)
        unacknowledgedRetention = values.duration("unacknowledged-retention") ?? .seconds(30 * 24 * 3600)
        webhookTimeout = values.duration("webhook-timeout") ?? .seconds(15)
        cacheCapacity = values.bytes("cache-capacity") ?? 10 << 30
        freeDiskFloor = values.bytes("free-disk-floor") ?? 1 << 30
        rateLimit = values.number("rate-limit")
        metricsListen = Self.address("metrics-listen", &values)
        corsOrigins = Self.origins(&values)
        servesPage = !values.flag("no-page")
        tlsCertificate = values.text("tls-certificate")
        tlsKey = values.text("tls-key")
        shutdownTimeout = values.duration("shutdown-timeout") ?? .seconds(8)
        logFormat =
            values.text("log-format").flatMap(Log.Format.init(rawValue:))
            ?? (isatty(STDERR_FILENO) == 1 ? .text : .json)
        logLevel = values.text("log-level").flatMap(Log.Level.init(name:)) ?? .info
        allowedEgress = Self.egress(isDevelopment, &values)
        filesRoots = Self.roots(&values)
        buckets = BucketSetting.all(&values)
        contents = BucketSetting.contents(&values)
        if contents != nil, buckets[Store.Files.contentsBucket] != nil {
            values.fault("bucket", "the name \(Store.Files.contentsBucket) is reserved with --contents")
        }
        bucketCredentials = values.text("bucket-credentials").map(LocalFile.absolute)
        environmentCredentials = BucketCredentials(environment: environment)
        metadataEndpoint = environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] ?? InstanceCredentials.standardEndpoint
        Self.checkTogether(listen: listen, isDevelopment: isDevelopment, &values)
        guard values.faults.isEmpty else { throw Faults(lines: values.faults) }
    }

    private static func server(_ values: inout SettingValues) -> PostgreSQLServer? {
        guard let text = values.text("store") else { return nil }
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
            values.fault("store", "is postgresql://USER@HOST[,HOST]/DATABASE; without it the database is in --data-dir")
            return nil
        }
        let server = PostgreSQLServer(text, keepsStatements: !values.flag("store-pooled"))
        do throws(SQLError) {
            // A message of libpq may repeat the password.
            if try server.fault != nil { values.fault("store", "is not a connection URI of libpq") }
        } catch {
            values.fault("store", error.message)
        }
        return server
    }

    private static func roles(_ values: inout SettingValues) -> Set<NodeRole> {
        let names = values.list("roles")
        let roles = Set(names.compactMap(NodeRole.init))
        if roles.count < Set(names).count { values.fault("roles", "is some of api, transfer and launch") }
        let isAlone = values.text("store") == nil
        if !names.isEmpty, roles.count < NodeRole.allCases.count, isAlone {
            values.fault("roles", "require --store: without it there is one node with all roles")
        }
        return names.isEmpty ? Set(NodeRole.allCases) : roles
    }

    static func address(_ name: String, _ values: inout SettingValues) -> Address? {
        guard let text = values.text(name) else { return nil }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            values.fault(name, "is ADDR:PORT, such as 127.0.0.1:8080 or [::1]:8080")
            return nil
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host == "localhost" { host = "127.0.0.1" }
        guard IPAddress(host) != nil else {
            values.fault(name, "\(host) is not an IP address")
            return nil
        }
        return Address(host: host, port: port)
    }

    private static func egress(_ isDevelopment: Bool, _ values: inout SettingValues) -> [CIDR] {
        var ranges: [CIDR] = []
        for text in values.list("allow-egress") + (isDevelopment ? developmentEgress : []) {
            if let range = CIDR(text) {
                ranges.append(range)
            } else {
                values.fault("allow-egress", "\(text) is not a range such as 10.0.0.0/8")
            }
        }
        return ranges
    }

    /// Origins as browsers write them (RFC 6454 section 6.2), or `*` for all: any other text would match no browser.
    private static func origins(_ values: inout SettingValues) -> [String] {
        let origins = values.list("cors-origin")
        for origin in origins where origin != "*" && !isOrigin(origin) {
            values.fault("cors-origin", "\(origin) is not SCHEME://HOST[:PORT] in lower case and without a path, nor *")
        }
        return origins
    }

    private static func isOrigin(_ text: String) -> Bool {
        guard let slashes = text.firstRange(of: "://"), text == text.lowercased() else { return false }
        var host = text[slashes.upperBound...]
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            guard let port = UInt16(host[host.index(after: colon)...]), port > 0 else { return false }
            host = host[..<colon]
        }
        let isScheme = text[..<slashes.lowerBound].utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2F }
        return isScheme && !text.hasPrefix(":") && !host.isEmpty
            && host.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
    }

    private static func roots(_ values: inout SettingValues) -> [String: String] {
        var roots: [String: String] = [:]
        for text in values.list("files-root") {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, roots[parts[0]] == nil else {
                values.fault("files-root", "\(text) is not NAME=DIR with a name of its own")
                continue
            }
            let path = LocalFile.absolute(parts[1])
            if !LocalFile.isFolder(path) { values.fault("files-root", "\(path) is not a folder") }
            // Roots are opened without following links.
            roots[parts[0]] = LocalFile.resolved(path)
        }
        return roots
    }

    private static func checkTogether(listen: Address, isDevelopment: Bool, _ values: inout SettingValues) {
        let address = IPAddress(listen.host)
        if isDevelopment, address?.isLoopback != true {
            values.fault("dev", "requires a loopback listener, not \(listen.host)")
        }
        if address?.isUnspecified == true, values.text("public-url") == nil {
            values.fault("public-url", "is required when listening on \(listen.host): webhooks contain its URLs")
        }
        if let url = values.text("public-url"), !isBase(url) {
            values.fault(
                "public-url", "is an http or https URL without user, query and fragment: paths are appended to it")
        }
        if let timeout = values.duration("webhook-timeout"), timeout < .milliseconds(1) {
            values.fault("webhook-timeout", "must be longer than 0")
        }
        if (values.text("tls-certificate") == nil) != (values.text("tls-key") == nil) {
            values.fault("tls-certificate", "is given only together with tls-key")
        }
    }

    /// Whether a path can be appended to the URL.
    private static func isBase(_ url: String) -> Bool {
        (try? ParsedURL(url)) != nil && !url.utf8.contains { "?#".utf8.contains($0) }
    }

    /// All buckets, by the names of their profiles.
    var allBuckets: [String: BucketSetting] {
        var all = buckets
        if let contents { all[Store.Files.contentsBucket] = contents }
        return all
    }

    /// The URL at which the API listens, with its actual port.
    func url(port: UInt16) -> String {
        "\(tlsCertificate == nil ? "http" : "https")://\(Address(host: listen.host, port: port).text)"
    }

    /// The effective settings, one per line.
    var description: [(name: String, value: String)] {
        func text(_ duration: Duration) -> String { "\(duration.milliseconds / 1000)s" }
        return [
            ("listen", listen.text), ("data-dir", dataFolder),
            ("store", server.map(\.publicText) ?? "\(dataFolder)/urlsessiond.db"),
            ("store-pooled", String(server.map { !$0.keepsStatements } ?? false)),
            ("roles", NodeRole.allCases.filter(roles.contains).map(\.rawValue).joined(separator: ",")),
            ("admin-key-file", adminKeyFile),
            ("master-key-file", masterKeyFile), ("new-master-key", String(acceptsNewMasterKey)),
            ("dev", String(isDevelopment)),
            ("public-url", publicURL ?? url(port: listen.port)),
            ("transfer-threads", String(transferThreads)), ("max-transfers", String(maximumTransfers)),
            ("max-transfers-per-host", String(maximumTransfersPerHost)),
            ("allow-egress", allowedEgress.map(\.description).joined(separator: ",")),
            ("allow-http-webhooks", String(allowsHTTPWebhooks)),
            (
                "files-root",
                filesRoots.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ",")
            ),
            ("bucket", buckets.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.text)" }.joined(separator: ",")),
            ("contents", contents?.text ?? "\(dataFolder)"), ("bucket-credentials", bucketCredentials ?? "none"),
            ("content-retention", text(contentRetention)), ("unacknowledged-retention", text(unacknowledgedRetention)),
            ("webhook-timeout", text(webhookTimeout)), ("cache-capacity", String(cacheCapacity)),
            ("free-disk-floor", String(freeDiskFloor)),
            ("rate-limit", rateLimit.map(String.init) ?? "none"),
            ("metrics-listen", metricsListen?.text ?? "none"), ("cors-origin", corsOrigins.joined(separator: ",")),
            ("no-page", String(!servesPage)),
            ("tls-certificate", tlsCertificate ?? "none"), ("tls-key", tlsKey == nil ? "none" : "(redacted)"),
            ("shutdown-timeout", text(shutdownTimeout)), ("log-format", logFormat.rawValue),
            ("log-level", logLevel.name),
        ]
    }
}
